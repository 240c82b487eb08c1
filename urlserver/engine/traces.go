package engine

import (
	"slices"
	"time"

	"urlserver/configs"
	"urlserver/internal/trace"
)

// maxTraces bounds the sampled documents that are traced at once; further ones are skipped.
const maxTraces = 4096

// TraceEnd is the trace of a sampled document that the engine holds no longer.
type TraceEnd struct {
	trace.Trace
	At      time.Duration // when
	Outcome int           // its outcome's place in Out.Outcomes, plus one; 0: it has none
}

// tracer has the traces of the sampled documents that are held. Other documents cost a look at
// their DOC_ID, and nothing if none is sampled.
type tracer struct {
	share      trace.Ratio
	byDoc      map[uint32]*docTrace
	unresolved map[uint32][]uint32 // documents of hosts without a group, by host
	askedAt    time.Duration       // when the doc index was asked last
}

// docTrace is the trace of a document that is held.
type docTrace struct {
	trace.Trace
	host   uint32
	phase  trace.Phase // DNS, Spider or Slot; endWait divides Slot into Leftover and Slot
	since  time.Duration
	spider string // of Spider: its address
}

func newTracer() tracer {
	return tracer{byDoc: map[uint32]*docTrace{}, unresolved: map[uint32][]uint32{}}
}

func (j *tracer) apply(cfg configs.Trace) {
	j.share = 0
	if cfg.Endpoint != "" {
		j.share = trace.RatioOf(cfg.Sample)
	}
}

// startTrace starts the trace of a document that is held from now on, if it is sampled.
func (e *Engine) startTrace(id []byte, host uint32) {
	if !e.tracer.share.Samples(id) {
		return
	}
	if len(e.tracer.byDoc) >= maxTraces {
		e.Out.Skipped++
		return
	}
	doc := e.slots.FindDoc(id)
	t := &docTrace{host: host, phase: trace.Slot, since: e.now}
	t.DocID, t.Host = string(id), string(e.slots.Host(host).Name())
	t.Add(trace.Span{Phase: trace.Index, From: e.tracer.askedAt, To: e.now})
	if !e.slots.Host(host).Settled() {
		t.phase = trace.DNS
		e.tracer.unresolved[host] = append(e.tracer.unresolved[host], doc)
	}
	e.tracer.byDoc[doc] = t
}

// hostResolved ends the DNS phase of a host's documents: the host has a group.
func (e *Engine) hostResolved(host uint32) {
	docs := e.tracer.unresolved[host]
	if docs == nil || !e.slots.Host(host).Settled() {
		return
	}
	delete(e.tracer.unresolved, host)
	for _, doc := range docs {
		if t := e.tracer.byDoc[doc]; t != nil { // t is never nil, but tracing must not end the daemon
			t.enterPhase(trace.Slot, e.now, "")
		}
	}
}

// enterPhase ends the phase that a document is in, which is not Slot, and begins another.
func (t *docTrace) enterPhase(p trace.Phase, now time.Duration, why string) {
	t.Add(trace.Span{Phase: t.phase, From: t.since, To: now, Spider: t.spider, End: why})
	t.phase, t.since, t.spider = p, now, ""
}

// endWait ends the phase in the queue: Leftover until the group got its slot, then Slot. Documents
// that are sent have a Slot span, however short.
func (e *Engine) endWait(doc uint32, t *docTrace, sent bool) {
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

// traceSent notes that a document goes to a spider.
func (e *Engine) traceSent(doc uint32, sp *spider) {
	t := e.tracer.byDoc[doc]
	if t == nil {
		return
	}
	e.endWait(doc, t, true)
	t.phase, t.spider = trace.Spider, sp.addr
}

// traceBack notes why a document has come back from its spider.
func (e *Engine) traceBack(doc uint32, why string) {
	if t := e.tracer.byDoc[doc]; t != nil {
		t.enterPhase(trace.Slot, e.now, why)
	}
}

// endTrace ends the trace of a document. hasOutcome: its outcome is the last one of Out.Outcomes.
func (e *Engine) endTrace(doc uint32, outcome string, status int, hasOutcome bool) {
	t := e.tracer.byDoc[doc]
	if t == nil {
		return
	}
	switch t.phase {
	case trace.DNS:
		e.tracer.dropUnresolved(t.host, doc)
		t.enterPhase(trace.Delivery, e.now, "")
	case trace.Spider:
		t.enterPhase(trace.Delivery, e.now, outcome)
	default:
		e.endWait(doc, t, false)
	}
	if group, _, _ := e.slots.SlotOf(doc); group != 0 {
		t.Group = e.slots.Group(group).Name()
	}
	t.Outcome, t.Status, t.Attempts = outcome, max(status, 0), e.slots.Doc(doc).Attempts
	end := TraceEnd{Trace: t.Trace, At: e.now}
	if hasOutcome {
		end.Outcome = e.Out.Outcomes.Len()
	}
	delete(e.tracer.byDoc, doc)
	e.Out.Traces = append(e.Out.Traces, end)
}

// dropUnresolved removes a document from those that wait for their host's group.
func (j *tracer) dropUnresolved(host, doc uint32) {
	left := slices.DeleteFunc(j.unresolved[host], func(other uint32) bool { return other == doc })
	if j.unresolved[host] = left; len(left) == 0 {
		delete(j.unresolved, host)
	}
}
