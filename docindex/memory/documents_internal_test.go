package memory

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(record{}); n != recordBytes {
		t.Errorf("a record has %d bytes; recordBytes says %d", n, recordBytes)
	}
	if n := unsafe.Sizeof(queueOrder{}); n != queueOrderBytes {
		t.Errorf("a chain has %d bytes; chainBytes says %d", n, queueOrderBytes)
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		id   string
		want uint32
		ok   bool
	}{
		{id: "1", want: 1, ok: true},
		{id: "4294967295", want: math.MaxUint32, ok: true},
		{id: "4294967296"},
		{id: "9999999999"},
		{id: "42949672950"},
		{id: ""},
		{id: "0"},
		{id: "01"},
		{id: "-1"},
		{id: "+1"},
		{id: "1a"},
	} {
		if n, ok := number([]byte(c.id)); ok != c.ok || ok && n != c.want {
			t.Errorf("number(%q) = %d, %v; want %d, %v", c.id, n, ok, c.want, c.ok)
		}
	}
}

func TestOwnID(t *testing.T) {
	m := New()
	var p docindex.Puts
	for i, id := range []string{"2", "4294967300", "3", "", "4", ""} {
		put := docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d", i), DocID: []byte(id)}
		if err := p.Add(put); err != nil {
			t.Fatal(err)
		}
	}
	res, err := m.Put(t.Context(), &p)
	if err != nil || res.New != 5 || len(res.Refused) != 1 || res.Refused[0].Index != 4 {
		t.Fatalf("Put = %+v, %v; want that 4 is taken by the fourth document", res, err)
	}
	var b docindex.Batch
	if err := m.Candidates(t.Context(), 10, nil, &b); err != nil {
		t.Fatal(err)
	}
	// The third asked for its own number, and the fifth's number is free.
	for i, want := range []string{"2", "4294967300", "3", "4", "5"} {
		if got := string(b.At(i).DocID); got != want {
			t.Errorf("DOC_ID of document %d is %s; want %s", i+1, got, want)
		}
	}
	if n := m.docs.byID.Len(); n != 2 {
		t.Errorf("%d DOC_IDs are kept apart; want 2", n)
	}
}

func TestOwnIDTaken(t *testing.T) {
	m := New()
	var p docindex.Puts
	for i, id := range []string{"3", "4294967299", ""} {
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d", i), DocID: []byte(id)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.docs.docID(nil, 3)), "8589934595"; got != want { // 3 + 2 * 2^32
		t.Errorf("DOC_ID of the third document is %s; want %s", got, want)
	}
	if id := m.docs.findID([]byte("8589934595")); id != 3 {
		t.Errorf("it is found as %d; want 3", id)
	}
}

func TestExtra(t *testing.T) {
	s := newDocumentTable()
	p := docindex.Put{URL: []byte("http://a.test/"), DocID: []byte("id"), Metadata: bytes.Repeat([]byte("m"), 3000)}
	id := s.add(1, &p, 1)
	r := s.records.At(id)
	for _, metadata := range []string{string(p.Metadata), "{}", "", "more than before"} {
		s.setPacked(r, []byte(metadata))
		got := s.extra(r)
		if string(got.id) != "id" || string(got.packed) != metadata || string(s.url(r)) != string(p.URL) {
			t.Errorf("extra of %s = %q; want id and %.20s", s.url(r), got, metadata)
		}
	}
	if n := s.bytes.Live(); n > 64 {
		t.Errorf("%d bytes are in use for one small document", n)
	}
}

// TestDue sets due times and reads them; those beyond 48 bits become the nearest one within.
func TestDue(t *testing.T) {
	for _, c := range []struct{ set, want int64 }{
		{0, 0}, {1, 1}, {-1, -1}, {1 << 32, 1 << 32}, {-1 << 32, -1 << 32}, {1<<32 - 1, 1<<32 - 1},
		{maxDue, maxDue}, {-maxDue, -maxDue}, {maxDue + 1, maxDue}, {math.MaxInt64 - 1, maxDue},
		{math.MinInt64, -maxDue},
	} {
		var r record
		if r.setDue(c.set); r.due() != c.want {
			t.Errorf("setDue(%d): due is %d; want %d", c.set, r.due(), c.want)
		}
	}
}

func TestLeaseEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease time.Duration
		want  int64
	}{
		{name: "whole", lease: time.Second, want: 6000},
		{name: "least", lease: 1, want: 5001},
		{name: "rounded up", lease: time.Second + 1, want: 6001},
		{name: "endless", lease: math.MaxInt64, want: 5000 + math.MaxInt64/1_000_000 + 1},
	} {
		if got := embedded.LeaseEnd(5000, c.lease); got != c.want {
			t.Errorf("%s: embedded.LeaseEnd(5000, %v) = %d; want %d", c.name, c.lease, got, c.want)
		}
	}
}

// TestOrderTwin compares the order of a queue with a sorted list, whatever is pushed and pulled.
func TestOrderTwin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for round := range 50 {
		s := newDocumentTable()
		var c order
		var twin []uint32
		spread := 1 + rnd.IntN(100)
		for step := range 500 {
			if len(twin) > 0 && rnd.IntN(3) == 0 {
				i := rnd.IntN(len(twin)) * rnd.IntN(2)
				s.pull(&c, twin[i])
				twin = slices.Delete(twin, i, i+1)
			} else {
				id := s.records.New()
				r := record{priority: int32(rnd.IntN(3)), seq: uint32(step), urlLen: 1}
				r.setDue(int64(rnd.IntN(spread)))
				*s.records.At(id) = r
				s.push(&c, id)
				at, _ := slices.BinarySearchFunc(twin, id, func(a, b uint32) int {
					if s.goesBefore(a, b) {
						return -1
					}
					return 1
				})
				twin = slices.Insert(twin, at, id)
			}
			if first := append(twin, 0)[0]; c.root != first {
				t.Fatalf("round %d, step %d: first is %d; want %d", round, step, c.root, first)
			}
		}
		for _, id := range twin {
			if c.root != id {
				t.Fatalf("round %d: first is %d; want %d", round, c.root, id)
			}
			s.pull(&c, id)
		}
	}
}
