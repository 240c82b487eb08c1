package engine

import (
	"slices"
	"time"

	"urlserver/configs"
	"urlserver/internal/trace"
)

// maxJourneys bounds the sampled documents that are followed at once; those beyond are skipped.
const maxJourneys = 4096

// JourneyEnd is the way of a sampled document that the engine holds no more.
type JourneyEnd struct {
	trace.Trace
	At      time.Duration // when
	Outcome int           // its outcome's place in Out.Outcomes, plus one; 0: it has none
}

// journeys are the sampled documents that are held. Others cost a look at their DOC_ID, and nothing where none is sampled.
type journeys struct {
	share    trace.Ratio
	byDoc    map[uint32]*traveller
	homeless map[uint32][]uint32 // documents of hosts without a group, by host
	asked    time.Duration       // when the doc index was asked last
}

// traveller is a sampled document on its way.
type traveller struct {
	trace.Trace
	host   uint32
	phase  trace.Phase // DNS, Spider, or else Slot, which is Leftover, too, until it ends
	since  time.Duration
	spider string // of Spider: its address
}

func newJourneys() journeys {
	return journeys{byDoc: map[uint32]*traveller{}, homeless: map[uint32][]uint32{}}
}

func (j *journeys) apply(cfg configs.Trace) {
	j.share = 0
	if cfg.Endpoint != "" {
		j.share = trace.RatioOf(cfg.Sample)
	}
}

// follow begins the journey of a document that is held from now on, if it is sampled.
func (e *Engine) follow(id []byte, host uint32) {
	if !e.journeys.share.Samples(id) {
		return
	}
	if len(e.journeys.byDoc) >= maxJourneys {
		e.Out.Skipped++
		return
	}
	doc := e.slots.FindDoc(id)
	t := &traveller{host: host, phase: trace.Slot, since: e.now}
	t.DocID, t.Host = string(id), string(e.slots.Host(host).Name())
	t.Add(trace.Span{Phase: trace.Index, From: e.journeys.asked, To: e.now})
	if !e.slots.Host(host).Settled() {
		t.phase = trace.DNS
		e.journeys.homeless[host] = append(e.journeys.homeless[host], doc)
	}
	e.journeys.byDoc[doc] = t
}

// housed says that a host has got a group.
func (e *Engine) housed(host uint32) {
	docs := e.journeys.homeless[host]
	if docs == nil || !e.slots.Host(host).Settled() {
		return
	}
	delete(e.journeys.homeless, host)
	for _, doc := range docs {
		if t := e.journeys.byDoc[doc]; t != nil { // always; but no trace is worth the daemon
			t.enter(trace.Slot, e.now, "")
		}
	}
}

// enter ends the phase that a document is in, which is not Slot, and begins another.
func (t *traveller) enter(p trace.Phase, now time.Duration, why string) {
	t.Add(trace.Span{Phase: t.phase, From: t.since, To: now, Spider: t.spider, End: why})
	t.phase, t.since, t.spider = p, now, ""
}

// unqueue ends the wait in the queue: without a slot, and then, from when its group got the one that it has, with it.
// sent documents have a step of the latter, however short.
func (e *Engine) unqueue(doc uint32, t *traveller, sent bool) {
	_, since, ok := e.slots.SlotOf(doc)
	if !ok {
		since = e.now
	}
	since = max(since, t.since)
	if since > t.since {
		t.Add(trace.Span{Phase: trace.Leftover, From: t.since, To: since})
	}
	if sent || e.now > since {
		t.Add(trace.Span{Phase: trace.Slot, From: since, To: e.now})
	}
	t.since = e.now
}

// depart says that a document goes to a spider.
func (e *Engine) depart(doc uint32, sp *spider) {
	t := e.journeys.byDoc[doc]
	if t == nil {
		return
	}
	e.unqueue(doc, t, true)
	t.phase, t.spider = trace.Spider, sp.addr
}

// comeBack says why a document is at its spider no more.
func (e *Engine) comeBack(doc uint32, why string) {
	if t := e.journeys.byDoc[doc]; t != nil {
		t.enter(trace.Slot, e.now, why)
	}
}

// arrive ends the journey of a document that is let go of. told: its outcome is the last of Out.Outcomes.
func (e *Engine) arrive(doc uint32, outcome string, status int, told bool) {
	t := e.journeys.byDoc[doc]
	if t == nil {
		return
	}
	switch t.phase {
	case trace.DNS:
		e.journeys.leaveHome(t.host, doc)
		t.enter(trace.Delivery, e.now, "")
	case trace.Spider:
		t.enter(trace.Delivery, e.now, outcome)
	default:
		e.unqueue(doc, t, false)
	}
	if group, _, _ := e.slots.SlotOf(doc); group != 0 {
		t.Group = e.slots.Group(group).Name()
	}
	t.Outcome, t.Status, t.Attempts = outcome, max(status, 0), e.slots.Doc(doc).Attempts
	end := JourneyEnd{Trace: t.Trace, At: e.now}
	if told {
		end.Outcome = e.Out.Outcomes.Len()
	}
	delete(e.journeys.byDoc, doc)
	e.Out.Journeys = append(e.Out.Journeys, end)
}

// leaveHome takes a document out of those that wait for their host's group.
func (j *journeys) leaveHome(host, doc uint32) {
	left := slices.DeleteFunc(j.homeless[host], func(other uint32) bool { return other == doc })
	if j.homeless[host] = left; len(left) == 0 {
		delete(j.homeless, host)
	}
}
