package redis

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/internal/testkit/redistest"
)

const (
	benchBatch = 1000
	benchHosts = 10_000
)

// benchPuts are a batch of URLs of 70 bytes, the n-th.
func benchPuts(b *testing.B, p *docindex.Puts, n int) {
	b.Helper()
	p.Reset()
	for i := range benchBatch {
		i += n * benchBatch
		url := fmt.Appendf(nil, "https://host-%05d.example.com/some/where/in/the/tree/document-%08d", i%benchHosts, i)
		if err := p.Add(docindex.Put{URL: url}); err != nil {
			b.Fatal(err)
		}
	}
}

func fill(b *testing.B, s docindex.Store, urls int) {
	b.Helper()
	var p docindex.Puts
	for n := range urls / benchBatch {
		benchPuts(b, &p, n)
		if _, err := s.Put(b.Context(), &p); err != nil {
			b.Fatal(err)
		}
	}
}

// meter measures what comes after begin: URLs a second, and how long Redis works for one.
type meter struct {
	b      *testing.B
	addr   string // "": no Redis
	before float64
	urls   int
}

func (m *meter) begin() {
	if m.addr != "" {
		m.before = serverCPU(m.b, m.addr)
	}
}

func (m *meter) report() {
	m.b.ReportMetric(float64(m.urls)/m.b.Elapsed().Seconds(), "URLs/s")
	if m.addr != "" {
		m.b.ReportMetric(1e6*(serverCPU(m.b, m.addr)-m.before)/float64(m.urls), "redis-µs/URL")
	}
}

// BenchmarkStores compares this store with the one in RAM.
func BenchmarkStores(b *testing.B) {
	addr := redistest.Start(b).Addr()
	for _, c := range []struct {
		name string
		run  func(m *meter, s docindex.Store)
	}{
		{"put", benchPut},
		{"take+end", benchTake},
		{"call", benchCall},
	} {
		b.Run("redis/"+c.name, func(b *testing.B) { c.run(&meter{b: b, addr: addr}, openStore(b, nil, addr)) })
		b.Run("memory/"+c.name, func(b *testing.B) { c.run(&meter{b: b}, memory.New()) })
	}
}

func benchPut(m *meter, s docindex.Store) {
	var p docindex.Puts
	m.begin()
	for n := 0; m.b.Loop(); n++ {
		m.b.StopTimer()
		benchPuts(m.b, &p, n)
		m.b.StartTimer()
		if _, err := s.Put(m.b.Context(), &p); err != nil {
			m.b.Fatal(err)
		}
		m.urls += benchBatch
	}
	m.report()
}

// benchTake takes a thousand URLs at a time, which are due again as soon as they are done.
func benchTake(m *meter, s docindex.Store) {
	fill(m.b, s, 100_000)
	var batch docindex.Batch
	var o docindex.Outcomes
	m.begin()
	for m.b.Loop() {
		batch.Reset()
		o.Reset()
		if err := s.Candidates(m.b.Context(), benchBatch, nil, &batch); err != nil {
			m.b.Fatal(err)
		}
		for i := range batch.Len() {
			o.Add(docindex.Outcome{DocID: batch.At(i).DocID, URL: batch.At(i).URL, Again: 1})
		}
		if err := s.Outcomes(m.b.Context(), &o); err != nil {
			m.b.Fatal(err)
		}
		m.urls += batch.Len()
	}
	m.report()
}

// benchCall asks for URLs of a hundred queues, as clients of the URL Frontier do.
func benchCall(m *meter, s docindex.Store) {
	fill(m.b, s, 100_000)
	r := docindex.Request{AnyCrawl: true, PerQueue: 10, MaxQueues: 100, Lease: time.Hour}
	m.begin()
	for m.b.Loop() {
		err := s.Serve(m.b.Context(), r, func(h *docindex.Served) error { m.urls += h.Len(); return nil })
		if err != nil {
			m.b.Fatal(err)
		}
	}
	m.report()
}

// serverCPU is the time that Redis has worked, in seconds.
func serverCPU(b testing.TB, addr string) (sum float64) {
	info, _ := exec.Command("redis-cli", "-u", "redis://"+addr, "INFO", "cpu").CombinedOutput()
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_user" ||
			name == "used_cpu_sys" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// BenchmarkMemoryPerURL tells what Redis takes for a scheduled URL of 70 bytes, twenty a host: as
// it comes, and with small queues packed.
func BenchmarkMemoryPerURL(b *testing.B) {
	const urls = 20 * benchHosts
	for name, args := range map[string][]string{
		"default": nil,
		"packed":  {"--hash-max-listpack-value", "512", "--hash-max-listpack-entries", "128"},
	} {
		b.Run(name, func(b *testing.B) {
			addr := redistest.Start(b, args...).Addr()
			for b.Loop() {
				s := openStore(b, nil, addr)
				before := s.Stats().Bytes
				fill(b, s, urls)
				b.ReportMetric(float64(s.Stats().Bytes-before)/urls, "B/URL")
			}
		})
	}
}
