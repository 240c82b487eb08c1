package httpapi

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/resolver"
	"urlserver/urlserver"
	"urlserver/urlserver/engine"
)

// maxSpiderLabels bounds the values of the label "spider"; the rest is "other".
const maxSpiderLabels = 64

// runtimeMetrics returns a registry of the Go runtime's and the process' metrics, and more.
func runtimeMetrics(more []prometheus.Collector) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(more...)
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// serveMetrics reads the daemon's status once for each scrape, so that the metrics are consistent.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	now, err := s.daemon.Status(r.Context())
	if err != nil {
		return err
	}
	metricsNow := snapshot{status: now}
	if s.store != nil {
		if _, err := s.store.Count(r.Context(), nil); err == nil { // else Stats says what it knew last
			stored := s.store.Stats()
			metricsNow.store = &stored
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metricsNow)
	promhttp.HandlerFor(prometheus.Gatherers{s.runtime, registry}, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

// snapshot collects the metrics of one moment.
type snapshot struct {
	status urlserver.Status
	store  *docindex.StoreStats // nil: no embedded index
}

// Describe sends nothing: each snapshot has a registry of its own.
func (snapshot) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (f snapshot) Collect(out chan<- prometheus.Metric) {
	s := &f.status
	m := metrics{out}
	m.documents(s)
	m.reservation(s)
	m.slots(&s.Slots)
	m.levels(&s.Slots.Levels)
	m.spiders(s.Spiders)
	m.index(s)
	m.dns(&s.DNS)
	m.robots(s)
	if f.store != nil {
		m.stored(f.store)
	}
}

// metrics sends metrics, each with at most one label.
type metrics struct{ out chan<- prometheus.Metric }

func (m metrics) send(kind prometheus.ValueType, name, help string, v float64, label ...string) {
	var names, values []string
	if len(label) == 2 {
		names, values = label[:1], label[1:]
	}
	m.out <- prometheus.MustNewConstMetric(prometheus.NewDesc("urlserver_"+name, help, names, nil), kind, v, values...)
}

func (m metrics) counter(name, help string, v uint64, label ...string) {
	m.send(prometheus.CounterValue, name, help, float64(v), label...)
}

func (m metrics) gauge(name, help string, v int, label ...string) {
	m.send(prometheus.GaugeValue, name, help, float64(v), label...)
}

func (m metrics) histogram(name, help string, h *engine.Histogram, label ...string) {
	var names, values []string
	if len(label) == 2 {
		names, values = label[:1], label[1:]
	}
	count, buckets := uint64(0), map[float64]uint64{}
	for i, n := range h.Buckets {
		count += n
		if i < len(engine.Bounds) {
			buckets[engine.Bounds[i].Seconds()] = count
		}
	}
	desc := prometheus.NewDesc("urlserver_"+name, help, names, nil)
	m.out <- prometheus.MustNewConstHistogram(desc, count, h.Sum.Seconds(), buckets, values...)
}

func (m metrics) documents(s *urlserver.Status) {
	m.gauge("uptime_seconds", "Time since the daemon's start.", int(s.Uptime/time.Second))
	m.gauge("paused", "1 while the operator has paused sending.", oneIf(s.Paused))
	m.counter("sent_total", "URLs sent to spiders.", s.Sent)
	m.counter("retried_total", "URLs sent that had been sent before.", s.Retried)
	m.counter("expired_total", "URLs sent for which no status came in time (Timeout_Spider_Status).", s.Expired)
	m.counter("lost_total", "URLs that were at a spider when it went away.", s.Lost)
	m.counter("back_total", "URLs that spiders gave back without fetching them (BACK).", s.Back)
	m.counter("fetched_bytes_total", "Bytes of bodies, as far as spiders told (DONE with bytes=).", s.Bytes)
	m.counter("stale_total", "Statuses that came for a transaction that had ended.", s.Stale)
	m.counter("bad_lines_total", "Lines of spiders that were ignored.", s.BadLines)
	m.outcomes(&s.Classes)
	m.gauge("outcomes_waiting", "Outcomes that the doc index has not taken yet.", s.OutcomesWaiting)
	m.histogram("due_to_sent_seconds", "Time from when a URL might be sent to when it was.", &s.Delay)
}

// outcomes sends every class from the start, so that rates are right.
func (m metrics) outcomes(counts *[docindex.Classes]uint64) {
	const help = "Documents ended, by outcome, and by class: for done the HTTP status's, none where " +
		"there was no answer; " +
		"for others the outcome's word."
	desc := prometheus.NewDesc("urlserver_outcomes_total", help, []string{"outcome", "class"}, nil)
	for i, n := range counts {
		class := docindex.Class(i)
		m.out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), class.Outcome(),
			class.String())
	}
}

// reservation sends the metrics of a reservation shared with other daemons; all are 0 without one.
func (m metrics) reservation(s *urlserver.Status) {
	if s.Reserving {
		m.gauge("reservation_up",
			"1 if the last call of the reservation was answered; only where there is one.", oneIf(!s.ReserverAway))
	}
	m.gauge("reservation_held", "Host groups leased from the reservation.", s.Leases)
	m.counter("reservation_granted_total", "Leases got from the reservation.", s.LeasesGranted)
	m.counter("reservation_denied_total",
		"Leases not got: another daemon has the group, or its time has not come.", s.LeasesDenied)
	m.counter("reservation_lost_total", "Leases that could not be extended.", s.LeasesLost)
	m.counter("reservation_errors_total", "Requests for a lease that the reservation did not answer.", s.LeaseErrors)
}

func (m metrics) slots(c *hostslots.Counts) {
	const help = "Host slots, by state; used: with room for more."
	m.gauge("slots", help, c.Slots-c.Used, "state", "empty")
	m.gauge("slots", help, c.Used-c.Full, "state", "used")
	m.gauge("slots", help, c.Full, "state", "full")
	m.gauge("groups", "Host groups known.", c.Groups)
	m.gauge("groups_cooling", "Host groups without a slot that may not be asked yet.", c.Cooling)
	m.gauge("groups_waiting", "Host groups in line for a slot.", c.Waiting)
	m.gauge("hosts", "Hosts known.", c.Hosts)
	m.gauge("held", "Documents held, all of them.", c.Held)
	m.gauge("leftover", "Documents held outside of slots.", c.Leftover)
	m.gauge("unresolved", "Documents held whose host's address is not known yet.", c.Unresolved)
	m.gauge("unresolved_failing",
		"Documents held whose host's name fails to resolve for now, and is looked up again.", c.Failing)
}

// levels sends the metrics of sites, addresses and shared networks.
func (m metrics) levels(counts *[hostslots.Levels]hostslots.LevelCounts) {
	const waiting = "Hosts with something to send, by what they wait for: site (its gap or Retry-After is " +
		"not over), address (their turn on their address), network (in line for their shared network)."
	const backoffs = "Times that a gap grew: of a site after status 429 or 503, of an address after " +
		"those of several of its sites."
	const putOff = "Requests whose site was due, and that had to get in line for their address or " +
		"shared network."
	site, address, network := hostslots.SiteLevel, hostslots.AddressLevel, hostslots.NetworkLevel
	for _, level := range []hostslots.Level{site, address, network} {
		m.gauge("hosts_waiting", waiting, counts[level].Waiting, "level", level.String())
	}
	for _, level := range []hostslots.Level{site, address} {
		m.counter("backoffs_total", backoffs, counts[level].Backoffs, "level", level.String())
	}
	for _, level := range []hostslots.Level{address, network} {
		m.counter("put_off_total", putOff, counts[level].PutOff, "level", level.String())
	}
	m.counter("retry_after_total", "Answers 429 and 503 with a Retry-After, which binds their site alone.",
		counts[site].RetryAfters)
	m.gauge("addresses_backing_off",
		"Addresses that back off now, since several of their sites answered 429 or 503.",
		counts[address].BackingOff)
}

// spiders sums up connections by IP address, since the port of a spider that dials in changes with
// each connection.
func (m metrics) spiders(all []engine.SpiderStats) {
	m.gauge("spiders", "Spiders connected.", len(all))
	by := map[string]int{}
	for _, s := range all {
		by[address(s.Addr)] += s.InFlight
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	const help = "Documents at spiders, by the spider's IP address."
	other := 0
	for i, name := range names {
		if i >= maxSpiderLabels {
			other += by[name]
			continue
		}
		m.gauge("in_flight", help, by[name], "spider", name)
	}
	if len(names) == 0 || len(names) > maxSpiderLabels {
		m.gauge("in_flight", help, other, "spider", "other")
	}
}

func address(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return hostPort
	}
	return host
}

func (m metrics) index(s *urlserver.Status) {
	const help = "Time that requests to the doc index took."
	const failed = "Requests to the doc index that failed."
	m.histogram("index_request_seconds", help, &s.CandidateCalls.Seconds, "call", "candidates")
	m.histogram("index_request_seconds", help, &s.OutcomeCalls.Seconds, "call", "outcomes")
	m.counter("index_request_errors_total", failed, s.CandidateCalls.Failed, "call", "candidates")
	m.counter("index_request_errors_total", failed, s.OutcomeCalls.Failed, "call", "outcomes")
	m.counter("index_requests_total", "Requests for candidates made to the doc index.", s.IndexRequests)
	m.counter("candidates_total", "Candidates that the doc index offered.", s.Candidates)
	m.counter("duplicates_total", "Candidates that were held or had ended lately.", s.Duplicates)
	m.counter("bad_candidates_total", "Candidates without a usable DOC_ID.", s.BadCandidates)
	m.gauge("reject_hosts", "Hosts in the last reject list.", s.Rejected)
}

func (m metrics) dns(s *resolver.Stats) {
	const queries = "Tries at DNS servers, by result."
	m.counter("dns_queries_total", queries, s.Answers, "result", "answer")
	m.counter("dns_queries_total", queries, s.Timeouts, "result", "timeout")
	m.counter("dns_queries_total", queries, s.Failures, "result", "failure")
	const lookups = "Host names looked up, by result."
	m.counter("dns_lookups_total", lookups, s.Remembered, "result", "remembered")
	m.counter("dns_lookups_total", lookups, s.Found-min(s.Found, s.Stale), "result", "found")
	m.counter("dns_lookups_total", lookups, s.Stale, "result", "stale")
	m.counter("dns_lookups_total", lookups, s.NoHost, "result", "no_host")
	m.counter("dns_lookups_total", lookups, s.Refused, "result", "refused")
	m.counter("dns_lookups_total", lookups, s.BadName, "result", "bad_name")
	m.counter("dns_lookups_total", lookups, s.Failed, "result", "failed")
	m.counter("dns_packets_sent_total", "DNS queries sent, repetitions and those over TCP among them.", s.Queries)
	m.counter("dns_strays_total", "DNS answers to nothing that was asked.", s.Strays)
	desc := prometheus.NewDesc("urlserver_dns_lookup_seconds",
		"Time until host names that servers were asked for were known or given up.", nil, nil)
	m.out <- prometheus.MustNewConstSummary(desc, s.Asked, s.Took.Seconds(), nil)
	m.gauge("dns_waiting", "Host names that are being looked up.", s.Waiting)
	m.gauge("dns_entries", "Host names remembered.", s.Entries)
}

// robots sends every state from the start, so that rates are right.
func (m metrics) robots(s *urlserver.Status) {
	m.counter("robots_requests_total", "HTTP requests for robots.txt, each hop of a redirect counted.",
		s.RobotsRequests)
	m.counter("robots_kept_total", "robots.txt of which the doc index had kept the answer, so no request was made.",
		s.RobotsFound)
	const help = "robots.txt fetched, by result: ok, unavailable (all is allowed), unreachable (nothing " +
		"is), stale (unreachable, the last file in use)."
	for _, state := range []string{"ok", "unavailable", "unreachable", "stale"} {
		m.counter("robots_fetches_total", help, s.Robots[state], "result", state)
	}
	m.gauge("robots_under_way", "robots.txt being fetched.", s.RobotsFetches)
	m.gauge("robots_memory_bytes", "Memory that the rules of all robots.txt take.", s.RobotsBytes)
	m.counter("robots_dropped_total",
		"robots.txt whose rules were dropped to make room for others (robots.memory).", s.RobotsDropped)
}

func (m metrics) stored(s *docindex.StoreStats) {
	const help = "Documents in the embedded doc index, by state."
	m.gauge("stored_documents", help, s.Scheduled, "state", "scheduled")
	m.gauge("stored_documents", help, s.InTransit, "state", "in_transit")
	m.gauge("stored_documents", help, s.Completed, "state", "completed")
	m.gauge("stored_hosts", "Hosts in the embedded doc index.", s.Hosts)
	m.gauge("stored_bytes", "Memory or disk that the embedded doc index takes.", int(s.Bytes))
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
