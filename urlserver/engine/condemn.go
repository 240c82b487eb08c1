package engine

import (
	"time"

	"urlserver/docindex"
)

// Condemn ends documents of crawls that are over, each with its outcome's kind, and has tell called with how many were here, or
// on their way here, and will not be sent: now, or once the answer of the index has come that they may be in. One at a spider
// goes on, and ends so when it would be sent again. One that is nowhere has ended, and the index will hear of it.
func (e *Engine) Condemn(o *docindex.Outcomes, tell func(ended int)) {
	t, coming := &tally{tell: tell}, false
	for i := range o.Len() {
		out := o.At(i)
		doc := e.slots.FindDoc(out.DocID)
		switch {
		case doc == 0 && (e.asking || e.intake != nil):
			e.awaited[string(out.DocID)], coming = awaited{out.Kind, t}, true
		case doc == 0:
		case e.slots.Dequeue(doc):
			e.end(doc, out.Kind, 0)
			t.ended++
		default:
			e.doomed[doc] = out.Kind
		}
	}
	if !coming {
		tell(t.ended)
		return
	}
	e.tallies = append(e.tallies, t)
}

// tally is how many documents of a Condemn have ended.
type tally struct {
	ended int
	tell  func(ended int)
}

// awaited is a document that is to end when it comes.
type awaited struct {
	kind docindex.Kind
	of   *tally
}

// allCame says that what is awaited has come, or does not.
func (e *Engine) allCame() {
	clear(e.awaited)
	for _, t := range e.tallies {
		t.tell(t.ended)
	}
	e.tallies = nil
}

// Forget ends documents that the index has forgotten, without an outcome; else as Condemn does.
func (e *Engine) Forget(o *docindex.Outcomes) {
	var silent docindex.Outcomes
	for i := range o.Len() {
		out := o.At(i)
		out.Kind = forgotten
		silent.Add(out)
	}
	e.Condemn(&silent, func(int) {})
}

// forgotten is the kind of what ends without an outcome.
const forgotten = docindex.Kind(docindex.Kinds)

// atSpidersStep is how many transactions are looked at a call of AtSpiders: some hundred microseconds' worth.
const atSpidersStep = 1024

// Spiders is a walk over the documents that are at spiders. The zero value begins it.
type Spiders struct {
	next  uint32 // transaction
	began time.Duration
}

// AtSpiders puts into o the next documents that were at spiders when the walk began, and are still there. more: there are others.
func (e *Engine) AtSpiders(w *Spiders, o *docindex.Outcomes) (more bool) {
	o.Reset()
	if w.next == 0 {
		w.began = e.now
	}
	w.next = e.slots.InFlight(w.next, atSpidersStep, w.began, func(doc uint32) {
		d := e.slots.Doc(doc)
		o.Add(docindex.Outcome{DocID: d.ID, URL: d.URL})
	})
	return w.next != 0
}

// isAwaited ends a candidate that was condemned before it came. One that was forgotten is given back: it may have been put
// again since.
func (e *Engine) isAwaited(d *prepared) bool {
	if len(e.awaited) == 0 {
		return false
	}
	a, ok := e.awaited[string(d.id)]
	switch {
	case !ok:
	case a.kind == forgotten:
		e.Out.Returns.Add(docindex.Outcome{DocID: d.id, URL: d.url.Text()})
	default:
		a.of.ended++
		e.outcome(docindex.Outcome{DocID: d.id, URL: d.url.Text(), Kind: a.kind})
	}
	return ok
}

// isDoomed ends a document that has come back from a spider and may not be sent again.
func (e *Engine) isDoomed(doc uint32) {
	if kind, ok := e.doomed[doc]; ok && e.slots.Dequeue(doc) {
		e.end(doc, kind, 0)
	}
}
