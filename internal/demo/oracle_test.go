package demo

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// stub is a site that has the same page at each target.
type stub struct{ crawl time.Duration }

func (s stub) answer(string) answer { return page("Stub", "") }
func (s stub) forbids(string) bool  { return false }
func (s stub) delay() time.Duration { return s.crawl }

// trial is an oracle for hosts on two addresses, with a clock that the test sets.
type trial struct {
	*oracle
	t    *testing.T
	time time.Time
}

func newTrial(t *testing.T) *trial {
	w := newWeb("trial", 8000, []host{
		{name: "a.test", addr: loopback(1), site: stub{}},
		{name: "b.test", addr: loopback(1), site: stub{crawl: 300 * ms}},
		{name: "c.test", addr: loopback(2), site: stub{}},
	})
	r := &trial{oracle: newOracle(w, 100*ms), t: t, time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.now = func() time.Time { return r.time }
	return r
}

// get sends a request of a spider, after a pause.
func (r *trial) get(after time.Duration, name, target string) {
	r.time = r.time.Add(after)
	r.sent([]byte("http://" + name + ":8000" + target))
	r.ask(0, name, target)
}

// ask sends a request of the daemon itself.
func (r *trial) ask(after time.Duration, name, target string) {
	r.time = r.time.Add(after)
	h := r.web.names[name]
	r.arrive(h.addr, h, target)(answer{status: 200})
}

func TestOracleSharesAnAddress(t *testing.T) {
	r := newTrial(t)
	r.ask(0, "a.test", "/robots.txt")
	r.ask(100*ms, "b.test", "/robots.txt") // the daemon does not know its Crawl-delay yet
	r.get(100*ms, "a.test", "/")
	r.get(50*ms, "c.test", "/") // another address
	r.get(250*ms, "b.test", "/")
	r.get(300*ms, "a.test", "/1")
	if v := r.judge(plan{}, false); v.impolite.count != 0 {
		t.Errorf("polite requests: %q", v.impolite.first)
	}
	r.get(100*ms, "a.test", "/2") // b.test's delay is its own
	r.get(50*ms, "b.test", "/2")  // too early for the address
	r.get(100*ms, "b.test", "/3") // too early for the site
	v := r.judge(plan{}, false)
	if v.impolite.count != 2 || !strings.Contains(v.impolite.first[0], "100ms is allowed") ||
		!strings.Contains(v.impolite.first[1], "asked 100ms") ||
		!strings.Contains(v.impolite.first[1], "300ms is allowed") {
		t.Errorf("broken gaps: %q", v.impolite.first)
	}
	rows := r.rows()
	if len(rows) != 2 || rows[0].hosts != 2 || rows[0].pages != 6 || rows[0].tight.allowed != 300*ms ||
		rows[1].pages != 1 {
		t.Errorf("rows = %+v", rows)
	}
	if pages, others := r.counts(); pages != 7 || others != 2 {
		t.Errorf("counts = %d, %d; want 7, 2", pages, others)
	}
}

func TestOracleCountsFromTheDaemon(t *testing.T) {
	r := newTrial(t)
	r.sent([]byte("http://a.test:8000/"))
	r.ask(70*ms, "a.test", "/") // late
	r.get(30*ms, "a.test", "/1")
	rows := r.rows()
	if rows[0].late != 1 || rows[0].broken != 0 || rows[0].longest != 70*ms {
		t.Errorf("late %d, broken %d, longest %v; want 1, 0, 70ms", rows[0].late, rows[0].broken,
			rows[0].longest)
	}
}

func TestOracleAtTheWrongAddress(t *testing.T) {
	for _, addr := range []netip.Addr{loopback(2), netip.MustParseAddr("127.0.0.1")} {
		r := newTrial(t)
		r.arrive(addr, r.web.names["a.test"], "/")(answer{status: 200})
		if v := r.judge(plan{}, false); v.impolite.count != 1 {
			t.Errorf("a.test asked at %v: %q, want one fault", addr, v.impolite.first)
		}
	}
}

func TestJudge(t *testing.T) {
	const a, b = "http://a.test/", "http://a.test/b"
	tests := []struct {
		name                    string
		want                    map[string]int
		seen                    []string
		early                   bool
		missed, repeated, stray int
	}{
		{name: "as planned", want: map[string]int{a: 1, b: 1}, seen: []string{"/", "/b"}},
		{name: "missed", want: map[string]int{a: 1, b: 1}, seen: []string{"/"}, missed: 1},
		{name: "missed, ended early", want: map[string]int{a: 1, b: 1}, seen: []string{"/"}, early: true},
		{name: "twice", want: map[string]int{a: 1}, seen: []string{"/", "/"}, repeated: 1},
		{name: "twice, as often as planned", want: map[string]int{a: 2}, seen: []string{"/", "/"}},
		{name: "once of two times", want: map[string]int{a: 2}, seen: []string{"/"}, missed: 1},
		{name: "twice, ended early", want: map[string]int{a: 1, b: 1}, seen: []string{"/", "/"},
			early: true, repeated: 1},
		{name: "stray", want: map[string]int{a: 1}, seen: []string{"/", "/b", "/b"}, stray: 1},
		{name: "another query is another page", want: map[string]int{a: 1}, seen: []string{"/?"},
			missed: 1, stray: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newTrial(t)
			for _, target := range test.seen {
				r.requests["http://a.test"+target]++
			}
			v := r.judge(plan{requests: test.want}, !test.early)
			if v.missed.count != test.missed || v.repeated.count != test.repeated ||
				v.stray.count != test.stray {
				t.Errorf("missed %q, repeated %q, stray %q; want %d, %d, %d",
					v.missed.first, v.repeated.first, v.stray.first, test.missed, test.repeated, test.stray)
			}
		})
	}
}

func TestFaultsList(t *testing.T) {
	var f faults
	if got := f.list("bad"); got != "" {
		t.Errorf("no faults: %q", got)
	}
	for i := range shown + 2 {
		f.addf("fault %d", i)
	}
	got := f.list("bad")
	if !strings.HasPrefix(got, "bad (12):\n  fault 0\n") ||
		!strings.HasSuffix(got, "  fault 9\n  and 2 more\n") {
		t.Errorf("twelve faults: %q", got)
	}
}
