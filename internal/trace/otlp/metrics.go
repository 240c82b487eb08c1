package otlp

import "github.com/prometheus/client_golang/prometheus"

var tracesDesc = prometheus.NewDesc("urlserver_traces_total",
	"Traces of sampled documents: sent, dropped because too many were under way or waited, or failed to "+
		"be delivered.", []string{"result"}, nil)

var _ prometheus.Collector = (*Exporter)(nil)

// Describe implements [prometheus.Collector].
func (e *Exporter) Describe(out chan<- *prometheus.Desc) { out <- tracesDesc }

// Collect implements [prometheus.Collector].
func (e *Exporter) Collect(out chan<- prometheus.Metric) {
	send := func(result string, n uint64) {
		out <- prometheus.MustNewConstMetric(tracesDesc, prometheus.CounterValue, float64(n), result)
	}
	send("sent", e.counts.sent.Load())
	send("dropped", e.counts.dropped.Load())
	send("failed", e.counts.failed.Load())
}
