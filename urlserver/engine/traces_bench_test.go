package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
)

// rounds returns what has documents taken, sent and done, documentsARound of them, each on a host
// of its own.
func rounds(tb testing.TB, trace configs.Trace) (round func()) {
	cfg := configs.Default()
	cfg.Trace, cfg.Robots.Enabled, cfg.ReqHostPerSec = trace, false, 1e6
	addrs := map[string]netip.Addr{}
	e := New(cfg, Options{Exact: true, Cached: func(host []byte) (netip.Addr, error, bool) {
		return addrs[string(host)], nil, true
	}})
	spider := e.Connected("spider")
	p := &Prepared{}
	for i := range documentsARound {
		host := fmt.Sprintf("10.0.%d.%d", i>>8, i&255)
		addrs[host] = netip.MustParseAddr(host)
		p.Batch.Add(fmt.Append(nil, 1_000_000+i), []byte("http://"+host+"/"), 0)
	}
	p.Prepare()
	now := time.Duration(0)
	var spare []byte
	lines := make([]Line, 0, documentsARound)
	return func() {
		now += time.Millisecond
		e.Advance(now, time.Time{})
		e.Answered(p)
		for lines = lines[:0]; len(lines) < documentsARound; {
			e.Step(nil)
			e.Out.Ask, e.Out.Dirty = nil, e.Out.Dirty[:0]
			if out := e.Output(spider, spare); out != nil {
				e.Written(spider)
				lines, spare = answerAll(tb, lines, out), out
			}
		}
		e.Lines(spider, lines)
		e.Out.Outcomes.Reset()
		clear(e.Out.Traces)
		e.Out.Traces, e.Out.Skipped = e.Out.Traces[:0], 0
	}
}

const documentsARound = 1000

// answerAll adds what a spider says when all that it got is done.
func answerAll(tb testing.TB, lines []Line, out []byte) []Line {
	for len(out) > 0 {
		trans, ok := protocol.ParseTrans(out[:bytes.IndexByte(out, ' ')])
		if !ok {
			tb.Fatalf("line %q", out)
		}
		out = out[bytes.IndexByte(out, '\n')+1:]
		lines = append(lines, Line{Status: protocol.Status{Trans: trans, Verb: protocol.Done, Code: 200,
			HasStatus: true}})
	}
	return lines
}

func BenchmarkDocument(b *testing.B) {
	for _, c := range []struct {
		name     string
		endpoint string
		sample   float64
	}{{"off", "", 1}, {"sample 0.001", "http://a", 0.001}, {"sample 1", "http://a", 1}} {
		b.Run(c.name, func(b *testing.B) {
			round := rounds(b, configs.Trace{Endpoint: c.endpoint, Sample: c.sample})
			for range 10 {
				round()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += documentsARound {
				round()
			}
		})
	}
}

// Documents that are not sampled cost no memory, whether others are or not.
func TestUnsampledCostNoMemory(t *testing.T) {
	for _, trace := range []configs.Trace{{Sample: 1}, {Endpoint: "http://a", Sample: 1e-12}} {
		round := rounds(t, trace)
		for range 10 {
			round()
		}
		if n := testing.AllocsPerRun(20, round); n > documentsARound/20 {
			t.Errorf("%+v: %v allocations for %d documents; want those of the questions to the index only",
				trace, n, documentsARound)
		}
	}
}
