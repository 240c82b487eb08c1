package httpapi

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver"
	"urlserver/urlserver/engine"
)

// figures is a snapshot in which every group of metrics has something.
func figures() snapshot {
	s := urlserver.Status{}
	s.Robots = map[string]uint64{"ok": 3}
	s.Spiders = []engine.SpiderStats{{Addr: "127.0.0.1:5", InFlight: 2}, {Addr: "127.0.0.1:6", InFlight: 1},
		{Addr: "[::1]:7"}}
	s.Classes[docindex.Class2xx], s.Classes[docindex.ClassRobots] = 3, 1
	s.Sent, s.Outcomes[docindex.Done], s.DNS.Found, s.DNS.Stale = 9, 4, 7, 2
	s.Slots.Slots, s.Slots.Used, s.Slots.Full = 10, 6, 1
	s.Slots.Levels = [hostslots.Levels]hostslots.LevelCounts{
		hostslots.SiteLevel:    {Waiting: 11, Backoffs: 12, RetryAfters: 13},
		hostslots.AddressLevel: {Waiting: 14, Backoffs: 15, BackingOff: 16, PutOff: 17},
		hostslots.NetworkLevel: {Waiting: 18, PutOff: 19},
	}
	s.Delay.Observe(300 * time.Microsecond)
	s.Delay.Observe(2 * time.Hour)
	s.CandidateCalls.Seconds.Observe(time.Second)
	s.CandidateCalls.Failed = 1
	return snapshot{status: s, store: &docindex.StoreStats{Completed: 8}}
}

func TestMetricsLint(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(figures())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(families) < 30 {
		t.Fatalf("%d metrics, %v", len(families), err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "urlserver_") {
			t.Errorf("%s does not start with urlserver_", f.GetName())
		}
	}
}

func TestMetricsValues(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(figures())
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, request(t, "GET", "http://localhost/metrics"))
	for _, want := range []string{`
# HELP urlserver_sent_total URLs sent to spiders.
# TYPE urlserver_sent_total counter
urlserver_sent_total 9
`, `
# TYPE urlserver_outcomes_total counter
urlserver_outcomes_total{class="2xx",outcome="done"} 3
urlserver_outcomes_total{class="3xx",outcome="done"} 0
urlserver_outcomes_total{class="4xx",outcome="done"} 0
urlserver_outcomes_total{class="5xx",outcome="done"} 0
urlserver_outcomes_total{class="dns",outcome="dns"} 0
urlserver_outcomes_total{class="expired",outcome="expired"} 0
urlserver_outcomes_total{class="invalid",outcome="invalid"} 0
urlserver_outcomes_total{class="none",outcome="done"} 0
urlserver_outcomes_total{class="out_of_scope",outcome="out_of_scope"} 0
urlserver_outcomes_total{class="robots",outcome="robots"} 1
urlserver_outcomes_total{class="stopped",outcome="stopped"} 0
urlserver_outcomes_total{class="timeout",outcome="timeout"} 0
`, `
# TYPE urlserver_slots gauge
urlserver_slots{state="empty"} 4
urlserver_slots{state="full"} 1
urlserver_slots{state="used"} 5
`, `
urlserver_hosts_waiting{level="address"} 14
urlserver_hosts_waiting{level="network"} 18
urlserver_hosts_waiting{level="site"} 11
`, `
urlserver_backoffs_total{level="address"} 15
urlserver_backoffs_total{level="site"} 12
`, `
urlserver_retry_after_total 13
`, `
urlserver_put_off_total{level="address"} 17
urlserver_put_off_total{level="network"} 19
`, `
urlserver_addresses_backing_off 16
`, `
# TYPE urlserver_in_flight gauge
urlserver_in_flight{spider="127.0.0.1"} 3
urlserver_in_flight{spider="::1"} 0
`, `
urlserver_index_request_errors_total{call="candidates"} 1
urlserver_index_request_errors_total{call="outcomes"} 0
`, `
urlserver_dns_lookups_total{result="found"} 5
`, `
urlserver_dns_lookups_total{result="stale"} 2
`, `
# TYPE urlserver_due_to_sent_seconds histogram
urlserver_due_to_sent_seconds_bucket{le="0.0001"} 0
urlserver_due_to_sent_seconds_bucket{le="0.00025"} 0
urlserver_due_to_sent_seconds_bucket{le="0.0005"} 1
`, `
urlserver_due_to_sent_seconds_bucket{le="60"} 1
urlserver_due_to_sent_seconds_bucket{le="+Inf"} 2
urlserver_due_to_sent_seconds_sum 7200.0003
urlserver_due_to_sent_seconds_count 2
`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}

func TestSpiderLabelsAreBounded(t *testing.T) {
	s := figures()
	s.status.Spiders = nil
	for i := range 3 * maxSpiderLabels {
		s.status.Spiders = append(s.status.Spiders, engine.SpiderStats{Addr: fmt.Sprintf("10.0.0.%d:9", i),
			InFlight: i})
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "urlserver_in_flight" {
			continue
		}
		sum := 0.0
		for _, m := range f.GetMetric() {
			sum += m.GetGauge().GetValue()
		}
		n := 3 * maxSpiderLabels
		if len(f.GetMetric()) != maxSpiderLabels+1 || sum != float64(n*(n-1)/2) {
			t.Errorf("%d labels with %v in flight; want %d with %d", len(f.GetMetric()), sum,
				maxSpiderLabels+1, n*(n-1)/2)
		}
		return
	}
	t.Error("no metric urlserver_in_flight")
}

func TestMetricsOverHTTP(t *testing.T) {
	r := newRig(t, setup{})
	s := r.spider()
	r.put("http://127.0.0.1/a")
	s.next()
	a := r.ask("GET", "/metrics", "")
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("Content-Type is %q", a.Header.Get("Content-Type"))
	}
	for _, want := range []string{
		"urlserver_sent_total 1\n", "urlserver_retried_total 0\n", "urlserver_stale_total 0\n",
		"urlserver_bad_lines_total 0\n",
		`urlserver_outcomes_total{class="2xx",outcome="done"} 0`, `urlserver_slots{state="used"} 1`,
		"urlserver_leftover 0\n", "urlserver_held 1\n",
		`urlserver_in_flight{spider="127.0.0.1"} 1`, "urlserver_due_to_sent_seconds_count 1\n",
		"urlserver_index_requests_total ",
		`urlserver_index_request_seconds_count{call="candidates"} `, `urlserver_dns_queries_total{result="answer"} 0`,
		`urlserver_dns_lookups_total{result="found"} 1`, `urlserver_robots_fetches_total{result="ok"} 0`,
		`urlserver_stored_documents{state="in_transit"} 1`, "go_goroutines ", "process_start_time_seconds ",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
}
