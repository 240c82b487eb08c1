package grpcserver

import (
	"context"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

const scrapeTime = 5 * time.Second // for the store's counts

// counters counts the calls.
type counters struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newFigures() counters {
	return counters{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hostreservation_calls_total", Help: "Calls, by method and status code.",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hostreservation_call_seconds", Help: "How long calls take, by method.",
			Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10},
		}, []string{"method"}),
	}
}

func (f counters) count(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	next grpc.UnaryHandler) (any, error) {
	start, method := time.Now(), path.Base(info.FullMethod)
	answer, err := next(ctx, req)
	f.seconds.WithLabelValues(method).Observe(time.Since(start).Seconds())
	f.calls.WithLabelValues(method, status.Code(err).String()).Inc()
	return answer, err
}

var (
	hostsDesc    = prometheus.NewDesc("hostreservation_hosts", "Hosts, by state.", []string{"state"}, nil)
	aliasesDesc  = prometheus.NewDesc("hostreservation_aliases", "Aliases.", nil, nil)
	repairedDesc = prometheus.NewDesc("hostreservation_repaired_total",
		"Queue entries that the janitor put back.", nil, nil)
	upDesc = prometheus.NewDesc("hostreservation_store_up", "1 if the store answers.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	s.counters.calls.Describe(to)
	s.counters.seconds.Describe(to)
	to <- hostsDesc
	to <- aliasesDesc
	to <- repairedDesc
	to <- upDesc
}

// Collect implements [prometheus.Collector].
func (s *Server) Collect(to chan<- prometheus.Metric) {
	s.counters.calls.Collect(to)
	s.counters.seconds.Collect(to)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	st, err := s.cfg.Store.Stats(ctx)
	if err != nil {
		to <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, 0)
		return
	}
	to <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, 1)
	for state, n := range map[string]uint64{"waiting": st.Waiting, "ready": st.Ready, "busy": st.Busy} {
		to <- prometheus.MustNewConstMetric(hostsDesc, prometheus.GaugeValue, float64(n), state)
	}
	to <- prometheus.MustNewConstMetric(aliasesDesc, prometheus.GaugeValue, float64(st.Aliases))
	to <- prometheus.MustNewConstMetric(repairedDesc, prometheus.CounterValue, float64(st.Repaired))
}
