package resolver

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

var public = netip.MustParseAddr(truth)

func TestCacheEnds(t *testing.T) {
	c := newCache(100)
	name := []byte("a.example")
	c.put(name, kindAddr, public, time.Minute, time.Second)
	for _, tt := range []struct {
		at time.Duration
		ok bool
	}{
		{at: time.Second, ok: true},
		{at: 61*time.Second - 1, ok: true},
		{at: 61 * time.Second},
		{at: time.Hour},
	} {
		if addr, err, ok := c.get(name, tt.at); ok != tt.ok || err != nil || ok && addr != public {
			t.Errorf("at %v: %v, %v, %v; want ok %v", tt.at, addr, err, ok, tt.ok)
		}
	}
	if _, _, ok := c.get([]byte("b.example"), 0); ok {
		t.Error("knows what was never put")
	}
}

func TestCacheKinds(t *testing.T) {
	c := newCache(100)
	for _, tt := range []struct {
		kind  kind
		addr  netip.Addr
		err   error
		stale bool
	}{
		{kind: kindAddr, addr: public, stale: true},
		{kind: kindAddr, addr: netip.MustParseAddr("2600::1"), stale: true},
		{kind: kindLocal, addr: public},
		{kind: kindNoHost, err: ErrNoHost},
		{kind: kindRefused, err: ErrRefused},
		{kind: kindFailed, err: ErrServers},
	} {
		name := []byte("same.example")
		c.put(name, tt.kind, tt.addr, time.Minute, 0)
		if addr, err, ok := c.get(name, 0); !ok || err != tt.err || addr != tt.addr {
			t.Errorf("kind %d: %v, %v, %v; want %v, %v", tt.kind, addr, err, ok, tt.addr, tt.err)
		}
		if addr, ok := c.stale(name, time.Second, time.Hour); ok != tt.stale || ok && addr != tt.addr {
			t.Errorf("kind %d: stale %v, %v; want %v", tt.kind, addr, ok, tt.stale)
		}
	}
	if n := c.len(); n != 1 {
		t.Errorf("%d records for one name", n)
	}
}

func TestCacheStale(t *testing.T) {
	c := newCache(100)
	name := []byte("a.example")
	if _, ok := c.stale(name, time.Second, 0); ok {
		t.Error("stale knows what was never put")
	}
	c.put(name, kindAddr, public, time.Minute, 0)
	last := time.Minute + maxStale
	if addr, ok := c.stale(name, failedFor, last-time.Second); !ok || addr != public {
		t.Errorf("shortly before a day is over: %v, %v", addr, ok)
	}
	if _, _, ok := c.get(name, last-time.Second+failedFor-1); !ok {
		t.Error("a stale address is not used for a while")
	}
	if _, ok := c.stale(name, failedFor, last); ok {
		t.Error("served for longer than a day, since serving it stale renewed it")
	}
}

func TestCacheLongNames(t *testing.T) {
	c := newCache(100)
	longest := []byte(strings.Repeat("a", maxName))
	c.put(longest, kindAddr, public, time.Minute, 0)
	if _, _, ok := c.get(longest, 0); !ok {
		t.Error("the longest name is not remembered")
	}
	c.put(append(longest, 'a'), kindAddr, public, time.Minute, 0)
	if c.len() != 1 {
		t.Error("a name that is too long is remembered")
	}
}

// Of two names with the same hash, neither gets the other's result.
func TestCacheCollision(t *testing.T) {
	g := newGeneration()
	g.add(42, []byte("a.example")).kind = kindAddr
	if g.find(42, []byte("b.example")) != nil || g.find(42, []byte("a.exampl")) != nil {
		t.Error("another name's record was found")
	}
	g.add(42, []byte("b.example")).kind = kindLocal
	if a, b := g.find(42, []byte("a.example")), g.find(42, []byte("b.example")); a == nil || a.kind != kindAddr ||
		b == nil || b.kind != kindLocal {
		t.Errorf("records are %+v and %+v; want one for each name", a, b)
	}
}

// TestCacheAgainstMap compares the cache with a map that keeps everything: cached results are
// right, recent ones are cached, and the size stays within its bound.
func TestCacheAgainstMap(t *testing.T) {
	const size = 5000
	c := newCache(size)
	type entry struct {
		addr netip.Addr
		ends time.Duration
		step int
	}
	all := map[string]entry{}
	rng := rand.New(rand.NewPCG(1, 2))
	for step := range 100_000 {
		now := time.Duration(step) * time.Millisecond
		name := "h" + strconv.Itoa(rng.IntN(4*size)) + ".example"
		if rng.IntN(3) == 0 {
			e := entry{addr: netip.AddrFrom4([4]byte{9, byte(rng.IntN(256)), 1, 1}),
				ends: now + time.Duration(rng.IntN(5000))*time.Millisecond, step: step}
			c.put([]byte(name), kindAddr, e.addr, e.ends-now, now)
			all[name] = e
		}
		e, known := all[name]
		addr, err, ok := c.get([]byte(name), now)
		switch {
		case err != nil, ok && (!known || addr != e.addr || now >= e.ends):
			t.Fatalf("step %d: get(%s) = %v, %v; the map has %+v", step, name, addr, err, e)
		case !ok && known && now < e.ends && step-e.step < size/2:
			t.Fatalf("step %d: %s was forgotten %d steps after its put", step, name, step-e.step)
		case c.len() > size:
			t.Fatalf("step %d: %d records, want at most %d", step, c.len(), size)
		}
	}
}

func TestCachedDoesNotAllocate(t *testing.T) {
	r := start(t, Config{HostsFile: "-"})
	host, bad := []byte("WWW.example.com."), []byte("bad.example.com")
	r.cache.put([]byte("www.example.com"), kindAddr, public, time.Hour, 0)
	r.cache.put(bad, kindNoHost, netip.Addr{}, time.Hour, 0)
	allocs := testing.AllocsPerRun(100, func() {
		if addr, err, ok := r.Cached(host); !ok || err != nil || addr != public {
			t.Error(addr, err, ok)
		}
		if _, err, ok := r.Cached(bad); !ok || err != ErrNoHost {
			t.Error(err, ok)
		}
		if _, _, ok := r.Cached([]byte("unknown.example")); ok {
			t.Error("an unknown host is known")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A million names take little memory, and no work of the garbage collector for each.
func TestCacheMemory(t *testing.T) {
	const n = 1_000_000
	c := newCache(2 * n)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, names := heap(), 0
	var buf []byte
	for i := range n {
		buf = append(strconv.AppendInt(buf[:0], int64(i), 10), ".some-host.example"...)
		names += len(buf)
		c.put(buf, kindAddr, public, time.Hour, 0)
	}
	over := (float64(heap()-before) - float64(names)) / n
	t.Logf("%.1f bytes a record over its name of %d", over, names/n)
	if over > 150 {
		t.Errorf("%.1f bytes a record over its name, want at most 150", over)
	}
	runtime.KeepAlive(c)
}
