package memory_test

import (
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// BenchmarkTakeLinks hands out links of one host, all of one shape or of a thousand, ten at a time.
// -count repeats them in turns.
func BenchmarkTakeLinks(b *testing.B) {
	for _, shapes := range []int{1, 1000} {
		b.Run(fmt.Sprint(shapes, " shapes"), func(b *testing.B) {
			s, n, left := memory.New(), 0, 0
			put := func() {
				var p docindex.Puts
				for range 20_000 {
					n++
					shape := n % shapes
					url := fmt.Appendf(nil, "http://www.example.org/folder-%c%c%c/page-%d.html",
						'a'+shape%10, 'a'+shape/10%10, 'a'+shape/100, n)
					one := docindex.Put{Page: []byte("http://www.example.org/"), URL: url}
					if err := p.Add(one); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := s.Put(b.Context(), &p); err != nil {
					b.Fatal(err)
				}
				left += p.Len()
			}
			var batch docindex.Batch
			var o docindex.Outcomes
			taken := 0
			for b.Loop() {
				if left < 100 {
					b.StopTimer()
					put()
					b.StartTimer()
				}
				batch.Reset()
				if err := s.Candidates(b.Context(), 10, nil, &batch); err != nil {
					b.Fatal(err)
				}
				o.Reset()
				for i := range batch.Len() {
					c := batch.At(i)
					o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Status: 200})
				}
				if err := s.Outcomes(b.Context(), &o); err != nil {
					b.Fatal(err)
				}
				left -= batch.Len()
				taken += batch.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(taken), "ns/URL")
		})
	}
}
