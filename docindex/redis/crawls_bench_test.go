package redis

import (
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/internal/testkit/redistest"
)

const (
	benchCrawls  = 100
	benchDomains = 10_000
	benchInCrawl = 100_000 // documents
)

// fillCrawls stores documents of crawls.
func fillCrawls(b *testing.B, s docindex.Store) {
	b.Helper()
	var p docindex.Puts
	for i := range benchInCrawl {
		err := p.Add(docindex.Put{
			URL: fmt.Appendf(nil, "https://www.host-%05d.example/some/where/in/the/tree/document-%08d",
				i%benchDomains, i),
			Crawl: fmt.Appendf(nil, "c%d", i%benchCrawls), Metadata: []byte(`{"appid":["app"],"spiderid":["link"]}`),
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if res, err := s.Put(b.Context(), &p); err != nil || res.New != benchInCrawl {
		b.Fatalf("%+v, %v", res, err)
	}
}

// BenchmarkCrawls tells what Redis works for documents of crawls, for what is asked of these, and
// for their end.
func BenchmarkCrawls(b *testing.B) {
	addr := redistest.Start(b).Addr()
	s := openStore(b, nil, addr)
	b.Run("put", func(b *testing.B) {
		m := meter{b: b, addr: addr}
		for b.Loop() {
			b.StopTimer()
			flush(b, s)
			before := s.Stats().Bytes
			m.begin()
			b.StartTimer()
			fillCrawls(b, s)
			m.urls += benchInCrawl
			b.ReportMetric(float64(s.Stats().Bytes-before)/benchInCrawl, "B/URL")
		}
		m.urls = benchInCrawl
		m.report()
	})
	for name, crawl := range map[string]string{"survey of all": "", "survey of one": "c7"} {
		b.Run(name, func(b *testing.B) {
			m := meter{b: b, addr: addr}
			m.begin()
			for b.Loop() {
				v, err := s.ReportPending(b.Context(), docindex.CrawlID{Spider: "link", App: "app",
					Crawl: crawl}, 1000, nil)
				if err != nil || v.Total == 0 {
					b.Fatalf("%+v, %v", v, err)
				}
				m.urls++
			}
			m.report()
		})
	}
	b.Run("purge", func(b *testing.B) {
		m := meter{b: b, addr: addr}
		m.begin()
		for i := range benchCrawls {
			id := docindex.CrawlID{Spider: "link", App: "app", Crawl: fmt.Sprintf("c%d", i)}
			if err := s.StopCrawl(b.Context(), id, docindex.Stopped); err != nil {
				b.Fatal(err)
			}
			n, err := s.PurgeCrawl(b.Context(), id, func(*docindex.Outcomes) (int, error) { return 0, nil })
			if err != nil {
				b.Fatal(err)
			}
			m.urls += n
		}
		m.report()
	})
}
