package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/internal/weburl"
)

func TestEventQueueKeepsOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(), 0))
	var a eventQueue
	var got, want []int
	var times []time.Duration
	for i := range 2000 {
		at := time.Duration(rng.IntN(50))
		times = append(times, at)
		want = append(want, i)
		a.add(at, func() { got = append(got, i) })
	}
	slices.SortStableFunc(want, func(i, j int) int { return int(times[i] - times[j]) })
	for _, ok := a.next(); ok; _, ok = a.next() {
		a.take()()
	}
	if !slices.Equal(got, want) {
		t.Errorf("seed %d: events do not happen by time, and by order of adding at equal times", seed())
	}
}

// TestStreamCutAtEveryByte splits a spider's text in two at each byte, and breaks the connection at
// each byte.
func TestStreamCutAtEveryByte(t *testing.T) {
	const said = "0.0.1 WORKING\r\n0.0.1 DONE 200\nrubbish\n0.0.2 DONE 503 7\n"
	for cut := range len(said) + 1 {
		r := newRun(small(t, "healthy", seed()))
		r.spiders[0].connect()
		c := r.spiders[0].conn
		c.receive(said[:cut])
		c.receive(said[cut:])
		if bad := r.engine.Stats().BadLines; bad != 4 { // none is of a transaction that was
			t.Errorf("two pieces, cut at %d: %d lines; want 4", cut, bad)
		}
		r.spiders[1].connect()
		c = r.spiders[1].conn
		c.receive(said[:cut])
		c.end()
		want := 4 + strings.Count(said[:cut], "\n")
		if bad := r.engine.Stats().BadLines; int(bad) != want || r.oracle.complaint != nil {
			t.Errorf("connection cut at %d: %d lines, complaint %v; want %d", cut, bad,
				r.oracle.complaint, want)
		}
	}
}

func TestOverlongLineEndsConnection(t *testing.T) {
	r := newRun(small(t, "healthy", seed()))
	r.spiders[0].connect()
	c := r.spiders[0].conn
	c.receive(strings.Repeat("x", 8191))
	if c.over {
		t.Error("connection ended at 8191 bytes")
	}
	c.receive("x")
	if !c.over || r.oracle.complaint != nil {
		t.Errorf("connection goes on after 8192 bytes without a line end, complaint %v", r.oracle.complaint)
	}
}

func TestWorldNormalisesURLs(t *testing.T) {
	w := newWorld(&Scenario{Hosts: 500, Addresses: 40, Documents: 5000, Day: time.Hour,
		Trouble: Trouble{Invalid: 0.2}})
	for n := range uint32(5000) {
		raw, text := w.url(n)
		u, err := weburl.Parse([]byte(raw))
		if w.docs[n].kind == badURL {
			if err == nil && len(u.Text()) < 8000 {
				t.Errorf("bad URL %.100q is taken", raw)
			}
			continue
		}
		if err != nil || string(u.Text()) != text {
			t.Fatalf("document %d: %q is %q, %v; want %q", n, raw, u.Text(), err, text)
		}
		if host := w.hosts[w.docs[n].host].name; string(u.Host()) != host {
			t.Errorf("document %d: host of %q is %q; want %q", n, raw, u.Host(), host)
		}
	}
}

func TestAddressesAreDistinct(t *testing.T) {
	seen := map[string]uint32{}
	for n := range uint32(200_000) {
		a := address(n)
		if other, again := seen[a.String()]; again || a.IsPrivate() || a.IsLoopback() {
			t.Fatalf("address(%d) = %v, private, or that of %d", n, a, other)
		}
		seen[a.String()] = n
	}
}

func TestDoneLine(t *testing.T) {
	tests := []struct {
		status, retry int
		want          string
	}{
		{status: -1, retry: -1, want: "0.0.1 DONE\n"},
		{status: 0, retry: -1, want: "0.0.1 DONE 0\n"},
		{status: 429, retry: 0, want: "0.0.1 DONE 429 0\n"},
		{status: -1, retry: 9, want: "0.0.1 DONE\n"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.retry), func(t *testing.T) {
			if got := doneLine("0.0.1", tt.status, tt.retry); got != tt.want {
				t.Errorf("doneLine = %q; want %q", got, tt.want)
			}
		})
	}
}
