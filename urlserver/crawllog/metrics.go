package crawllog

import "github.com/prometheus/client_golang/prometheus"

var (
	linesDesc = prometheus.NewDesc("urlserver_crawl_log_lines_total",
		"Lines of the crawl log: written, or lost because the disk was slow, full or could not be written.",
		[]string{"result"}, nil)
	waitingDesc = prometheus.NewDesc("urlserver_crawl_log_waiting",
		"Outcomes that wait to be written to the crawl log.", nil, nil)
	failingDesc = prometheus.NewDesc("urlserver_crawl_log_failing",
		"1 while the crawl log cannot be written.", nil, nil)
)

var _ prometheus.Collector = (*Log)(nil)

// Describe sends the descriptions of all metrics.
func (l *Log) Describe(out chan<- *prometheus.Desc) {
	out <- linesDesc
	out <- waitingDesc
	out <- failingDesc
}

// Collect sends the metrics.
func (l *Log) Collect(out chan<- prometheus.Metric) {
	lines := func(result string, n uint64) {
		out <- prometheus.MustNewConstMetric(linesDesc, prometheus.CounterValue, float64(n), result)
	}
	gauge := func(desc *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
	lines("written", l.written.Load())
	lines("lost", l.lost.Load())
	gauge(waitingDesc, float64(l.count()))
	failing := 0.0
	if l.failing.Load() {
		failing = 1
	}
	gauge(failingDesc, failing)
}
