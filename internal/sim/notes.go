package sim

import (
	"time"

	"urlserver/docindex"
	"urlserver/internal/robots"
	"urlserver/urlserver/engine"
)

// notes are what the index keeps of robots.txt, by origin. It forgets some at once, as a bounded
// cache may.
type notes map[string][]byte

// forgotten is the share of notes that are forgotten.
const forgotten = 0.1

// keepNotes takes what the engine has learned, as the daemon's notebook does.
func (r *run) keepNotes(learned []engine.Learned) {
	for _, l := range learned {
		text, ok := l.Entry.AppendNote(nil, l.Agent, r.start.Add(r.now+r.drift))
		if ok && len(text) <= docindex.MaxNote && !r.chance(forgotten) {
			r.notes[l.Origin] = text
			r.oracle.noted(l.Origin)
		} else {
			delete(r.notes, l.Origin)
		}
	}
}

// findNote answers a request for a note after a while.
func (r *run) findNote(q *engine.NoteRequest) {
	r.after(r.between(0, 50*time.Millisecond), r.ofLife(func() {
		text, found := r.notes[q.Origin]
		if !found {
			r.engine.NoteFound(q, robots.Response{}, time.Time{}, false)
			return
		}
		resp, at, ok := robots.ReadNote(text, q.Agent, q.Targets)
		r.oracle.judges(q.Targets[:len(resp.Verdicts())])
		if ok {
			r.oracle.notedDelay(q.Origin)
		}
		r.engine.NoteFound(q, resp, at, ok)
	}))
}
