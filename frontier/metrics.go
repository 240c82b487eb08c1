package frontier

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

// counters counts the calls and items of clients.
type counters struct {
	getCalls, got             atomic.Int64
	getTime                   atomic.Int64 // ns
	streams                   atomic.Int64 // streams of PutURLs, numbered in the log
	putCalls, discoveredCalls atomic.Int64 // calls of PutURLs, of PutDiscovered
	put                       atomic.Int64 // items
	known, completed          atomic.Int64 // items
	ignored, bad, fails       atomic.Int64 // items
}

// count counts a batch whose items have their status.
func (f *counters) count(b *batch) {
	f.put.Add(int64(len(b.acks)))
	f.known.Add(int64(b.known))
	f.completed.Add(int64(b.completed))
	f.bad.Add(int64(b.malformed))
	skipped, failed := 0, 0
	for i := range b.acks {
		switch b.acks[i].Status {
		case pb.AckMessage_SKIPPED:
			skipped++
		case pb.AckMessage_FAIL:
			failed++
		}
	}
	f.ignored.Add(int64(skipped - b.malformed))
	f.fails.Add(int64(failed))
}

// countTimeout is how long a scrape of the metrics waits for the store.
const countTimeout = 5 * time.Second

// Describe sends nothing, because the metrics depend on the store.
func (s *Server) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics, first those with the names of the Java service, which dashboards know.
func (s *Server) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, name, help string, v float64, label ...string) {
		var names, values []string
		if len(label) == 2 {
			names, values = label[:1], label[1:]
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, v, values...)
	}
	f := &s.counters
	count := func(name, help string, n *atomic.Int64, label ...string) {
		send(prometheus.CounterValue, name, help, float64(n.Load()), label...)
	}
	count("frontier_getURLs_calls_total", "Calls of GetURLs.", &f.getCalls)
	count("frontier_getURLs_total", "URLs that GetURLs gave out.", &f.got)
	count("frontier_putURLs_calls_total", "Calls of PutURLs.", &f.putCalls)
	count("frontier_putDiscovered_calls_total", "Calls of PutDiscovered.", &f.discoveredCalls)
	count("frontier_putURLs_total", "URLs that were put.", &f.put)
	discovered := "URLs that were put, by whether as discovered."
	send(prometheus.CounterValue, "frontier_putURLs_discovered_total", discovered,
		float64(f.put.Load()-f.known.Load()), "discovered", "true")
	count("frontier_putURLs_discovered_total", discovered, &f.known, "discovered", "false")
	count("frontier_putURLs_ignored_total", "Discovered URLs that were known.", &f.ignored)
	count("frontier_putURLs_completed_total", "URLs that were completed.", &f.completed)
	latency := prometheus.NewDesc("frontier_getURLs_latency_seconds", "Time that calls of GetURLs took.",
		nil, nil)
	out <- prometheus.MustNewConstSummary(latency, uint64(f.getCalls.Load()),
		time.Duration(f.getTime.Load()).Seconds(), nil)

	count("urlserver_frontier_malformed_total", "URLs put that cannot be used; their answer was SKIPPED.",
		&f.bad)
	count("urlserver_frontier_failed_total",
		"URLs put that could not be stored, or that are too long to be; their answer was FAIL.", &f.fails)
	gauge := func(name, help, value string, n uint64) {
		send(prometheus.GaugeValue, name, help, float64(n), "state", value)
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	n, err := s.store.Count(ctx, nil)
	if err != nil {
		return // unknown values are left out
	}
	gauge("urlserver_frontier_urls", "URLs by state.", docindex.Scheduled.String(), n.Scheduled)
	gauge("urlserver_frontier_urls", "URLs by state.", docindex.InTransit.String(), n.InTransit)
	gauge("urlserver_frontier_urls", "URLs by state.", docindex.Completed.String(), n.Completed)
	gauge("urlserver_frontier_queues", "Queues by state: active ones have URLs scheduled or in transit.",
		"active", n.Active)
	gauge("urlserver_frontier_queues", "Queues by state: active ones have URLs scheduled or in transit.",
		"idle", n.Queues-n.Active)
}
