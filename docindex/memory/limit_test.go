package memory_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
)

// putNumbers puts URLs with the numbers from first on, a hundred to a host.
func putNumbers(t *testing.T, m *memory.Store, first, n int) (p docindex.Puts, res docindex.PutResult, err error) {
	t.Helper()
	for i := first; i < first+n; i++ {
		url := fmt.Appendf(nil, "http://host-%07d.example/some/path/to/a/page-%021d.html", i/100, i)
		if err := p.Add(docindex.Put{URL: url}); err != nil {
			t.Fatal(err)
		}
	}
	res, err = m.Put(t.Context(), &p)
	return p, res, err
}

// TestLimit fills a store to its limit, and makes room again.
func TestLimit(t *testing.T) {
	const limit = 20 << 20
	m := memory.NewLimited(limit)
	stored := 0
	for {
		_, res, err := putNumbers(t, m, stored, 1000)
		if stored += res.New; err != nil {
			if !errors.Is(err, docindex.ErrFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if got := m.Stats().Bytes; got < limit*9/10 || got > limit || stored < 1000 {
		t.Errorf("full with %d URLs in %d bytes; want %d bytes", stored, got, limit)
	}
	p, res, err := putNumbers(t, m, stored-10, 20) // ten known ones and ten new ones
	if !errors.Is(err, docindex.ErrFull) || res.Known != 10 || res.New != 0 ||
		p.Verdict(9) != docindex.Same || p.Verdict(10) != docindex.Unsettled {
		t.Errorf("put into the full store: %+v, %v, verdicts %v and %v; want 10 known and ErrFull", res, err,
			p.Verdict(9), p.Verdict(10))
	}
	b := new(docindex.Batch)
	if err := m.Candidates(t.Context(), 100, nil, b); err != nil || b.Len() == 0 {
		t.Errorf("the full store gives %d documents, %v; want some", b.Len(), err)
	}
	scope := docindex.Scope{Key: []byte("host-0000000.example")}
	if n, err := m.Delete(t.Context(), scope); err != nil || n != 100 {
		t.Fatalf("Delete = %d, %v; want 100", n, err)
	}
	if _, res, err := putNumbers(t, m, stored, 10); err != nil || res.New != 10 {
		t.Errorf("put with room again: %+v, %v; want 10 new", res, err)
	}
	if n := indextest.Count(t, m, nil); n.Scheduled+n.InTransit != uint64(stored-100+10) {
		t.Errorf("%d URLs are there; want %d", n.Scheduled+n.InTransit, stored-100+10)
	}
}

// TestBytes compares what a store says it takes with what the heap grows by.
func TestBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	m := memory.New()
	for i := range 200 {
		if _, _, err := putNumbers(t, m, i*1000, 1000); err != nil {
			t.Fatal(err)
		}
	}
	grown, told := heap()-before, m.Stats().Bytes
	if told < grown*9/10 || told > grown*11/10 {
		t.Errorf("Stats tells %d bytes, and the heap has grown by %d; want a tenth apart at most", told, grown)
	}
	runtime.KeepAlive(m)
}
