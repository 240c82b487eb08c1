package kafka_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
)

// idle are slots that hold nothing.
type idle struct{}

func (idle) Cancel(context.Context, *docindex.Outcomes) (int, error) { return 0, nil }
func (idle) Forget(*docindex.Outcomes)                               {}
func (idle) NotPending(context.Context, *docindex.Outcomes) error    { return nil }

// BenchmarkCrawls has 100,000 crawl requests read from a broker, put into a store, and committed.
// The processor time is that of this process: with kfake the broker's, too.
func BenchmarkCrawls(b *testing.B) {
	for name, broker := range map[string]func(testing.TB) *broker{
		"kfake": func(b testing.TB) *broker { return fakeBroker(b) }, "kafka": realBroker,
	} {
		b.Run(name+" to memory", func(b *testing.B) {
			benchCrawls(b, broker(b), func() docindex.Store { return memory.New() })
		})
		b.Run(name+" to disk", func(b *testing.B) {
			benchCrawls(b, broker(b), func() docindex.Store {
				s, err := disk.Open(disk.Config{Path: b.TempDir(), Log: zerolog.Nop()})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { s.Close() })
				return s
			})
		})
	}
}

func benchCrawls(b *testing.B, k *broker, open func() docindex.Store) {
	const n = 100_000
	for b.Loop() {
		b.StopTimer()
		cfg := settings(b, k)
		makeTopic(b, k, 4, cfg.Inbound[0])
		producer := client(b, k)
		for i := range n {
			text := fmt.Sprintf(
				`{"url":"http://h%d.test/%d","appid":"testapp","crawlid":"c%d","priority":%d}`, i%1000, i,
				i%50, 1+i%100)
			producer.Produce(b.Context(), &kgo.Record{Topic: cfg.Inbound[0], Value: []byte(text)}, nil)
		}
		if err := producer.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		store := open()
		before := cpu(b)
		b.StartTimer()
		began := time.Now()
		s := start(b, cfg, crawlcontrol.New(crawlcontrol.NewController(store, idle{}, zerolog.Nop()), 1000))
		eventually(b, "all are stored", func() bool { return store.Stats().Scheduled == n })
		took, used := time.Since(began), cpu(b)-before
		b.StopTimer()
		s.stop()
		b.ReportMetric(n/took.Seconds(), "crawls/s")
		b.ReportMetric(n/used.Seconds(), "crawls/cpu-s")
		b.StartTimer()
	}
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
