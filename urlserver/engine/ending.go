package engine

import (
	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/protocol"
)

// outcomes has the documents that are to end or to go back to the index without being sent, and
// what is remembered of those that have ended.
type outcomes struct {
	quarantine      *quarantine
	byHost          hostTable                // counters of outcomes
	returnOnTurn    map[uint32]struct{}      // documents that the index wants back
	returnOnArrival map[string]struct{}      // DOC_IDs of those that may come with the next answer of the index
	cancelOnReturn  map[uint32]docindex.Kind // documents at spiders that are not to be sent again
	cancelOnArrival map[string]cancelled     // by DOC_ID: documents that may come with the next answer of the index
	cancels         []*cancelCount           // counts whose callers wait for that answer
	recallsQueued   bool                     // all queued documents go back before anything is sent
	recallsArriving bool                     // all documents of the next answer of the index go back, too
	url             []byte                   // a buffer of Engine.docURL
}

func newOutcomes() outcomes {
	return outcomes{
		quarantine:      newQuarantine(),
		returnOnTurn:    map[uint32]struct{}{},
		returnOnArrival: map[string]struct{}{},
		cancelOnReturn:  map[uint32]docindex.Kind{},
		cancelOnArrival: map[string]cancelled{},
	}
}

// docURL returns the URL of a document, which is good until the next call.
func (e *Engine) docURL(d *hostslots.Doc) []byte {
	e.outcomes.url = d.AppendURL(e.outcomes.url[:0])
	return e.outcomes.url
}

// end ends a document with an outcome. status may be protocol.NoStatus.
func (e *Engine) end(doc uint32, kind docindex.Kind, status int) {
	e.endWith(doc, kind, status, &docindex.Outcome{})
}

// endWith is end with an outcome in which the caller has set what the spider said of the last fetch.
func (e *Engine) endWith(doc uint32, kind docindex.Kind, status int, o *docindex.Outcome) {
	d := e.slots.Doc(doc)
	o.DocID, o.URL, o.Crawl, o.Attempts = d.ID, e.docURL(&d), []byte(d.Crawl), d.Attempts
	o.Kind, o.Status, o.NoStatus = kind, max(status, 0), status == protocol.NoStatus
	if e.opt.Exact {
		o.Pause, o.Gap = e.slots.Host(d.Host).RemainingWait(e.now)
		e.learnBackoff(d.Host)
	}
	if kind == withoutOutcome {
		e.endTrace(doc, "forgotten", 0, false)
	} else {
		e.countOutcome(d.Host, o)
		e.outcome(o)
		e.endTrace(doc, kind.String(), status, true)
	}
	e.forgetDoc(doc)
}

// forgetDoc forgets a document that has ended or goes back to the index.
func (e *Engine) forgetDoc(doc uint32) {
	delete(e.outcomes.returnOnTurn, doc)
	delete(e.outcomes.cancelOnReturn, doc)
	e.spiders.parted(doc)
	delete(e.spiders.suspects, doc)
	e.spiders.backs.forget(doc)
	e.slots.End(e.now, doc)
}

// Recalled returns documents to the doc index instead of sending them: at once or, if they are on
// their way from the index, as soon as they arrive. A document at a spider goes back when it would
// be sent again.
func (e *Engine) Recalled(o *docindex.Outcomes) {
	for i := range o.Len() {
		id := o.At(i).DocID
		if doc := e.slots.FindDoc(id); doc != 0 {
			e.recall(doc)
		} else if e.intake.asking || e.intake.batch != nil { // it may be on its way
			e.outcomes.returnOnArrival[string(id)] = struct{}{}
		}
	}
}

// RecallAll returns all documents to the doc index instead of sending them, as Recalled does.
// Nothing is sent until the queued documents have gone back. Documents that the index gives out
// after this call stay.
func (e *Engine) RecallAll() {
	e.outcomes.recallsQueued = true
	e.outcomes.recallsArriving = e.intake.asking || e.intake.batch != nil
	mark := func(doc uint32) { e.outcomes.returnOnTurn[doc] = struct{}{} }
	for next := e.slots.InFlight(0, inFlightStep, e.now, mark); next != 0; {
		next = e.slots.InFlight(next, inFlightStep, e.now, mark)
	}
}

// recall returns a document to the index now if it is in a queue, or when it would be sent next.
func (e *Engine) recall(doc uint32) {
	if e.slots.Dequeue(doc) {
		e.returnDoc(doc)
		return
	}
	e.outcomes.returnOnTurn[doc] = struct{}{}
}

// returnSelected returns the selected document to the index if the index has recalled it. It
// reports whether it did so.
func (e *Engine) returnSelected(t hostslots.Selection) bool {
	if _, ok := e.outcomes.returnOnTurn[t.Doc]; !ok {
		return false
	}
	e.slots.DequeueSelected(e.now, t)
	e.returnDoc(t.Doc)
	return true
}

// returnDoc returns a document to the index that is in no queue of the slots.
func (e *Engine) returnDoc(doc uint32) {
	d := e.slots.Doc(doc)
	e.spiders.remember(d.ID, doc, d.Attempts, e.now)
	e.Out.Returns.Add(docindex.Outcome{DocID: d.ID, URL: e.docURL(&d)})
	e.endTrace(doc, "returned", 0, false)
	e.forgetDoc(doc)
}

// dequeueLook is how many origins one search for a document to return looks at.
const dequeueLook = 64

// returnQueued returns queued documents to a shared index if no spider takes any for a while, or
// after RecallAll.
func (e *Engine) returnQueued(budget *int) {
	if !e.outcomes.recallsQueued && !e.leavesAll() || len(e.spiders.leaving) > 0 || e.intake.batch != nil {
		return
	}
	if c := e.slots.Counts(); c.Held == c.InFlight {
		e.outcomes.recallsQueued = false
		return
	}
	for ; *budget > 0; *budget-- {
		doc, more := e.slots.DequeueAny(dequeueLook)
		if doc != 0 {
			e.returnDoc(doc)
		} else if !more {
			e.outcomes.recallsQueued = false
			return
		}
	}
}

func (e *Engine) outcome(o *docindex.Outcome) {
	o.At = e.wall
	e.stats.Outcomes[o.Kind]++
	e.stats.Classes[docindex.ClassOf(o.Kind, o.Status)]++
	switch n := e.stats.Outcomes[o.Kind]; {
	case faulty(FaultUnreported) && n%50 == 0:
		return
	case faulty(FaultAgain) && n%50 == 0:
		e.Out.Outcomes.Add(*o)
	case faulty(FaultKind) && o.Kind == docindex.Done:
		o.Kind = docindex.Timeout
	}
	e.Out.Outcomes.Add(*o)
	if !e.opt.Exact {
		e.outcomes.quarantine.add(o.DocID, e.now)
	}
}

func (e *Engine) inQuarantine(id []byte) bool {
	return !e.opt.Exact && !faulty(FaultQuarantine) && e.outcomes.quarantine.has(id, e.now-e.cfg.DocIndex.Quarantine)
}
