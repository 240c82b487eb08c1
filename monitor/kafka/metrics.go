package kafka

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// figures count since the start.
type figures struct {
	requests, skipped, replies, givenUp                   atomic.Uint64
	fetchErrors, storeErrors, produceErrors, commitErrors atomic.Uint64
}

var (
	recordsDesc = prometheus.NewDesc("urlserver_monitor_kafka_records_total", "Records read from and written to Kafka by crawl control.", []string{"what"}, nil)
	errorsDesc  = prometheus.NewDesc("urlserver_monitor_kafka_errors_total", "What failed between crawl control, Kafka and the store, and was tried again.", []string{"what"}, nil)
)

// Describe sends what there is.
func (s *Service) Describe(out chan<- *prometheus.Desc) {
	out <- recordsDesc
	out <- errorsDesc
}

// Collect sends the metrics.
func (s *Service) Collect(out chan<- prometheus.Metric) {
	f := &s.figures
	send := func(desc *prometheus.Desc, n *atomic.Uint64, what string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n.Load()), what)
	}
	send(recordsDesc, &f.requests, "request")
	send(recordsDesc, &f.skipped, "skipped")
	send(recordsDesc, &f.replies, "reply")
	send(recordsDesc, &f.givenUp, "given_up")
	send(errorsDesc, &f.fetchErrors, "fetch")
	send(errorsDesc, &f.storeErrors, "store")
	send(errorsDesc, &f.produceErrors, "produce")
	send(errorsDesc, &f.commitErrors, "commit")
}
