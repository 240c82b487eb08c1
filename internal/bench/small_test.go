package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"urlserver/docindex"
	"urlserver/docindex/httpclient"
	"urlserver/internal/resolver"
	"urlserver/internal/weburl"
	"urlserver/protocol"
	"urlserver/urlserver"
)

func TestNamesAndNumbers(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 65_535, 65_536, 199_999} {
		if got, ok := numberOf(addrOf(n)); !ok || got != n {
			t.Errorf("numberOf(%v) = %d, %v; want %d", addrOf(n), got, ok, n)
		}
		if got, ok := numberIn(hostName(n)); !ok || got != n {
			t.Errorf("numberIn(%s) = %d, %v; want %d", hostName(n), got, ok, n)
		}
	}
	if got, ok := numberIn(strings.ToUpper(hostName(7))); !ok || got != 7 {
		t.Errorf("in capitals: %d, %v", got, ok)
	}
	for _, name := range []string{"", "h1" + zone, "x0000001" + zone, "h000000x" + zone, "h0000001.example",
		"h-000001" + zone} {
		if _, ok := numberIn(name); ok {
			t.Errorf("numberIn(%q) is ok", name)
		}
	}
	for _, a := range []string{"127.0.0.1", "10.1.0.0", "::1"} {
		if _, ok := numberOf(netip.MustParseAddr(a)); ok {
			t.Errorf("numberOf(%s) is ok", a)
		}
	}
}

func TestURLsAreInNormalForm(t *testing.T) {
	for _, text := range [][]byte{appendAddrURL(nil, 1_234_567, 10_000),
		appendNameURL(nil, 999_999, 99_999)} {
		u, err := weburl.Parse(text)
		if err != nil || string(u.Text()) != string(text) {
			t.Errorf("%s is read as %s, %v", text, u.Text(), err)
		}
	}
	if got := appendNameURL([]byte("before"), 1, 2); len(got) != len("before")+urlSize {
		t.Errorf("%s has %d bytes; want %d", got, len(got), urlSize)
	}
}

func TestDNSServer(t *testing.T) {
	s := &names{Addrs: 10}
	addr, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r, err := resolver.New(resolver.Config{
		Servers:       []string{addr.(string)},
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, HostsFile: "-",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.Lookup(t.Context(), hostName(123)); err != nil || got != addrOf(3) {
		t.Errorf("Lookup = %v, %v; want %v", got, err, addrOf(3))
	}
	if got, err := r.Lookup(t.Context(), "other.example"); err == nil {
		t.Errorf("Lookup of a name that does not exist = %v", got)
	}
}

func FuzzDNSAnswer(f *testing.F) {
	name := dnsmessage.MustNewName(hostName(5) + ".")
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: name, Type: kind,
			Class: dnsmessage.ClassINET}}}
		query, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		s := &names{Addrs: 7}
		answer, err := s.answer(query, nil)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil {
			t.Fatalf("answer %x to %x: %v", answer, query, err)
		}
		if !m.Response || len(m.Questions) != 1 || len(m.Answers) > 1 {
			t.Errorf("answer to %x = %v", query, m)
		}
	})
}

// candidates returns what the index at base offers to a daemon.
func candidates(t *testing.T, base string, most int, reject ...string) (urls []string) {
	t.Helper()
	c, err := httpclient.New(httpclient.Config{URL: base})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b docindex.Batch
	if err := c.Candidates(t.Context(), most, reject, &b); err != nil {
		t.Fatal(err)
	}
	if b.EndedLen() > 0 || b.Skipped() > 0 {
		t.Errorf("%d invalid, %d skipped", b.EndedLen(), b.Skipped())
	}
	for i := range b.Len() {
		urls = append(urls, string(b.At(i).URL))
	}
	return urls
}

func TestIndexOffersEachURLOnce(t *testing.T) {
	x := &index{urls: 40, hosts: 8, addrs: 4} // 2 hosts per address, 5 URLs per host
	base, stop, err := x.serve()
	if err != nil {
		t.Fatal(err)
	}
	if got := candidates(t, base, 9); got != nil {
		t.Errorf("9 of an address that has 10: %q", got)
	}
	seen := candidates(t, base, 25)
	if len(seen) != 20 {
		t.Errorf("at most 25 of 10 an address: %d", len(seen))
	}
	if got := candidates(t, base, 25, hostName(6), "unknown.example"); got != nil {
		t.Errorf("one of its hosts is rejected: %q", got)
	}
	got := candidates(t, base, 25, hostName(7))
	if len(got) != 10 {
		t.Errorf("before the address of a rejected host: %d", len(got))
	}
	seen = append(append(seen, got...), candidates(t, base, 25)...)
	slices.Sort(seen)
	if n := len(slices.Compact(seen)); n != 40 || len(seen) != 40 {
		t.Errorf("offered %d, %d different ones; want 40", len(seen), n)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestSpiderNotesWhatIsLate(t *testing.T) {
	s := &spider{Gap: time.Second, timing: true}
	line := protocol.AppendFetch(nil, protocol.Trans{Slot: 1}, []byte("7"), addrOf(9),
		[]byte("http://a.example/"))
	other := protocol.AppendFetch(nil, protocol.Trans{Slot: 2}, []byte("8"), addrOf(70_000),
		[]byte("http://b.example/"))
	for _, n := range []struct {
		line []byte
		at   time.Duration
	}{
		{line: line, at: time.Second}, {line: other, at: 1100 * time.Millisecond},
		{line: line, at: 2005 * time.Millisecond}, {line: []byte("no line"), at: 2 * time.Second},
		{line: other, at: 2090 * time.Millisecond}, {line: line, at: 3005 * time.Millisecond},
	} {
		s.note(n.line, n.at)
	}
	if want := []time.Duration{5 * time.Millisecond, 0, 0}; !slices.Equal(s.late, want) ||
		s.early != 10*time.Millisecond {
		t.Errorf("late = %v, early %v; want %v, 10ms", s.late, s.early, want)
	}
}

func TestRoundGoesThroughAllSlots(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		r := newRound(100, shuffled)
		if err := r.run(250); err != nil {
			t.Fatal(err)
		}
		if c := r.slots.Counts(); c.Held != 100 || c.Used != 100 || r.next != 350 {
			t.Errorf("shuffled %v: %d held, %d slots, %d offered; want 100, 100, 350", shuffled,
				c.Held, c.Used, r.next)
		}
	}
}

func TestSlotsAreProfiledWhereWanted(t *testing.T) {
	b := testBench(t)
	b.profiles = t.TempDir()
	stop, err := b.profile("x.prof")
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(b.profiles, "*.prof")); err != nil || len(files) != 1 {
		t.Errorf("profiles: %v, %v", files, err)
	}
}

// TestSmallCrawl runs a daemon and spiders in three processes on a small index, and the same lines
// without a daemon.
func TestSmallCrawl(t *testing.T) {
	const urls, hosts = 2000, 20
	b, ctx := testBench(t), t.Context()
	var daemonAddr, wireAddr string
	d := startChild(t, b, "daemon", &daemon{Slots: hosts, PerSec: 1e6, MaxInFlight: 100, Batch: 500,
		URLs: urls, Hosts: hosts}, &daemonAddr)
	startChild(t, b, "wire", &wire{URLs: urls, Hosts: hosts}, &wireAddr)
	if err := d.ask("fill", "", nil); err != nil {
		t.Fatal(err)
	}
	for what, addr := range map[string]string{"daemon": daemonAddr, "wire": wireAddr} {
		s := startChild(t, b, "spider", &spider{Addr: addr, Conns: 1, Lines: urls, Gap: time.Hour}, nil)
		var r result
		if err := s.ask("wait", "", &r); err != nil || r.Took <= 0 || r.CPU <= 0 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	status, err := await(ctx, d, 5*time.Minute,
		func(s *urlserver.Status) bool { return s.Outcomes[docindex.Done] == urls })
	if err != nil || status.Sent != urls || status.BadLines != 0 {
		t.Errorf("sent %d, bad lines %d, %v; want %d and 0", status.Sent, status.BadLines, err, urls)
	}
}

// TestSmallCrawlsStop requests the state of crawls and stops one.
func TestSmallCrawlsStop(t *testing.T) {
	for _, kind := range []string{"memory", "disk"} {
		job := daemon{Slots: 10, PerSec: 1, MaxInFlight: 10, Batch: 10, URLs: 10, Hosts: 10, CrawlURLs: 500,
			CrawlHosts: 50, Crawls: 5}
		d, _, stop, err := startControlled(t.Context(), testBench(t), kind, job)
		if err != nil {
			t.Fatal(err)
		}
		var info, stopped asked
		if err := errors.Join(d.ask("crawls", "", nil), d.ask("info", "", &info),
			d.ask("stop", "c3", &stopped)); err != nil {
			t.Fatal(err)
		}
		if info.Spread.Count != infoCalls || info.Purged != 0 || stopped.Spread.Count != 1 ||
			stopped.Purged == 0 {
			t.Errorf("%s: info %+v, stop %+v", kind, info, stopped)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestSmallRequests reads some requests to crawl from a broker.
func TestSmallRequests(t *testing.T) {
	const some = 3000
	b := testBench(t)
	var addr string
	k, err := b.start(t.Context(), "broker", &broker{Requests: some}, &addr)
	if err != nil {
		t.Fatal(err)
	}
	d, _, stop, err := startControlled(t.Context(), b, "disk", daemon{Slots: 10, PerSec: 1, MaxInFlight: 10,
		Batch: 10, CrawlURLs: some})
	if err != nil {
		t.Fatal(err)
	}
	var got asked
	if err := d.ask("requests", addr, &got); err != nil {
		t.Fatal(err)
	}
	if got.Spread.Count != 1 || got.Spread.Max <= 0 {
		t.Errorf("requests: %+v", got)
	}
	if err := errors.Join(stop(), k.stop()); err != nil {
		t.Error(err)
	}
}

// TestSmallDaemons runs two daemons on a small index in Redis.
func TestSmallDaemons(t *testing.T) {
	s := scale{daemons: 2, urls: 300, hosts: 30}
	err := s.run(t.Context(), testBench(t))
	if errors.Is(err, errNoRedis) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.took <= 0 || s.byDaemons <= 0 || s.bySpiders <= 0 || s.byRedis.ran <= 0 {
		t.Errorf("%+v: something took no time", s)
	}
	if r := s.row(s.rate()); !strings.HasSuffix(r.what, "daemons: 2") ||
		!strings.HasPrefix(r.beside, "1.00 of") {
		t.Errorf("row = %v", r)
	}
}

func TestParseScheduled(t *testing.T) {
	got, err := parseScheduled("1500000 20 7\n")
	if want := (scheduled{ran: 1500 * time.Microsecond, waited: 20}); err != nil || got != want {
		t.Errorf("parseScheduled = %+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{"", "1\n", "x 1 2\n"} {
		if _, err := parseScheduled(text); err == nil {
			t.Errorf("parseScheduled(%q) is no error", text)
		}
	}
}

// TestSmallRamp starts groups one after the other.
func TestSmallRamp(t *testing.T) {
	b := testBench(t)
	var addr string
	d := startChild(t, b, "daemon", &daemon{Slots: 10, PerSec: 1000, MaxInFlight: 100, Batch: 500, URLs: 30,
		Hosts: 10}, &addr)
	startChild(t, b, "spider", &spider{Addr: addr, Conns: 2, Gap: time.Millisecond}, nil)
	if err := d.ask("ramp", "", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := await(t.Context(), d, 5*time.Minute,
		func(s *urlserver.Status) bool { return s.Outcomes[docindex.Done] == 30 }); err != nil {
		t.Error(err)
	}
}

func TestAwaitSaysWhereItStands(t *testing.T) {
	b := testBench(t)
	var addr string
	d := startChild(t, b, "daemon", &daemon{Slots: 10, PerSec: 1, MaxInFlight: 1, Batch: 1}, &addr)
	_, err := await(t.Context(), d, time.Millisecond, func(*urlserver.Status) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "held 0") {
		t.Errorf("await = %v", err)
	}
}

// startChild starts a child process that ends with the test.
func startChild(t *testing.T, b *bench, role string, job, ready any) *child {
	t.Helper()
	c, err := b.start(context.WithoutCancel(t.Context()), role, job, ready)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c
}

func TestJobsSurviveTheirJourney(t *testing.T) {
	job := daemon{Slots: 1, PerSec: 0.5, MaxInFlight: 2, Batch: 3, Index: "http://x", DNS: "y",
		URLs: 4, Hosts: 5}
	text, err := json.Marshal(&job)
	if err != nil {
		t.Fatal(err)
	}
	var got daemon
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&got)
	if err != nil || string(again) != string(text) || strings.Contains(string(text), "store") {
		t.Errorf("%s comes out as %s, %v", text, again, err)
	}
}

func TestIdleDaemonHoldsWhatItIsGiven(t *testing.T) {
	d, stop, err := startIdle(t.Context(), testBench(t), 20)
	if err != nil {
		t.Fatal(err)
	}
	var s urlserver.Status
	if err := d.ask("status", "", &s); err != nil || s.Slots.Used != 20 || s.Sent != 0 ||
		len(s.Spiders) != 1 {
		t.Errorf("%d slots used, %d sent, %d spiders, %v; want 20, 0, 1", s.Slots.Used, s.Sent,
			len(s.Spiders), err)
	}
	if _, err := usages([]*child{d, d}); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
