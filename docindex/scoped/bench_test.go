package scoped_test

import (
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
)

// BenchmarkPut puts new URLs: into the store alone, without a scope, and with one of ten patterns.
func BenchmarkPut(b *testing.B) {
	var ten []string
	for i := range 10 {
		ten = append(ten, fmt.Sprintf(`/calendar%d/\d{4}`, i))
	}
	bounded := scoped.New(memory.New())
	err := bounded.SetCrawl(b.Context(), "DEFAULT", scoped.Change{Scope: &scope.Scope{
		Domains: []string{"example.org"}, Deny: ten}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		store docindex.Store
	}{{"alone", memory.New()}, {"no scope", scoped.New(memory.New())}, {"ten patterns", bounded}} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				var p docindex.Puts
				for range 1000 {
					n++
					url := fmt.Appendf(nil, "http://www%d.example.org/some/folder/of/the/site/page-%d.html", n%100, n)
					if err := p.Add(docindex.Put{URL: url}); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := c.store.Put(b.Context(), &p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/URL")
		})
	}
}

// BenchmarkPutLinks puts new URLs of one host: as they are, as links of a page, and as such links that
// have 1,000 shapes. -count repeats them in turns.
func BenchmarkPutLinks(b *testing.B) {
	for _, c := range []struct {
		name   string
		via    string
		shapes int
	}{
		{"without via", "", 1}, {"without via, 1000 paths", "", 1000},
		{"via", "page", 1}, {"via, 1000 shapes", "page", 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := scoped.New(memory.New())
			n := 0
			puts := func(first string) *docindex.Puts {
				var p docindex.Puts
				for range 1000 {
					n++
					shape := n % c.shapes
					url := fmt.Appendf(nil, "http://www.example.org/folder-%c%c%c/page-%d.html",
						'a'+shape%10, 'a'+shape/10%10, 'a'+shape/100, n)
					if err := p.Add(docindex.Put{URL: url, Via: []byte(first)}); err != nil {
						b.Fatal(err)
					}
				}
				return &p
			}
			var page docindex.Puts
			one := docindex.Put{URL: []byte("http://www.example.org/"), DocID: []byte("page")}
			if err := page.Add(one); err != nil {
				b.Fatal(err)
			}
			for _, p := range []*docindex.Puts{&page, puts(""), puts(c.via)} { // now all shapes are known
				if _, err := s.Put(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
			before := n
			for b.Loop() {
				b.StopTimer()
				p := puts(c.via)
				b.StartTimer()
				if _, err := s.Put(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n-before), "ns/URL")
		})
	}
}
