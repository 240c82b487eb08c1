package engine

import "urlserver/docindex"

// Condemn ends documents of crawls that are over, each with its outcome's kind, and answers how many were here and will not be
// sent. One at a spider goes on, and ends so when it would be sent again. One that is not here has ended, and the index
// will hear of it; or it is still on its way here, and ends when it comes: Arrived tells of those.
func (e *Engine) Condemn(o *docindex.Outcomes) (ended int) {
	for i := range o.Len() {
		out := o.At(i)
		doc := e.slots.FindDoc(out.DocID)
		switch {
		case doc == 0 && (e.asking || e.intake != nil):
			e.awaited[string(out.DocID)] = out.Kind
		case doc == 0:
		case e.slots.Drop(doc):
			e.end(doc, out.Kind, 0)
			ended++
		default:
			e.doomed[doc] = out.Kind
		}
	}
	return ended
}

// Arrived has tell called with how many documents ended when they came here, that were condemned before and of which nobody was
// told so: now, or once the answer of the index has come that they may be in.
func (e *Engine) Arrived(tell func(ended int)) {
	e.arrivals = append(e.arrivals, tell)
	e.tellArrived()
}

func (e *Engine) tellArrived() {
	if len(e.awaited) > 0 {
		return
	}
	for _, tell := range e.arrivals {
		tell(e.arrived)
		e.arrived = 0
	}
	e.arrivals = nil
}

// Forget ends documents that the index has forgotten, without an outcome; else as Condemn does.
func (e *Engine) Forget(o *docindex.Outcomes) {
	var silent docindex.Outcomes
	for i := range o.Len() {
		out := o.At(i)
		out.Kind = forgotten
		silent.Add(out)
	}
	e.Condemn(&silent)
}

// forgotten is the kind of what ends without an outcome.
const forgotten = docindex.Kind(docindex.Kinds)

// AtSpiders adds the documents that are at spiders.
func (e *Engine) AtSpiders(o *docindex.Outcomes) {
	e.slots.AtSpiders(func(doc uint32) {
		d := e.slots.Doc(doc)
		o.Add(docindex.Outcome{DocID: d.ID, URL: d.URL})
	})
}

// isAwaited ends a candidate that was condemned before it came.
func (e *Engine) isAwaited(d *prepared) bool {
	if len(e.awaited) == 0 {
		return false
	}
	kind, ok := e.awaited[string(d.id)]
	if ok && kind != forgotten {
		e.arrived++
		e.outcome(docindex.Outcome{DocID: d.id, URL: d.url.Text(), Kind: kind})
	}
	return ok
}

// isDoomed ends a document that has come back from a spider and may not be sent again.
func (e *Engine) isDoomed(doc uint32) {
	if kind, ok := e.doomed[doc]; ok && e.slots.Drop(doc) {
		e.end(doc, kind, 0)
	}
}
