package hostslots

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

func crawlSlots(counted bool) *Slots {
	return New(Config{
		Count: 4, Len: 64, Concurrent: 1, StatusTimeout: time.Minute, MaxAttempts: 3,
		RejectOver: 100, Remember: 100, CountDocs: counted,
	})
}

func offerOf(s *Slots, host, id, crawl string) {
	o := s.EnsureOrigin([]byte("http://"+host), []byte(host))
	s.Offer(0, Candidate{
		Origin: o, Crawl: []byte(crawl), ID: []byte(id), URL: []byte("http://" + host + "/" + id),
	})
}

func crawlsOf(s *Slots, group uint32) map[string]int {
	got := map[string]int{}
	s.Group(group).Crawls(100, func(name string, docs int) { got[name] += docs })
	return got
}

// TestCrawlsOfUnresolvedHosts: they are counted for a group once the host joins it.
func TestCrawlsOfUnresolvedHosts(t *testing.T) {
	s := crawlSlots(true)
	for i, crawl := range []string{"one", "one", "two", ""} {
		offerOf(s, "a.test", fmt.Sprint(i), crawl)
	}
	offerOf(s, "b.test", "b", "two")
	a, b, addr := s.FindHost([]byte("a.test")), s.FindHost([]byte("b.test")), netip.MustParseAddr("192.0.2.1")
	s.Host(a).Bind(0, Place{Addr: addr})
	s.Host(b).Bind(0, Place{Addr: addr})
	group := s.hosts.At(a).group
	if got, want := crawlsOf(s, group), map[string]int{"one": 2, "two": 2}; !maps.Equal(got, want) {
		t.Errorf("crawls of both = %v; want %v", got, want)
	}
	s.Host(a).Move(0, Place{Addr: addr, Group: "name"}, false)
	if got, want := crawlsOf(s, group), map[string]int{"two": 1}; !maps.Equal(got, want) {
		t.Errorf("crawls of the one left = %v; want %v", got, want)
	}
	s.End(0, s.dropped("0"))
	s.Host(a).Bind(0, Place{Addr: addr, Group: "name"})
	if got, want := crawlsOf(s, s.hosts.At(a).group), map[string]int{"one": 1, "two": 1}; !maps.Equal(got, want) {
		t.Errorf("crawls of the one moved = %v; want %v", got, want)
	}
}

// dropped takes a document out of its queue; 0: it is not held.
func (s *Slots) dropped(id string) uint32 {
	n := s.FindDoc([]byte(id))
	if n != 0 {
		s.Dequeue(n)
	}
	return n
}

// TestCrawlsTakeNumbersWhileTheyLast: as many crawls as there are numbers are counted, and a free
// number is used again.
func TestCrawlsTakeNumbersWhileTheyLast(t *testing.T) {
	s := crawlSlots(true)
	for i := range maxCrawls + 2 {
		offerOf(s, "a.test", fmt.Sprint(i), fmt.Sprint("crawl", i))
	}
	if len(s.crawls.byName) != maxCrawls || s.crawls.counts.Len() != maxCrawls {
		t.Errorf("%d crawls are told apart, in %d counts; want %d",
			len(s.crawls.byName), s.crawls.counts.Len(), maxCrawls)
	}
	s.End(0, s.dropped(fmt.Sprint(maxCrawls))) // of none, since it was one too many
	s.End(0, s.dropped("7"))
	offerOf(s, "a.test", "x", "another")
	offerOf(s, "a.test", "y", "one more")
	no, numbers := s.crawls.byName["another"], len(s.crawls.crawls)
	if no != 8 || s.crawls.byName["one more"] != 0 || numbers != maxCrawls+1 {
		t.Errorf("the next two have numbers %d and %d of %d; want 8, which has become free, and none",
			no, s.crawls.byName["one more"], len(s.crawls.crawls))
	}
	s.End(0, s.dropped("x"))
	for i := range maxCrawls + 2 {
		if n := s.dropped(fmt.Sprint(i)); n != 0 {
			s.End(0, n)
		}
	}
	s.End(0, s.dropped("y"))
	if len(s.crawls.byName) != 0 || s.crawls.counts.Len() != 0 || len(s.crawls.byKey) != 0 ||
		len(s.crawls.free) != maxCrawls {
		t.Errorf("in the end %d crawls have %d counts; want none",
			len(s.crawls.byName), s.crawls.counts.Len())
	}
}

// TestCrawlsCostNothing if documents are of no crawl, or are not to be counted.
func TestCrawlsCostNothing(t *testing.T) {
	plain, uncounted := crawlSlots(true), crawlSlots(false)
	for i := range 100 {
		offerOf(plain, "a.test", fmt.Sprint(i), "")
		offerOf(uncounted, "a.test", fmt.Sprint(i), "one")
	}
	for name, s := range map[string]*Slots{"no crawl": plain, "not counted": uncounted} {
		if s.crawls.counts.Cap() > 1 || len(s.crawls.byKey)+len(s.crawls.byName) > 0 ||
			s.text.Live() != plain.text.Live() {
			t.Errorf("%s: %d counts of %d crawls, %d bytes of text; want %d bytes and nothing else",
				name, s.crawls.counts.Len(), len(s.crawls.byName), s.text.Live(), plain.text.Live())
		}
	}
	if size := unsafe.Sizeof(document{}); size != 32 {
		t.Errorf("a document is %d bytes; want 32", size)
	}
}
