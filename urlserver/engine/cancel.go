package engine

import (
	"time"

	"urlserver/docindex"
)

// Cancel ends documents of crawls that are over, each with its outcome's kind, and has tell called with how many were here, or
// on their way here, and will not be sent: now, or once the answer of the index has come that they may be in. One at a spider
// goes on, and ends so when it would be sent again. One that is nowhere has ended, and the index will hear of it.
func (e *Engine) Cancel(o *docindex.Outcomes, tell func(ended int)) {
	t, coming := &cancelCount{tell: tell}, false
	for i := range o.Len() {
		out := o.At(i)
		doc := e.slots.FindDoc(out.DocID)
		switch {
		case doc == 0 && (e.intake.asking || e.intake.batch != nil):
			e.outcomes.cancelOnArrival[string(out.DocID)], coming = cancelled{out.Kind, t}, true
		case doc == 0:
		case e.slots.Dequeue(doc):
			e.end(doc, out.Kind, 0)
			t.ended++
		default:
			e.outcomes.cancelOnReturn[doc] = out.Kind
		}
	}
	if !coming {
		tell(t.ended)
		return
	}
	e.outcomes.cancels = append(e.outcomes.cancels, t)
}

// cancelCount is how many documents of a Condemn have ended.
type cancelCount struct {
	ended int
	tell  func(ended int)
}

// cancelled is a document that is to end when it comes.
type cancelled struct {
	kind docindex.Kind
	of   *cancelCount
}

// finishCancels says that what is awaited has come, or does not.
func (o *outcomes) finishCancels() {
	clear(o.cancelOnArrival)
	for _, t := range o.cancels {
		t.tell(t.ended)
	}
	o.cancels = nil
}

// Forget ends documents that the index has forgotten, without an outcome; else as Condemn does.
func (e *Engine) Forget(o *docindex.Outcomes) {
	var silent docindex.Outcomes
	for i := range o.Len() {
		out := o.At(i)
		out.Kind = withoutOutcome
		silent.Add(out)
	}
	e.Cancel(&silent, func(int) {})
}

// withoutOutcome is the kind of what ends without an outcome.
const withoutOutcome = docindex.Kind(docindex.Kinds)

// inFlightStep is how many transactions are looked at a call of AtSpiders: some hundred microseconds' worth.
const inFlightStep = 1024

// InFlightWalk is a walk over the documents that are at spiders. The zero value begins it.
type InFlightWalk struct {
	next  uint32 // transaction
	began time.Duration
}

// WalkInFlight puts into o the next documents that were at spiders when the walk began, and are still there. more: there are others.
func (e *Engine) WalkInFlight(w *InFlightWalk, o *docindex.Outcomes) (more bool) {
	o.Reset()
	if w.next == 0 {
		w.began = e.now
	}
	w.next = e.slots.InFlight(w.next, inFlightStep, w.began, func(doc uint32) {
		d := e.slots.Doc(doc)
		o.Add(docindex.Outcome{DocID: d.ID, URL: d.URL})
	})
	return w.next != 0
}

// cancelArrived ends a candidate that was condemned before it came. One that was forgotten is given back: it may have been put
// again since.
func (e *Engine) cancelArrived(d *prepared) bool {
	if len(e.outcomes.cancelOnArrival) == 0 {
		return false
	}
	a, ok := e.outcomes.cancelOnArrival[string(d.id)]
	switch {
	case !ok:
	case a.kind == withoutOutcome:
		e.Out.Returns.Add(docindex.Outcome{DocID: d.id, URL: d.url.Text()})
	default:
		a.of.ended++
		e.outcome(docindex.Outcome{DocID: d.id, URL: d.url.Text(), Kind: a.kind})
	}
	return ok
}

// endCancelled ends a document that has come back from a spider and may not be sent again.
func (e *Engine) endCancelled(doc uint32) {
	if kind, ok := e.outcomes.cancelOnReturn[doc]; ok && e.slots.Dequeue(doc) {
		e.end(doc, kind, 0)
	}
}
