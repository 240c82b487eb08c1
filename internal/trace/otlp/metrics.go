package otlp

import "github.com/prometheus/client_golang/prometheus"

var tracesDesc = prometheus.NewDesc("urlserver_traces_total",
	"Traces of sampled documents: sent, dropped because too many were under way or waited, or failed to "+
		"be delivered.", []string{"result"}, nil)

var _ prometheus.Collector = (*Exporter)(nil)

// Describe sends what there is.
func (e *Exporter) Describe(out chan<- *prometheus.Desc) { out <- tracesDesc }

// Collect sends the metrics.
func (e *Exporter) Collect(out chan<- prometheus.Metric) {
	send := func(result string, n uint64) {
		out <- prometheus.MustNewConstMetric(tracesDesc, prometheus.CounterValue, float64(n), result)
	}
	send("sent", e.figures.sent.Load())
	send("dropped", e.figures.dropped.Load())
	send("failed", e.figures.failed.Load())
}
