package disk_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// BenchmarkPut puts new URLs in batches of the size that URL Frontier streams have. Each batch is
// on disk before it is acknowledged.
func BenchmarkPut(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.2, 1, 9999)
	turn := 0
	b.Run("10000 hosts in turn", func(b *testing.B) { benchPut(b, func() int { turn++; return turn % 10_000 }) })
	b.Run("10000 hosts", func(b *testing.B) { benchPut(b, func() int { return rnd.IntN(10_000) }) })
	b.Run("Zipf 1.2", func(b *testing.B) { benchPut(b, func() int { return int(zipf.Uint64()) }) })
	b.Run("1 host", func(b *testing.B) { benchPut(b, func() int { return 0 }) })
	b.Run("each on a new host", func(b *testing.B) { turn = 0; benchPut(b, func() int { turn++; return turn }) })
}

func benchPut(b *testing.B, next func() int) {
	s := open(b, b.TempDir(), disk.Batch)
	var p docindex.Puts
	var url []byte
	b.ReportAllocs()
	before := cpu(b)
	for n := 0; b.Loop(); n++ {
		host := next()
		url = fmt.Appendf(url[:0], "http://www.host-%d.example/some/path/of/a/page/that/is/%d", host, n)
		if err := p.AddExact(docindex.Put{URL: url, Due: docindex.Now},
			url[7:][:len(fmt.Sprint("www.host-", host, ".example"))]); err != nil {
			b.Fatal(err)
		}
		if p.Len() == 512 {
			putAll(b, s, &p)
		}
	}
	putAll(b, s, &p)
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/URL")
}

// BenchmarkPutKnown puts URLs of which 95 in 100 are known, in any order. Each batch is on disk before
// it is acknowledged.
func BenchmarkPutKnown(b *testing.B) {
	const urls, hosts = 200_000, 10_000
	s := open(b, b.TempDir(), disk.Batch)
	var p docindex.Puts
	put := func(n int) {
		host := fmt.Appendf(nil, "www.host-%d.example", n%hosts)
		url := fmt.Appendf(nil, "http://%s/some/path/of/a/page/that/is/%d", host, n)
		if err := p.AddExact(docindex.Put{URL: url, Due: docindex.Now}, host); err != nil {
			b.Fatal(err)
		}
		if p.Len() == 512 {
			putAll(b, s, &p)
		}
	}
	for n := range urls {
		put(n)
	}
	rnd, news := rand.New(rand.NewPCG(3, 4)), urls
	for range urls { // which a crawl has seen before
		put(rnd.IntN(urls))
	}
	putAll(b, s, &p)
	before := cpu(b)
	for n := 0; b.Loop(); n++ {
		if n%20 == 0 {
			put(news)
			news++
		} else {
			put(rnd.IntN(urls))
		}
	}
	putAll(b, s, &p)
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/URL")
}

func putAll(tb testing.TB, s *disk.Store, p *docindex.Puts) {
	tb.Helper()
	if _, err := s.Put(tb.Context(), p); err != nil {
		tb.Fatal(err)
	}
	p.Reset()
}

// BenchmarkServeAndEnd serves URLs and completes them, ten of a queue at a time.
func BenchmarkServeAndEnd(b *testing.B) {
	s := open(b, b.TempDir(), disk.Batch)
	if err := s.Set(b.Context(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		b.Fatal(err)
	}
	var p docindex.Puts
	for i := range 200_000 {
		url := fmt.Appendf(nil, "http://host-%d.example/some/path/of/a/page/that/is/%d", i%2000, i)
		if err := p.AddExact(docindex.Put{URL: url, Due: docindex.Now}, docindex.HostOf(url)); err != nil {
			b.Fatal(err)
		}
		if p.Len() == 1000 {
			putAll(b, s, &p)
		}
	}
	r := docindex.Request{AnyCrawl: true, PerQueue: 10, MaxQueues: 100, Lease: time.Hour}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += p.Len() {
		p.Reset()
		err := s.Serve(b.Context(), r, func(h *docindex.Served) error {
			for i := range h.Len() {
				got := h.At(i)
				if err := p.AddExact(docindex.Put{URL: got.URL, Key: got.Key, Update: true,
					Due: docindex.Never}, got.Key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		if p.Len() == 0 {
			b.Fatalf("%d of %d URLs are served", done, b.N)
		}
		if _, err := s.Put(b.Context(), &p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a store of a million URLs on 100,000 hosts and serves one of them: of no
// crawl, and of 1000 crawls with 100 domains each.
func BenchmarkOpen(b *testing.B) {
	for name, metadata := range map[string]string{"without crawls": "", "1000 crawls": `{"appid":["app"]}`} {
		b.Run(name, func(b *testing.B) {
			path := b.TempDir()
			s := open(b, path, disk.None)
			var p docindex.Puts
			for i := range 1_000_000 {
				url := fmt.Appendf(nil, "http://www.d%d.example/some/path/%d", i%100_000, i)
				put := docindex.Put{URL: url, Crawl: fmt.Appendf(nil, "c%d", i%1000),
					Metadata: []byte(metadata), Priority: int32(i % 7)}
				if err := p.AddExact(put, docindex.HostOf(url)); err != nil {
					b.Fatal(err)
				}
				if p.Len() == 1000 {
					putAll(b, s, &p)
				}
			}
			used := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				before := cpu(b)
				b.StartTimer()
				s = open(b, path, disk.None)
				r := docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 1, Lease: time.Second}
				if err := s.Serve(b.Context(), r, func(*docindex.Served) error { return nil }); err != nil {
					b.Fatal(err)
				}
				used += cpu(b) - before
			}
			b.ReportMetric(used.Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpu returns the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOutcomes gives 100,000 documents to the slots, and measures how long it takes to
// complete them, a thousand at a time.
func BenchmarkOutcomes(b *testing.B) {
	const docs = 100_000
	s := open(b, b.TempDir(), disk.None)
	var p docindex.Puts
	for i := range docs {
		url := fmt.Appendf(nil, "http://host-%d.example/some/path/of/a/page/that/is/%d", i%2000, i)
		if err := p.AddExact(docindex.Put{URL: url, Due: docindex.Now}, docindex.HostOf(url)); err != nil {
			b.Fatal(err)
		}
		if p.Len() == 1000 {
			putAll(b, s, &p)
		}
	}
	var batch docindex.Batch
	if err := s.Candidates(b.Context(), docs, nil, &batch); err != nil {
		b.Fatal(err)
	}
	before := cpu(b)
	for i := 0; i < batch.Len(); {
		var o docindex.Outcomes
		for ; i < batch.Len() && o.Len() < 1000; i++ {
			o.Add(docindex.Outcome{DocID: batch.At(i).DocID, URL: batch.At(i).URL})
		}
		if err := s.Outcomes(b.Context(), &o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(batch.Len()), "cpu-ns/doc")
}
