package kafka

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/crawlcontrol"
)

// counters count since the start.
type counters struct {
	requests, skipped, replies, givenUp                   atomic.Uint64
	fetchErrors, storeErrors, produceErrors, commitErrors atomic.Uint64

	connections connections
}

// connections counts the open connections to brokers of all clients that it is a hook of. A
// connection that fails during its set-up counts although its end was reported before.
type connections struct{ open atomic.Int64 }

var (
	_ kgo.HookBrokerConnect    = (*connections)(nil)
	_ kgo.HookBrokerDisconnect = (*connections)(nil)
)

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (c *connections) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, conn net.Conn, _ error) {
	if conn != nil {
		c.open.Add(1)
	}
}

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (c *connections) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { c.open.Add(-1) }

// any reports whether a broker is connected.
func (c *connections) any() bool { return c.open.Load() > 0 }

var (
	recordsDesc = prometheus.NewDesc("urlserver_monitor_kafka_records_total",
		"Records read from and written to Kafka by crawl control.", []string{"what"}, nil)
	lagDesc = prometheus.NewDesc("urlserver_monitor_kafka_lag",
		"Records in the partitions that this daemon reads that are not dealt with yet, as far as it knows.",
		nil, nil)
	connDesc = prometheus.NewDesc("urlserver_monitor_kafka_connected",
		"1 while a broker of Kafka is connected.", nil, nil)
	errorsDesc = prometheus.NewDesc("urlserver_monitor_kafka_errors_total",
		"What failed between crawl control, Kafka and the store, and was tried again.", []string{"what"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Service) Describe(out chan<- *prometheus.Desc) {
	out <- recordsDesc
	out <- errorsDesc
	out <- lagDesc
	out <- connDesc
}

// Collect implements prometheus.Collector.
func (s *Service) Collect(out chan<- prometheus.Metric) {
	f := &s.counters
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
	out <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(s.lag.sum()))
	connected := 0.0
	if f.connections.any() {
		connected = 1
	}
	out <- prometheus.MustNewConstMetric(connDesc, prometheus.GaugeValue, connected)
}

// Counts returns the current numbers. It may be called from any goroutine.
func (s *Service) Counts() crawlcontrol.KafkaCounts {
	f := &s.counters
	return crawlcontrol.KafkaCounts{
		Requests: f.requests.Load(), Replies: f.replies.Load(), GivenUp: f.givenUp.Load(),
		Errors: f.fetchErrors.Load() + f.storeErrors.Load() + f.produceErrors.Load() + f.commitErrors.Load(),
		Lag:    s.lag.sum(), Connected: f.connections.any(),
	}
}
