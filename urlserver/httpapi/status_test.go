package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver"
	"urlserver/urlserver/engine"
)

// keysOf lists the keys of a JSON object, dotted, those of lists' objects as "key[]".
func keysOf(t *testing.T, text string) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	keys := map[string]bool{}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				keys[prefix+k] = true
				walk(prefix+k+".", inner)
			}
		case []any:
			for _, inner := range v {
				walk(strings.TrimSuffix(prefix, ".")+"[].", inner)
			}
		}
	}
	walk("", v)
	return slices.Sorted(maps.Keys(keys))
}

// wantKeys checks that all keys are there; more are allowed.
func wantKeys(t *testing.T, text string, want ...string) {
	t.Helper()
	got := keysOf(t, text)
	for _, key := range want {
		if !slices.Contains(got, key) {
			t.Errorf("no key %s in %s", key, text)
		}
	}
}

func TestStatusKeys(t *testing.T) {
	r := newRig(t, setup{})
	s := r.spider()
	r.put("http://127.0.0.1/a")
	s.next()
	wantKeys(t, r.ask("GET", "/api/status", "").body,
		"uptime_s", "paused", "slots.total", "slots.used", "slots.full", "slots.cooling", "held",
		"leftover", "in_flight",
		"spiders[].addr", "spiders[].in_flight", "spiders[].sent", "spiders[].done",
		"sent", "done", "retried", "stale", "bad_lines",
		"outcomes.done", "outcomes.timeout", "outcomes.robots", "outcomes.dns", "outcomes.invalid",
		"outcomes.stopped", "outcomes.expired",
		"statuses.2xx", "statuses.3xx", "statuses.4xx", "statuses.5xx", "statuses.none", "statuses.robots",
		"statuses.dns", "statuses.timeout",
		"statuses.invalid", "statuses.out_of_scope", "statuses.stopped", "statuses.expired",
		"index.scheduled", "index.in_transit", "index.completed",
		"reject", "index.requests", "index.candidates", "index.duplicates", "index.last_error")
}

func TestStatusFollowsADocument(t *testing.T) {
	r := newRig(t, setup{})
	var s status
	r.into(&s, "GET", "/api/status", "")
	if s.Spiders == nil || s.Held != 0 || s.Slots.Total != 4096 {
		t.Errorf("at the start: %+v", s)
	}
	sp := r.spider()
	r.put("http://127.0.0.1/a", "http://127.0.0.2/b")
	first := sp.next()
	second := sp.next()
	r.into(&s, "GET", "/api/status", "")
	if s.Held != 2 || s.InFlight != 2 || s.Sent != 2 || s.Done != 0 || s.Slots.Used != 2 ||
		len(s.Spiders) != 1 || s.Spiders[0].InFlight != 2 || s.Spiders[0].Addr != sp.conn.LocalAddr().String() {
		t.Errorf("with two at the spider: %+v", s)
	}
	sp.done(first)
	sp.done(second)
	r.put("http://127.0.0.3/c")
	sp.next()
	for s.Done < 2 { // they come on another connection than the questions
		r.into(&s, "GET", "/api/status", "")
	}
	if s.Done != 2 || s.Outcomes["done"] != 2 || s.InFlight != 1 || s.Spiders[0].Done != 2 || s.Index.Candidates != 3 {
		t.Errorf("after two are done: %+v", s)
	}
}

func TestStatusOf(t *testing.T) {
	in := urlserver.Status{Uptime: 1234567 * time.Microsecond, IndexError: "no route", OutcomesWaiting: 5,
		Embedded: true}
	in.Stats = engine.Stats{
		Sent: 10, Retried: 1, Expired: 2, Lost: 3, Stale: 4, BadLines: 6, IndexRequests: 7, Candidates: 8,
		Duplicates:    9,
		BadCandidates: 11, Rejected: 12, Paused: true,
		Slots: hostslots.Counts{Slots: 20, Used: 19, Full: 18, Cooling: 17, Waiting: 16, Held: 15,
			Leftover: 14, Unresolved: 13, InFlight: 21},
		Spiders: []engine.SpiderStats{{Addr: "127.0.0.1:1", InFlight: 21, Sent: 22, Done: 23}},
	}
	in.Slots.Levels = [hostslots.Levels]hostslots.LevelCounts{
		hostslots.SiteLevel:    {Waiting: 41, Backoffs: 42, RetryAfters: 43},
		hostslots.AddressLevel: {Waiting: 44, Backoffs: 45, BackingOff: 46, PutOff: 47},
		hostslots.NetworkLevel: {Waiting: 48, PutOff: 49},
	}
	in.Outcomes[docindex.Done], in.Outcomes[docindex.DNS] = 24, 25
	in.Classes[docindex.Class2xx], in.Classes[docindex.ClassNone], in.Classes[docindex.ClassDNS] = 23, 1, 25
	server := New(Config{Daemon: newRig(t, setup{}).daemon, Log: zerolog.Nop()})
	text, err := json.Marshal(server.statusOf(in, &IndexTotals{26, 27, 28}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"uptime_s":1.234567,"paused":true,"slots":{"total":20,"used":19,"full":18,"cooling":17,"waiting":16},` +
		`"levels":{"site":{"waiting":41,"backoffs":42,"retry_after":43},` +
		`"address":{"waiting":44,"backoffs":45,"backing_off":46,"put_off":47},` +
		`"network":{"waiting":48,"put_off":49}},` +
		`"held":15,"leftover":14,"unresolved":13,"in_flight":21,"spiders":[{"addr":"127.0.0.1:1","in_flight":21,"sent":22,"done":23}],` +
		`"sent":10,"done":24,"retried":1,"expired":2,"lost":3,"stale":4,"bad_lines":6,` +
		`"outcomes":{"dns":25,"done":24,"expired":0,"invalid":0,"out_of_scope":0,"robots":0,"stopped":0,"timeout":0},` +
		`"statuses":{"2xx":23,"3xx":0,"4xx":0,"5xx":0,"dns":25,"expired":0,"invalid":0,"none":1,"out_of_scope":0,"robots":0,"stopped":0,"timeout":0},` +
		`"outcomes_waiting":5,"reject":12,` +
		`"index":{"requests":7,"candidates":8,"duplicates":9,"bad_candidates":11,"last_error":"no route","embedded":true,"scheduled":26,"in_transit":27,"completed":28}}`
	if string(text) != want {
		t.Errorf("status is\n%s; want\n%s", text, want)
	}

	// Where hosts are shared and crawl control goes by Kafka, that shows, too.
	in.Reserving, in.ReserverAway = true, true
	in.Leases, in.LeasesGranted, in.LeasesDenied, in.LeasesLost, in.LeaseErrors = 26, 27, 28, 29, 30
	server.kafka = func() crawlcontrol.KafkaCounts {
		return crawlcontrol.KafkaCounts{Connected: true, Lag: 31, Requests: 32, Replies: 33, GivenUp: 34, Errors: 35}
	}
	if text, err = json.Marshal(server.statusOf(in, &IndexTotals{26, 27, 28})); err != nil {
		t.Fatal(err)
	}
	const more = `,"reservation":{"away":true,"held":26,"granted":27,"denied":28,"lost":29,"failures":30},` +
		`"kafka":{"connected":true,"lag":31,"requests":32,"replies":33,"given_up":34,"failures":35}}`
	if got := string(text); got != strings.TrimSuffix(want, "}")+more {
		t.Errorf("status is\n%s; want it to end with\n%s", got, more)
	}
}

func TestReady(t *testing.T) {
	r := newRig(t, setup{})
	a := r.ask("GET", "/readyz", "")
	if want := `{"ready":false,"reasons":["no spider is connected"]}` + "\n"; a.StatusCode != 503 || a.body != want {
		t.Errorf("without a spider: %d %s; want 503 %s", a.StatusCode, a.body, want)
	}
	s := r.spider()
	r.put("http://127.0.0.1/a")
	s.next()
	a = r.ask("GET", "/readyz", "")
	if want := `{"ready":true,"reasons":[]}` + "\n"; a.StatusCode != 200 || a.body != want {
		t.Errorf("with a spider: %d %s; want 200 %s", a.StatusCode, a.body, want)
	}
}

func TestPauseAndResume(t *testing.T) {
	r := newRig(t, setup{})
	sp := r.spider()
	var now struct{ Paused bool }
	if r.into(&now, "POST", "/api/pause", ""); !now.Paused {
		t.Error("pause answers that it is not paused")
	}
	r.put("http://127.0.0.1/a")
	var s status
	if r.into(&s, "GET", "/api/status", ""); !s.Paused || s.Sent != 0 {
		t.Errorf("paused: %+v", s)
	}
	if r.into(&now, "POST", "/api/resume", ""); now.Paused {
		t.Error("resume answers that it is paused")
	}
	sp.next()
}
