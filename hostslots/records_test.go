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
		{"http://[::1]", "https://[::1]"},
	} {
		name := []string{"a.test", "b.test", "c.test", "[::1]"}[n]
		for i, key := range keys {
			o := s.EnsureOrigin([]byte(key), []byte(name))
			h := s.Host(s.HostOf(o))
			if got := string(s.Origin(o).Key()); got != key || string(h.Name()) != name {
				t.Errorf("origin %q of host %q; want %q of %q", got, h.Name(), key, name)
			}
			if again := s.EnsureOrigin([]byte(key), []byte(name+".")); again != o {
				t.Errorf("%s has the numbers %d and %d", key, o, again)
			}
			if shares := s.origins.At(o).text == h.record().text; shares != (i == 0 && (n == 0 || n == 3)) {
				t.Errorf("%s has the text of its host: %v", key, shares)
			}
		}
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
		"origins": s.origins.Len(), "bytes of text": s.text.Live(), "names": s.hostByName.Len(),
		"extra gaps": s.pacer.extras.Len(), "suspended queues": s.pools.suspensions.Len(),
		"hosts with own requests": len(s.dispatch.waiting) + len(s.dispatch.closed),
	} {
		if n != 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
}
