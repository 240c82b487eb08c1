package memory_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// putBatch fills p with n URLs of 70 bytes from number first on, a hundred to a host.
func putBatch(b *testing.B, p *docindex.Puts, first, n int) {
	p.Reset()
	var url []byte
	for i := first; i < first+n; i++ {
		url = fmt.Appendf(url[:0], "http://host-%07d.example/some/path/to/a/page-%021d.html", i*7919%(1+i/100*2+1), i)
		if err := p.Add(docindex.Put{URL: url}); err != nil {
			b.Fatal(err)
		}
	}
}

// storeSizes are the numbers of URLs stored before something is measured.
func storeSizes() []int {
	if os.Getenv("DOCINDEX_10M") != "" { // by hand: it takes a minute and 2 GB
		return []int{10_000_000}
	}
	return []int{1_000_000}
}

func filled(b *testing.B, n int) *memory.Store {
	m := memory.New()
	var p docindex.Puts
	for i := 0; i < n; i += 1000 {
		putBatch(b, &p, i, 1000)
		if res, err := m.Put(b.Context(), &p); err != nil || res.New != 1000 {
			b.Fatalf("Put = %+v, %v", res, err)
		}
	}
	return m
}

// BenchmarkMemoryPut puts new URLs into a store of many; ns/op is for one URL.
func BenchmarkMemoryPut(b *testing.B) {
	for _, n := range storeSizes() {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			m := filled(b, n)
			var p docindex.Puts
			next := n
			for done := 0; b.Loop(); done++ {
				if done%1000 == 0 {
					b.StopTimer()
					putBatch(b, &p, next, 1000)
					next += 1000
					b.StartTimer()
					if _, err := m.Put(b.Context(), &p); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(perURL(b, m), "RSS-B/URL")
		})
	}
}

// BenchmarkMemoryTurn hands out URLs of many and completes them; ns/op is for one URL.
func BenchmarkMemoryTurn(b *testing.B) {
	for _, n := range storeSizes() {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			m := filled(b, n)
			var batch docindex.Batch
			var ended docindex.Outcomes
			for done := 0; b.Loop(); done++ {
				if done%1000 == 0 {
					turn(b, m, &batch, &ended)
				}
			}
		})
	}
}

func turn(b *testing.B, m *memory.Store, batch *docindex.Batch, ended *docindex.Outcomes) {
	batch.Reset()
	ended.Reset()
	if err := m.Candidates(b.Context(), 1000, nil, batch); err != nil || batch.Len() != 1000 {
		b.Fatalf("%d candidates, %v", batch.Len(), err)
	}
	for i := range batch.Len() {
		c := batch.At(i)
		ended.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Status: 200, Attempts: 1})
	}
	if err := m.Outcomes(b.Context(), ended); err != nil {
		b.Fatal(err)
	}
}

// perURL is the resident memory of the process by URL in m.
func perURL(b *testing.B, m *memory.Store) float64 {
	runtime.GC()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc")
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) * 1024 / float64(m.Stats().Scheduled)
}
