package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/internal/robots"
	"urlserver/urlserver/engine"
)

func TestHostName(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{text: "a.example", want: "a.example"},
		{text: "A.Example", want: "a.example"},
		{text: "bücher.example", want: "xn--bcher-kva.example"},
		{text: "xn--bcher-kva.example", want: "xn--bcher-kva.example"},
		{text: "a.example.", want: "a.example."},
		{text: "127.0.0.1", want: "127.0.0.1"},
		{text: "127.1", want: "127.0.0.1"},
		{text: "0x7f000001", want: "127.0.0.1"},
		{text: "[2001:DB8::1]", want: "2001:db8::1"},
		{text: "2001:DB8:0::1", want: "2001:db8::1"},
		{text: "::1", want: "::1"},
		{text: "a_b.example", want: "a_b.example"},
		{text: ""},
		{text: "a b"},
		{text: "a.example:80"},
		{text: "a.example:"},
		{text: "[::1]:80"},
		{text: "[::1]:8080"},
		{text: "[::1"},
		{text: "fe80::1%eth0"},
		{text: "user@a.example"},
		{text: "a.example/x"},
		{text: "a.example?x"},
		{text: "a.example#x"},
		{text: `a.example\x`},
		{text: "a\texample"},
		{text: "a\nexample"},
		{text: "http://a.example/"},
		{text: "a..example"},
		{text: "1.2.3.256"},
		{text: strings.Repeat("a", 64) + ".example"},
	} {
		got, err := hostName(c.text)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("hostName(%q) = %q, %v; want %q", c.text, got, err, c.want)
		}
		if r, ok := errors.AsType[httpError](err); err != nil && (!ok || r.status != 400) {
			t.Errorf("hostName(%q): error %#v; want a refusal with 400", c.text, err)
		}
	}
}

// What is a host stays what it is, whatever else its text means.
func FuzzHostName(f *testing.F) {
	for _, seed := range []string{"a.example", "[::1]", "::ffff:1.2.3.4", "127.1", "ü.example", "a:80",
		"a%2e", "[::1]:80", " a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := hostName(text)
		if err != nil {
			return
		}
		if again, err := hostName(name); again != name || err != nil {
			t.Errorf("hostName(%q) = %q, and of that %q, %v", text, name, again, err)
		}
		if strings.ContainsFunc(name, isNoHost) || name == "" || strings.ToLower(name) != name {
			t.Errorf("hostName(%q) = %q", text, name)
		}
	})
}

func TestExplainHost(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) { c.ReqHostPerSec = 1000; c.Robots.Enabled = false }})
	sp := r.spider()
	before := time.Now().Add(-time.Second)
	r.put("http://127.0.0.1/a")
	sp.next()
	r.put("http://127.0.0.1/b")
	for _, path := range []string{"/api/hosts/127.0.0.1", "/api/hosts/127.1", "/api/hosts/%31%32%37.0.0.1"} {
		var h host
		r.into(&h, "GET", path, "")
		if h.Host != "127.0.0.1" || h.Group == nil || *h.Group != "127.0.0.1" || h.Slot == nil ||
			h.InFlight != 1 || h.Gap != 0.001 {
			t.Errorf("%s: %+v", path, h)
		}
		if h.LastSend == nil || h.LastSend.Before(before) || h.LastSend.After(time.Now()) ||
			h.NextSend == nil || h.BlockedUntil != nil {
			t.Errorf("%s: last send %v, next %v, blocked until %v", path, h.LastSend, h.NextSend, h.BlockedUntil)
		}
		if h.Robots.State != "disabled" || h.Robots.FetchedAt != nil || h.Why == "" {
			t.Errorf("%s: robots %+v, why %q", path, h.Robots, h.Why)
		}
	}
	wantKeys(t, r.ask("GET", "/api/hosts/127.0.0.1", "").body, "host", "group", "slot", "queued",
		"in_flight", "last_send", "next_send",
		"gap_s", "blocked_until", "robots.state", "robots.fetched_at", "robots.crawl_delay_s", "why")
}

func TestExplainRobots(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) { c.Robots.Enabled = true }})
	r.ask("POST", "/api/pause", "")
	r.ask("POST", "/api/hosts/::1/block", `{"until":"2000-01-01T00:00:00Z"}`)
	a := r.ask("GET", "/api/hosts/[::1]", "")
	for _, want := range []string{`"host":"::1"`, `"group":null`, `"slot":null`, `"last_send":null`,
		`"blocked_until":null`,
		`"robots":{"state":"unknown","fetched_at":null,"crawl_delay_s":0}`} {
		if a.StatusCode != 200 || !strings.Contains(a.body, want) {
			t.Errorf("answer %d %s; want %s in it", a.StatusCode, a.body, want)
		}
	}
}

func TestRobotsOf(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) { c.Robots.Enabled = true }})
	policy := robots.Policy{Agent: "a", TTL: time.Hour, MaxCrawlDelay: time.Hour}
	x := engine.Explanation{Robots: policy.Settle(robots.Entry{}, time.Minute,
		robots.Response{Status: 200, Body: []byte("User-agent: *\nCrawl-delay: 1.5\n")})}
	got := r.server.robotsOf(x)
	if got.State != "ok" || got.CrawlDelay != 1.5 || got.FetchedAt == nil {
		t.Fatalf("robots is %+v", got)
	}
	// The daemon has just started, so that a minute on its clock is about a minute from now.
	if ahead := time.Until(*got.FetchedAt); ahead > time.Minute || ahead < 0 {
		t.Errorf("fetched %v from now; want up to a minute", ahead)
	}
}

func TestBlock(t *testing.T) {
	r := newRig(t, setup{})
	block := func(until string) (b blocked) {
		r.into(&b, "POST", "/api/hosts/127.0.0.1/block", fmt.Sprintf(`{"until": %q}`, until))
		return b
	}
	for _, until := range []string{"2200-01-02T03:04:05Z", "9999-12-31T23:59:59Z", "2200-01-02T03:04:05.5+02:00"} {
		b := block(until)
		if b.Host != "127.0.0.1" || b.BlockedUntil == nil {
			t.Fatalf("block until %s: %+v", until, b)
		}
		var h host
		r.into(&h, "GET", "/api/hosts/127.0.0.1", "")
		if off := h.BlockedUntil.Sub(*b.BlockedUntil).Abs(); off > time.Minute {
			t.Errorf("block until %s: told %v, and it is %v", until, b.BlockedUntil, h.BlockedUntil)
		}
		if n := strings.Count(h.Why, "blocked by"); n != 1 {
			t.Errorf("%q says %d times that it is blocked", h.Why, n)
		}
		if h.BlockedUntil == nil || h.BlockedUntil.Before(time.Now().AddDate(50, 0, 0)) ||
			!strings.Contains(h.Why, "blocked by the operator until") {
			t.Errorf("blocked until %s: until %v, why %q", until, h.BlockedUntil, h.Why)
		}
	}
	sp := r.spider()
	r.put("http://127.0.0.1/a", "http://127.0.0.2/b")
	sp.next() // the other one: the order in the index is theirs
	var s status
	if r.into(&s, "GET", "/api/status", ""); s.Sent != 1 {
		t.Errorf("%d are sent; want 1, as one is blocked", s.Sent)
	}
	if b := block("0001-01-01T00:00:00Z"); b.BlockedUntil != nil {
		t.Errorf("unblocked, but until %v", b.BlockedUntil)
	}
	sp.next()
}

func TestSlots(t *testing.T) {
	r := newRig(t, setup{})
	var all []string
	for i := range 5 {
		all = append(all, fmt.Sprintf("http://127.0.0.%d/", i+1))
	}
	if a := r.ask("GET", "/api/slots", ""); !strings.Contains(a.body, `"slots":[]`) {
		t.Errorf("without any: %s", a.body)
	}
	sp := r.spider()
	r.put(all...)
	for range all {
		sp.next()
	}
	seen := map[string]bool{}
	for offset := range 4 {
		var page slotPage
		r.into(&page, "GET", fmt.Sprintf("/api/slots?offset=%d&limit=2", 2*offset), "")
		if want := max(0, min(2, 5-2*offset)); len(page.Slots) != want || page.Offset != 2*offset || page.Limit != 2 {
			t.Errorf("offset %d: %+v; want %d slots", 2*offset, page, want)
		}
		for _, s := range page.Slots {
			seen[s.Group] = true
			if len(s.Hosts) != 1 || s.Hosts[0] != s.Group || s.Active != 1 || s.Queued != 0 ||
				s.Gap != 0.001 || s.NextSend == nil {
				t.Errorf("slot %+v", s)
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("pages show %v; want all 5", seen)
	}
	wantKeys(t, r.ask("GET", "/api/slots?offset=0&limit=1", "").body,
		"slots[].group", "slots[].hosts", "slots[].queued", "slots[].active", "slots[].next_send", "slots[].gap_s")
}
