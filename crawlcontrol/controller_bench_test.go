package crawlcontrol_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
)

const (
	benchDocs   = 1_000_000
	benchCrawls = 1000
	benchHosts  = 100 // domains a crawl
)

// onStores runs a benchmark over each store. Those on disk have each batch there before they
// acknowledge it.
func onStores(b *testing.B, bench func(b *testing.B, open func() docindex.Store)) {
	b.Run("memory", func(b *testing.B) { bench(b, func() docindex.Store { return memory.New() }) })
	b.Run("disk", func(b *testing.B) {
		bench(b, func() docindex.Store {
			s, err := disk.Open(disk.Config{Path: b.TempDir(), Log: zerolog.Nop()})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := s.Close(); err != nil {
					b.Error(err)
				}
			})
			return s
		})
	})
}

// cpu is the time that this process has had of all cores.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fill puts a million documents, in so many crawls of an application and all with domains of their
// own.
func fill(b *testing.B, store docindex.Store, crawls int) {
	b.Helper()
	var p docindex.Puts
	for i := range benchDocs {
		crawl := i % crawls
		host := i / crawls % benchHosts
		err := p.Add(docindex.Put{
			URL:   fmt.Appendf(nil, "http://www.d%d-%d.example/%d", crawl, host, i),
			Crawl: fmt.Appendf(nil, "c%d", crawl), Priority: int32(i % 7),
			Metadata: []byte(`{"appid":["testapp"],"spiderid":["link"]}`),
		})
		if err != nil {
			b.Fatal(err)
		}
		if p.Len() == 10_000 {
			if _, err := store.Put(b.Context(), &p); err != nil {
				b.Fatal(err)
			}
			p.Reset()
		}
	}
}

// BenchmarkInfo asks about an application and about crawls of it in turn, with a million documents
// pending in 1000 crawls and 100,000 domains; 10,000 more are at spiders.
func BenchmarkInfo(b *testing.B) { onStores(b, benchInfo) }

func benchInfo(b *testing.B, open func() docindex.Store) {
	store := open()
	fill(b, store, benchCrawls)
	slots := &benchSlots{}
	var batch docindex.Batch
	if err := store.Candidates(b.Context(), 10_000, nil, &batch); err != nil {
		b.Fatal(err)
	}
	for i := range batch.Len() {
		slots.away.Add(docindex.Outcome{DocID: batch.At(i).DocID, URL: batch.At(i).URL})
	}
	m := crawlcontrol.New(crawlcontrol.NewController(store, slots, zerolog.Nop()), 1000)
	var app, one []time.Duration
	before := cpu(b)
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		text := fmt.Appendf(nil,
			`{"action":"info","appid":"testapp","uuid":"u","spiderid":"link","crawlid":"c%d"}`, n%benchCrawls)
		if n%2 == 0 {
			text = []byte(infoText)
		}
		if _, _, err := m.Do(b.Context(), [][]byte{text}); err != nil {
			b.Fatal(err)
		}
		if n%2 == 0 {
			app = append(app, time.Since(began))
		} else {
			one = append(one, time.Since(began))
		}
	}
	b.ReportMetric((cpu(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(centile(app)*1000, "app-p99-ms")
	b.ReportMetric(app[len(app)/2].Seconds()*1000, "app-median-ms")
	b.ReportMetric(centile(one)*1000, "crawl-p99-ms")
	b.ReportMetric(one[len(one)/2].Seconds()*1000, "crawl-median-ms")
}

// centile is the 99th percentile in seconds.
func centile(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*99/100].Seconds()
}

// BenchmarkStop stops a crawl of a million documents while others ask the store, and tells how long
// these waited.
func BenchmarkStop(b *testing.B) { onStores(b, benchStop) }

func benchStop(b *testing.B, open func() docindex.Store) {
	var waits []time.Duration
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		store := open()
		fill(b, store, 1)
		runtime.GC()
		m := crawlcontrol.New(crawlcontrol.NewController(store, &benchSlots{}, zerolog.Nop()), 1000)
		ctx, cancel := context.WithCancel(b.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			var batch docindex.Batch
			for ctx.Err() == nil {
				began := time.Now()
				if err := store.Candidates(ctx, 10, nil, &batch); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				waits = append(waits, time.Since(began))
				time.Sleep(time.Millisecond)
			}
		})
		before := cpu(b)
		b.StartTimer()
		replies, _, err := m.Do(b.Context(),
			[][]byte{[]byte(`{"action":"stop","appid":"testapp","uuid":"u","spiderid":"link","crawlid":"c0"}`)})
		b.StopTimer()
		used += cpu(b) - before
		cancel()
		asking.Wait()
		if err != nil || len(replies) != 1 || replies[0].Refused {
			b.Fatalf("stop: %v, %v", replies, err)
		}
		b.StartTimer()
	}
	b.ReportMetric(used.Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(centile(waits)*1000, "others-p99-ms")
	b.ReportMetric(slices.Max(waits).Seconds()*1000, "others-max-ms")
}

// benchSlots are slots of which what is at spiders is laid down.
type benchSlots struct{ away docindex.Outcomes }

func (s *benchSlots) Cancel(_ context.Context, o *docindex.Outcomes) (int, error) {
	return o.Len(), nil
}

func (s *benchSlots) Forget(*docindex.Outcomes) {}

func (s *benchSlots) NotPending(_ context.Context, o *docindex.Outcomes) error {
	for i := range s.away.Len() {
		o.Add(s.away.At(i))
	}
	return nil
}
