package crawlstats

import (
	"fmt"
	"syscall"
	"testing"

	"urlserver/docindex"
)

// fillBooks makes 1000 crawls of an application with 100 domains each and documents everywhere, as
// many as each says.
func fillBooks(each func(crawl, domain int) int) (l *Stats, all []*Domain) {
	l = New()
	for crawl := range 1000 {
		b := l.Open(docindex.CrawlID{Spider: "link", App: "app", Crawl: fmt.Sprint("c", crawl)})
		for domain := range 100 {
			for i := range each(crawl, domain) {
				d := l.Enter(b, fmt.Sprintf("d%d-%d.example", crawl, domain), 1)
				l.Move(d, int32(1+i%7), Completed, Scheduled, 1, 0)
				if i == 0 {
					all = append(all, d)
				}
			}
		}
	}
	return l, all
}

// BenchmarkSurvey asks about an application and about a crawl of it, which a store does with its
// lock held.
func BenchmarkSurvey(b *testing.B) {
	for name, each := range map[string]func(crawl, domain int) int{
		"even":   func(_, _ int) int { return 10 },
		"uneven": func(crawl, domain int) int { return 1 + 500/(1+crawl%7+domain) },
	} {
		l, _ := fillBooks(each)
		for _, id := range []docindex.CrawlID{{Spider: "link", App: "app"}, {Spider: "link", App: "app", Crawl: "c7"}} {
			b.Run(name+" "+id.Crawl, func(b *testing.B) {
				b.ReportAllocs()
				before := cpu(b)
				for b.Loop() {
					v := l.BeginReport(id, 1000)
					if got := v.End(); got.Total == 0 {
						b.Fatal(got)
					}
				}
				b.ReportMetric((cpu(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkMove hands out documents and ends them, as stores do with each.
func BenchmarkMove(b *testing.B) {
	l, all := fillBooks(func(_, _ int) int { return 10 })
	n := 0
	before := cpu(b)
	for b.Loop() {
		d := all[n*7919%len(all)]
		n++
		l.Move(d, 1, Scheduled, InSlots, 1, 0)
		l.Move(d, 1, InSlots, Completed, 1, 0)
		l.Move(d, 1, Completed, Scheduled, 1, 0)
	}
	b.ReportMetric((cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpu is the time that this process has had of all cores, in ns.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
