package hostslots

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

// TestRecordSizes checks that records begin with a cache line, or do not cross one.
func TestRecordSizes(t *testing.T) {
	for _, c := range []struct {
		what      string
		size, max uintptr
	}{
		{"a document", unsafe.Sizeof(document{}), 32}, {"an origin", unsafe.Sizeof(origin{}), 32},
		{"a host", unsafe.Sizeof(host{}), 128}, {"a group", unsafe.Sizeof(group{}), 256},
	} {
		if c.size != c.max {
			t.Errorf("%s is %d bytes; want %d", c.what, c.size, c.max)
		}
	}
}

// TestHostAndOriginShareText stores the name of a host as a part of the key of its first origin.
func TestHostAndOriginShareText(t *testing.T) {
	s := New(benchConfig(16))
	for n, keys := range [][]string{
		{"http://a.test", "https://a.test", "http://a.test:8080"},
		{"https://b.test:8443", "https://b.test"}, // the first does not end with the name
		{"http://c.test.", "http://c.test"},       // nor does this, as the name has no final dot
		{"http://[::1]", "https://[::1]"},         // nor this, as the name has no brackets
	} {
		name := []string{"a.test", "b.test", "c.test", "::1"}[n]
		for i, key := range keys {
			o := s.EnsureOrigin([]byte(key), []byte(name))
			h := s.Host(s.HostOf(o))
			if got := string(s.Origin(o).Key()); got != key || string(h.Name()) != name {
				t.Errorf("origin %q of host %q; want %q of %q", got, h.Name(), key, name)
			}
			if again := s.EnsureOrigin([]byte(key), []byte(name+".")); again != o {
				t.Errorf("%s has the numbers %d and %d", key, o, again)
			}
			if shares := s.origins.At(o).text == h.record().text; shares != (i == 0 && n == 0) {
				t.Errorf("%s has the text of its host: %v", key, shares)
			}
		}
	}
}

// TestManyOriginsOfAHost: the origins of a host with many ports are in an index, each with its pool queues right
// behind it. That of a host with one is not.
func TestManyOriginsOfAHost(t *testing.T) {
	const ports = 3000
	s, name := New(benchConfig(16)), []byte("a.test")
	var ids [ports]uint32
	key := func(port int) []byte {
		if port == 0 {
			return []byte("http://a.test")
		}
		return fmt.Appendf(nil, "http://a.test:%d", port)
	}
	for port := range ids {
		ids[port] = s.EnsureOrigin(key(port), name)
		for pool := range uint32(port % 3) {
			id := fmt.Appendf(nil, "%d-%d", port, pool)
			s.Offer(0, Candidate{Origin: ids[port], Pool: pool + 1, ID: id, URL: append(key(port), "/"...)})
		}
	}
	for port, id := range ids {
		if again := s.EnsureOrigin(key(port), name); again != id {
			t.Fatalf("port %d has the origins %d and %d", port, id, again)
		}
		pools := -1 // queues calls yield with the origin, too
		s.Origin(id).queues(func(queue uint32) {
			o := s.origins.At(queue)
			if pools++; o.pool != 0 && uint32(o.text) != id {
				t.Fatalf("a pool queue of port %d belongs to origin %d", port, o.text)
			}
		})
		if pools != port%3 {
			t.Fatalf("port %d has %d pool queues; want %d", port, pools, port%3)
		}
	}
	if n := s.otherOrigins.Len(); n != ports {
		t.Errorf("%d origins are in the index; want %d", n, ports)
	}
	if s.EnsureOrigin([]byte("http://b.test"), []byte("b.test")); s.otherOrigins.Len() != ports {
		t.Error("the only origin of a host is in the index")
	}
}

// TestNothingIsLeftOfForgottenHosts forgets hosts with all that a host may have.
func TestNothingIsLeftOfForgottenHosts(t *testing.T) {
	cfg := benchConfig(16)
	cfg.Remember = 0
	s, now := New(cfg), time.Second
	for i := range 8 {
		name := fmt.Appendf(nil, "h%d.test", i)
		for j, key := range []string{"http://%s", "https://%s:8443", "https://%s"} {
			o := s.EnsureOrigin(fmt.Appendf(nil, key, name), name)
			h := s.Host(s.HostOf(o))
			h.Bind(now, Place{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i / 2)})})
			h.SetLimits(now, Limits{Gap: time.Duration(1+i) * time.Second})
			h.SetCrawlDelay(now, time.Duration(i)*time.Second)
			h.QueueOwnRequest(now, uint32(i), FirstTry)
			if names := h.RetractOwnRequests(now, func(uint32) bool { return true }); len(names) != 1 {
				t.Fatalf("%d own requests retracted; want 1", len(names))
			}
			s.Offer(now, Candidate{Origin: o, Pool: uint32(j), ID: fmt.Appendf(nil, "%d-%d", i, j), URL: []byte("x")})
		}
	}
	for suspended := false; s.docs.Len() > 0; now += time.Second {
		for s.Pool(2).Resume(now) {
		}
		for sel, _, ok := s.Next(now); ok; sel, _, ok = s.Next(now) {
			if suspended = !suspended && sel.Pool == 2; suspended {
				s.Suspend(now, sel)
				continue
			}
			s.End(now, s.Done(now, s.Send(now, sel, 1), 503, time.Second))
		}
	}
	for now += 2 * backoffMemory; s.hosts.Len()+s.groups.Len() > 0; now += time.Second {
		s.Tick(now)
	}
	for what, n := range map[string]int{
		"origins": s.origins.Len(), "other origins": s.otherOrigins.Len(),
		"bytes of text": s.text.Live(), "names": s.hostByName.Len(),
		"extra gaps": s.pacer.extras.Len(), "suspended queues": s.pools.suspensions.Len(),
		"limits": s.pacer.limits.Len() + len(s.pacer.limitsNos), "offering queues": s.dispatch.offering.copies.Len(),
		"hosts with own requests": len(s.dispatch.waiting) + len(s.dispatch.closed),
	} {
		if n != 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
}

// TestLimitsAreForgotten changes the limits of two hosts many times, as a rules file with changing
// rates does.
func TestLimitsAreForgotten(t *testing.T) {
	s, now := New(benchConfig(16)), time.Second
	hosts := [2]Host{s.Host(s.EnsureHost([]byte("a.test"))), s.Host(s.EnsureHost([]byte("b.test")))}
	for i := range 3000 {
		want := [len(hosts)]Limits{{Gap: time.Duration(1 + i/2)}, {Gap: time.Duration(1 + (i+1)/2)}}
		for n, h := range hosts { // they have the same limits after every second round
			h.SetLimits(now, want[n])
		}
		for n, h := range hosts {
			if got := h.Limits(); got != want[n] {
				t.Fatalf("round %d: the limits of host %d are %+v; want %+v", i, n, got, want[n])
			}
		}
		if n, most := s.pacer.limits.Len(), 2-(i+1)%2; n != most || len(s.pacer.limitsNos) != most {
			t.Fatalf("round %d: %d and %d limits are known; want %d", i, n, len(s.pacer.limitsNos), most)
		}
	}
	for _, h := range hosts {
		h.SetLimits(now, Limits{})
	}
	if n := s.pacer.limits.Len() + len(s.pacer.limitsNos); n > 0 || s.pacer.limits.Cap() > 4 {
		t.Errorf("%d limits are left, of at most %d at a time; want none, of at most 3", n, s.pacer.limits.Cap()-1)
	}
}
