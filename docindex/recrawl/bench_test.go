package recrawl_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/recrawl"
)

func BenchmarkOutcomes(b *testing.B) {
	const batch = 4096
	for _, c := range []struct {
		name string
		wrap func(docindex.Store) docindex.Store
	}{
		{"off", func(s docindex.Store) docindex.Store { return s }},
		{"on", func(s docindex.Store) docindex.Store { return recrawl.New(s, recrawl.Rule{OK: time.Hour}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s := c.wrap(memory.New())
				var p docindex.Puts
				var out docindex.Batch
				var o docindex.Outcomes
				for i := range batch {
					if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/%050d", i%100,
						i)}); err != nil {
						b.Fatal(err)
					}
				}
				_, err := s.Put(b.Context(), &p)
				if err = errors.Join(err, s.Candidates(b.Context(), batch, nil, &out)); err != nil ||
					out.Len() != batch {
					b.Fatal(out.Len(), err)
				}
				for i := range batch {
					o.Add(docindex.Outcome{DocID: out.At(i).DocID, URL: out.At(i).URL, Status: 200,
						At: time.Unix(1, 0)})
				}
				b.StartTimer()
				if err := s.Outcomes(b.Context(), &o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/outcome")
		})
	}
}
