package memory_test

import (
	"strconv"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// BenchmarkMemoryServe has URLs given out by calls, 10 each of 100 queues, and reported as
// completed; ns/op is for one URL.
func BenchmarkMemoryServe(b *testing.B) {
	m := filled(b, 1_000_000)
	if err := m.Set(b.Context(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		b.Fatal(err)
	}
	r := docindex.Request{AnyCrawl: true, PerQueue: 10, MaxQueues: 100, Lease: time.Hour}
	var p docindex.Puts
	for left := 0; b.Loop(); left-- {
		for left <= 0 {
			p.Reset()
			if err := m.Serve(b.Context(), r, func(h *docindex.Served) error {
				return report(h, &p)
			}); err != nil || p.Len() == 0 {
				b.Fatalf("%d URLs, %v", p.Len(), err)
			}
			left = p.Len()
			if _, err := m.Put(b.Context(), &p); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func report(h *docindex.Served, p *docindex.Puts) error {
	for i := range h.Len() {
		put := h.At(i)
		put.Update, put.Due = true, docindex.Never
		if err := p.AddExact(put, docindex.HostOf(put.URL)); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkMemoryCall is one call for 10 URLs, which are then reported, in a store of few queues
// and of many. All other queues have as many URLs in transit as the call allows.
func BenchmarkMemoryCall(b *testing.B) {
	for _, queues := range []int{100, 1_000_000} {
		b.Run(strconv.Itoa(queues), func(b *testing.B) { callOne(b, queues) })
	}
}

func callOne(b *testing.B, queues int) {
	m := memory.New()
	var p docindex.Puts
	for i := range queues {
		if err := p.AddExact(docindex.Put{URL: []byte("u"), Key: strconv.AppendInt(nil, int64(i), 10)},
			nil); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := m.Put(b.Context(), &p); err != nil {
		b.Fatal(err)
	}
	if err := m.Set(b.Context(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		b.Fatal(err)
	}
	report := func(most int) func(h *docindex.Served) error {
		return func(h *docindex.Served) error {
			for i := 0; i < h.Len() && p.Len() < most; i++ {
				put := h.At(i)
				put.Update = true
				if err := p.AddExact(put, nil); err != nil {
					return err
				}
			}
			return nil
		}
	}
	p.Reset()
	r := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: 24 * time.Hour}
	if err := m.Serve(b.Context(), r, report(10)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := m.Put(b.Context(), &p); err != nil {
			b.Fatal(err)
		}
		p.Reset()
		if err := m.Serve(b.Context(), r, report(10)); err != nil || p.Len() != 10 {
			b.Fatalf("%d URLs, %v", p.Len(), err)
		}
	}
}
