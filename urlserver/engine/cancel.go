package engine

import (
	"time"

	"urlserver/docindex"
)

// Cancel ends documents of crawls that are over, each with the kind that o has for it. A document
// at a spider ends when it would be sent again. While an answer of the index is pending, an unknown
// document ends if the answer has it; otherwise Cancel ignores it. Cancel calls tell once with the
// number of documents ended, those at spiders excepted: before it returns or, if it waits for an
// answer of the index, after that.
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

// cancelCount counts the documents that one Cancel has ended.
type cancelCount struct {
	ended int
	tell  func(ended int)
}

// cancelled is a document that ends when it arrives from the index.
type cancelled struct {
	kind docindex.Kind
	of   *cancelCount
}

// finishCancels reports the counts: the index's answer has been taken, and documents that were not
// in it will not come.
func (o *outcomes) finishCancels() {
	clear(o.cancelOnArrival)
	for _, t := range o.cancels {
		t.tell(t.ended)
	}
	o.cancels = nil
}

// Forget ends documents that the index has forgotten, without an outcome, and otherwise as Cancel
// does.
func (e *Engine) Forget(o *docindex.Outcomes) {
	var silent docindex.Outcomes
	for i := range o.Len() {
		out := o.At(i)
		out.Kind = withoutOutcome
		silent.Add(out)
	}
	e.Cancel(&silent, func(int) {})
}

// withoutOutcome is the kind of documents that end without an outcome.
const withoutOutcome = docindex.Kind(docindex.Kinds)

// inFlightStep is how many transactions a call of WalkInFlight looks at: some hundred
// microseconds' worth.
const inFlightStep = 1024

// InFlightWalk is a walk over the documents that are at spiders. The zero value begins it.
type InFlightWalk struct {
	next  uint32 // transaction
	began time.Duration
}

// WalkInFlight puts into o the next documents that were at spiders when the walk began, and still
// are. more: there are others.
func (e *Engine) WalkInFlight(w *InFlightWalk, o *docindex.Outcomes) (more bool) {
	o.Reset()
	if w.next == 0 {
		w.began = e.now
	}
	w.next = e.slots.InFlight(w.next, inFlightStep, w.began, func(doc uint32) {
		d := e.slots.Doc(doc)
		o.Add(docindex.Outcome{DocID: d.ID, URL: e.docURL(&d)})
	})
	return w.next != 0
}

// cancelArrived ends a candidate that was cancelled before it arrived. A forgotten one goes back
// to the index: it may have been put again since.
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
		e.outcome(&docindex.Outcome{DocID: d.id, URL: d.url.Text(), Kind: a.kind,
			Crawl: e.intake.batch.Batch.At(int(d.at)).Crawl})
		delete(e.spiders.returned, string(d.id))
	}
	return ok
}

// endCancelled ends a document that has come back from a spider and is cancelled.
func (e *Engine) endCancelled(doc uint32) {
	if kind, ok := e.outcomes.cancelOnReturn[doc]; ok && e.slots.Dequeue(doc) {
		e.end(doc, kind, 0)
	}
}
