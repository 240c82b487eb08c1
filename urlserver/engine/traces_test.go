package engine

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
)

// journeys writes down what has become of sampled documents: the place of the outcome, and each
// step.
func (p *script) journeys() {
	for i := range p.e.Out.Traces {
		j := &p.e.Out.Traces[i]
		text := fmt.Sprintf("journey %s host=%s group=%s %s status=%d attempts=%d outcome=%d:", j.DocID,
			j.Host, j.Group, j.Trace.Outcome, j.Status, j.Attempts, j.Outcome)
		for n, s := range j.Spans {
			text += fmt.Sprintf(" %v %v-%v", s.Phase, s.From, s.To)
			if s.Spider != "" {
				text += fmt.Sprintf(" %s %s", s.Spider, s.End)
			}
			if n > 0 && s.From != j.Spans[n-1].To {
				text += " GAP"
			}
		}
		p.say("%s", text)
	}
	if n := p.e.Out.Skipped; n > 0 {
		p.say("skipped %d", n)
	}
}

// Documents that are not sampled leave nothing behind, and those that are no more than the bound.
func TestJourneysAreBounded(t *testing.T) {
	for _, c := range []struct {
		endpoint       string
		sample         float64
		least, skipped int
	}{{"", 1, 0, 0}, {"http://a", 0, 0, 0}, {"http://a", 1, maxTraces, 1000}} {
		cfg := configs.Default()
		cfg.Trace = configs.Trace{Endpoint: c.endpoint, Sample: c.sample}
		cfg.DocIndex.Batch = maxTraces + 1000
		e := New(cfg, Options{Cached: func(host []byte) (netip.Addr, error, bool) {
			return netip.MustParseAddr(string(host)), nil, true
		}})
		step := func() {
			for range 1000 {
				if e.Step(nil) != 0 {
					return
				}
			}
			t.Fatal("the engine is never through")
		}
		step()
		p := &Prepared{}
		for i := range maxTraces + 1000 {
			p.Batch.Add(fmt.Append(nil, i), fmt.Appendf(nil, "http://10.%d.%d.%d/", i>>16, i>>8&255, i&255), 0)
		}
		p.Prepare()
		e.Advance(time.Second, start)
		e.Answered(p)
		step()
		if n := len(e.tracer.byDoc); n != c.least || e.Out.Skipped != c.skipped {
			t.Errorf("%+v: %d are followed, %d skipped", c, n, e.Out.Skipped)
		}
	}
}
