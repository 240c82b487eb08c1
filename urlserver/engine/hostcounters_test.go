package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"urlserver/configs"
	"urlserver/docindex"
)

// TestWhatCameBackOfAHost ends documents in each way, and looks at the figures of their host and of
// all.
func TestWhatCameBackOfAHost(t *testing.T) {
	p := newScript(t, "Queue_Count=4 Req_Host_Per_Sec=1000.0 Req_Host_Concurrent=8")
	p.event([]string{"index", "1=http://10.0.0.1/1", "2=http://10.0.0.1/2", "3=http://10.0.0.1/3",
		"4=http://10.0.0.1/4",
		"5=http://10.0.0.1/5", "6=http://10.0.0.1/6", "7=http://nowhere.test/7"})
	p.event([]string{"resolved", "nowhere.test", "fail"})
	p.event([]string{"spider", "A"})
	p.step(t)
	p.pass(t, 2*time.Second)
	look := func(host string) Fetched {
		x, known := p.e.Explain([]byte(host))
		if !known {
			t.Fatalf("%s is not known", host)
		}
		return x.Fetched
	}
	if f := look("10.0.0.1"); f != (Fetched{}) {
		t.Errorf("before anything came back: %+v", f)
	}
	for i, status := range []string{"200", "301", "404", "503", "0", ""} {
		p.event([]string{"A:", fmt.Sprintf("0.%d.0", i), "DONE", status}[:3+min(1, len(status))])
	}
	p.step(t)
	f := look("10.0.0.1")
	want := [hostClasses]uint32{docindex.Class2xx: 1, docindex.Class3xx: 1, docindex.Class4xx: 1,
		docindex.Class5xx: 1, docindex.ClassNone: 2}
	if f.Classes != want || f.Done() != 6 || !f.HasStatus || f.LastStatus != 0 ||
		f.LastError != "no answer" || f.ErrorAt != p.now {
		t.Errorf("figures: %+v; want %v, the last one without answer", f, want)
	}
	if !f.HasMean || f.Mean < time.Second || f.Mean > 2*time.Second {
		t.Errorf("a fetch took %v on average, %v; the lines went out in the first milliseconds of two "+
			"seconds", f.Mean, f.HasMean)
	}
	if f = look("nowhere.test"); f.Classes[docindex.ClassDNS] != 1 || f.HasMean || f.HasStatus || f.LastError == "" {
		t.Errorf("of a host without address: %+v", f)
	}
	all := [docindex.Classes]uint64{docindex.Class2xx: 1, docindex.Class3xx: 1, docindex.Class4xx: 1,
		docindex.Class5xx: 1, docindex.ClassNone: 2, docindex.ClassDNS: 1}
	if got := p.e.Stats().Classes; got != all {
		t.Errorf("of all: %v; want %v", got, all)
	}
}

// TestNameFaults: the figures of a host tell why it had no address.
func TestNameFaults(t *testing.T) {
	errGone, errRefused, errServers := errors.New("gone"), errors.New("refused"), errors.New("servers")
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for host, c := range map[string]struct {
		err  error
		want string
	}{
		"gone.test":    {errGone, "does not exist, or has no address"},
		"refused.test": {errRefused, "resolver.allow_networks"},
		"servers.test": {errServers, "resolver.give_up"},
	} {
		cfg := configs.Default()
		cfg.Resolver.GiveUp = 0
		e := New(cfg, Options{Refused: is(errRefused), ForNow: is(errServers),
			Cached: func([]byte) (netip.Addr, error, bool) { return netip.Addr{}, c.err, true }})
		e.Connected("A")
		var p Prepared
		p.Batch.Add([]byte("1"), []byte("http://"+host+"/"), 0)
		p.Prepare()
		e.Answered(&p)
		e.Step(nil)
		e.Step(nil)
		if x, _ := e.Explain([]byte(host)); !strings.Contains(x.Fetched.LastError, c.want) {
			t.Errorf("%s: %q; want %q in it", host, x.Fetched.LastError, c.want)
		}
	}
}

// TestFiguresOfANumberThatIsAnothers: the slots give the numbers of forgotten hosts to others,
// which begin at zero.
func TestFiguresOfANumberThatIsAnothers(t *testing.T) {
	const hashA, hashB, hashC = 5, 6, 7
	e := New(configs.Default(), Options{})
	e.outcomes.byHost.at(7, hashA).classes[docindex.Class2xx] = 5
	if f := e.outcomes.byHost.look(7, hashB); f != (hostCounters{}) {
		t.Errorf("b.test has what came back of a.test: %+v", f)
	}
	if f := e.outcomes.byHost.look(7, hashA); f.classes[docindex.Class2xx] != 5 {
		t.Errorf("a.test: %+v", f)
	}
	if f := e.outcomes.byHost.at(7, hashB); f.classes != ([hostClasses]uint32{}) {
		t.Errorf("b.test begins with %+v", f)
	}
	if f := e.outcomes.byHost.look(1<<20, hashC); f != (hostCounters{}) {
		t.Errorf("a host that nothing came back of: %+v", f)
	}
}

// TestFiguresAreSmall bounds what a host costs, which has a record of its own in the slots.
func TestFiguresAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(hostCounters{}); size > 72 {
		t.Errorf("the figures of a host take %d bytes", size)
	}
}

// TestHostWalk has lists be those that sorting all hosts would give, and no call look at more hosts
// than its share.
func TestHostWalk(t *testing.T) {
	const hosts = 3*hostsStep + 5
	p := newScript(t, "Queue_Count=9 docindex.batch=100000")
	docs := []string{"index"}
	for n := range hosts {
		for i := range 1 + n%7 {
			docs = append(docs, fmt.Sprintf("%d-%d=http://10.1.%d.%d/%d", n, i, n/200, n%200, i))
		}
	}
	p.event(docs)
	p.step(t)
	walk := func(w *HostWalk) *HostWalk {
		calls := 1
		for ; p.e.WalkHosts(w); calls++ {
			if int(w.next) > calls*hostsStep {
				t.Fatalf("after %d calls %d hosts were looked at", calls, w.next)
			}
		}
		p.e.FinishHosts(w)
		return w
	}
	w := walk(&HostWalk{Order: ByHeld, Limit: 10})
	if w.All != hosts || w.Matched != hosts || len(w.Rows) != 10 {
		t.Fatalf("%d of %d hosts, %d rows", w.Matched, w.All, len(w.Rows))
	}
	for i, r := range w.Rows {
		if r.Held != 7 || i > 0 && r.Name <= w.Rows[i-1].Name {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	w = walk(&HostWalk{Order: ByHeld, Reverse: true, Limit: 3})
	if w.Rows[0].Held != 1 || w.Rows[2].Held != 1 {
		t.Errorf("the least first: %+v", w.Rows)
	}
	w = walk(&HostWalk{Order: ByHostName, Text: []byte(".1.19"), Limit: 4})
	if w.Matched != 11 || len(w.Rows) != 4 || w.Rows[0].Name != "10.1.1.19" || w.Rows[1].Name != "10.1.1.190" {
		t.Errorf("by name: %d, %+v", w.Matched, w.Rows)
	}
	if w = walk(&HostWalk{Order: ByDone, Failed: true, Limit: 4}); w.Matched != 0 || len(w.Rows) != 0 {
		t.Errorf("none has failed: %+v", w.Rows)
	}
}
