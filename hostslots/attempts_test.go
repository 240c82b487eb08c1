package hostslots

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestManyAttempts goes to the most attempts that the settings allow. Attempts, arrival and rank
// share one number.
func TestManyAttempts(t *testing.T) {
	const most = 1000
	s := New(Config{
		Count: 1, Len: 8, Concurrent: 1, StatusTimeout: time.Second, MaxAttempts: most, RejectOver: 9,
	})
	o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
	s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
	for id := range 7 { // so that the first one's rank counts
		s.Offer(0, Candidate{
			Origin: o, ID: fmt.Appendf(nil, "%d", id), URL: []byte("http://a.test/"), Priority: 0,
		})
	}
	for try := 1; try <= most; try++ {
		turn, _, ok := s.Next(0)
		if got := s.Doc(turn.Doc); !ok || string(got.ID) != "0" || got.Attempts != try-1 {
			t.Fatalf("try %d: Next = document %s with %d attempts, %v; want 0",
				try, got.ID, got.Attempts, ok)
		}
		s.Send(0, turn, 1)
		doc, _ := s.Lost(0, 1)
		if over := s.Pool(0).Requeue(0, doc, Whole); doc != turn.Doc || over != (try == most) {
			t.Fatalf("try %d: Lost = %d, %v; want document %d and over only at %d",
				try, doc, over, turn.Doc, most)
		}
	}
}

// TestDocumentsKeepOrder: documents leave the heap of an origin by priority and, within one, by
// arrival, in whatever order of priorities they came.
func TestDocumentsKeepOrder(t *testing.T) {
	const docs = 5000
	for name, priority := range map[string]func(i int) int32{
		"one":     func(int) int32 { return 0 },
		"rising":  func(i int) int32 { return int32(i) },
		"falling": func(i int) int32 { return int32(-i) },
		"mixed":   func(i int) int32 { return int32(i * 7919 % 13) },
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{
				Count: 1, Len: docs, Concurrent: 1, MaxAttempts: 1, StatusTimeout: time.Hour, RejectOver: docs,
			})
			o := s.EnsureOrigin([]byte("http://a.test"), []byte("a.test"))
			s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.MustParseAddr("10.0.0.1")})
			for i := range docs {
				s.Offer(0, Candidate{
					Origin: o, ID: fmt.Appendf(nil, "%06d", i), URL: []byte("http://a.test/"), Priority: priority(i),
				})
			}
			last := Doc{ID: []byte(""), Priority: 1 << 30}
			for i := range docs {
				turn, _, _ := s.Next(0)
				d := s.Doc(turn.Doc)
				if d.Priority > last.Priority || d.Priority == last.Priority && string(d.ID) <= string(last.ID) {
					t.Fatalf("document %d is %s with priority %d, after %s with %d",
						i, d.ID, d.Priority, last.ID, last.Priority)
				}
				last = Doc{ID: []byte(string(d.ID)), Priority: d.Priority}
				s.DequeueSelected(0, turn)
				s.End(0, turn.Doc)
			}
		})
	}
}
