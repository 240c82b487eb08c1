package disk_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// BenchmarkPurgeCrawl purges a crawl of 200,000 documents in 1000 queues, until the last portion is
// on disk.
func BenchmarkPurgeCrawl(b *testing.B) {
	const docs, queues = 200_000, 1000
	var used time.Duration
	for round := range b.N {
		b.StopTimer()
		s := open(b, b.TempDir(), disk.Batch)
		crawl := fillCrawl(b, s, round, docs, queues)
		before := cpu(b)
		b.StartTimer()
		n, err := s.PurgeCrawl(b.Context(), id(crawl), func(*docindex.Outcomes) (int, error) { return 0, nil })
		if n != docs || err != nil {
			b.Fatalf("%d purged, %v; want %d", n, err, docs)
		}
		b.StopTimer()
		used += cpu(b) - before
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*docs), "ns/doc")
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*docs), "cpu-ns/doc")
}

// fillCrawl puts documents of a crawl, and stops the crawl.
func fillCrawl(b *testing.B, s *disk.Store, round, docs, queues int) (crawl string) {
	b.Helper()
	crawl = fmt.Sprint("c", round)
	var p docindex.Puts
	for i := range docs {
		url := fmt.Sprintf("http://host-%d.example/some/path/of/a/page/that/is/%d", i%queues, i)
		if err := p.Add(of(crawl, url, 0)); err != nil {
			b.Fatal(err)
		}
		if p.Len() == 10_000 {
			putAll(b, s, &p)
		}
	}
	if err := s.StopCrawl(b.Context(), id(crawl), docindex.Stopped); err != nil {
		b.Fatal(err)
	}
	return crawl
}

// BenchmarkPurgeHold measures the CPU time of the longest portion of a purge. The purge holds the
// lock for that long.
func BenchmarkPurgeHold(b *testing.B) {
	const docs, queues = 200_000, 1000
	longest := time.Duration(0)
	for round := range b.N {
		b.StopTimer()
		s := open(b, b.TempDir(), disk.Batch)
		crawl := fillCrawl(b, s, round, docs, queues)
		b.StartTimer()
		err := s.EachPortion(id(crawl), func(portion func() error) error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := threadCPU(b)
			err := portion()
			longest = max(longest, threadCPU(b)-before)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-cpu-us")
}

// threadCPU returns the CPU time of this thread.
func threadCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
