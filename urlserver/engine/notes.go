package engine

import (
	"time"

	"urlserver/internal/robots"
)

// The doc index keeps notes of each robots.txt and of each address that backs off, in a bounded
// cache. Before a robots.txt is fetched whose rules are not in memory, the engine looks for its
// note (Out.NoteRequests). So a host that was forgotten, or that was known before a restart, costs no
// request while the answer is in force. An older answer gives the Crawl-delay under which the next
// one is fetched, and its rules stay in force if that fails (RFC 9309, section 2.3.1.4).

// NoteRequest asks for the note of an origin's robots.txt. Its answer goes to NoteFound.
type NoteRequest struct {
	Origin  string
	Agent   string   // whose rules are wanted
	Targets [][]byte // paths and queries of documents that wait for it, to be judged by it

	origin uint32
	urls   [][]byte
}

// Learned is the answer of an origin to a request for robots.txt, for the doc index to keep.
type Learned struct {
	Origin string
	Agent  string
	Entry  robots.Entry
}

// obtainRobots gets the robots.txt of an origin, whose documents wait for it: from the doc index,
// or from the origin itself.
func (e *Engine) obtainRobots(origin uint32) {
	entry := e.robots.entry(origin)
	known := entry.Rules() != nil && !entry.Unreachable()
	if !e.opt.Notes || known || faulty(FaultNotes) {
		e.startFetch(origin)
		return
	}
	e.slots.Host(e.slots.HostOf(origin)).Pin()
	urls := e.waiting(origin)
	e.Out.NoteRequests = append(e.Out.NoteRequests, &NoteRequest{
		Origin: string(e.slots.Origin(origin).Key()), Agent: e.cfg.Robots.UserAgent, Targets: targets(urls),
		origin: origin, urls: urls,
	})
}

// NoteFound takes the answer to one of Out.NoteRequests: what the robots.txt said at a moment of the wall
// clock; found is false if there is no note.
func (e *Engine) NoteFound(r *NoteRequest, resp robots.Response, at time.Time, found bool) {
	host := e.slots.HostOf(r.origin)
	defer e.slots.Host(host).Unpin()
	if found && r.Agent == e.cfg.Robots.UserAgent {
		// The clock may have been set back since, by an unknown time. So an answer from the future is at least
		// as old as it is ahead: after a small step it stays in force, and after a large one it is fetched again.
		age := e.wall.Sub(at).Abs()
		if faulty(FaultNoteAge) {
			age = 0
		}
		failures := e.robots.entry(r.origin).failures
		e.applyRobots(r.origin, resp, r.urls, e.now-age)
		e.updateCrawlDelay(host)
		entry := e.robots.entry(r.origin)
		entry.failures = failures
		if entry.fromNote = true; entry.Fresh(e.now) {
			e.stats.RobotsFound++
			e.slots.Origin(r.origin).SetRobotsPending(e.now, false)
			return
		}
	}
	e.startFetch(r.origin)
}

// learn makes the doc index keep what an origin has just answered.
func (e *Engine) learn(origin uint32) {
	entry := e.robots.entry(origin)
	if at, ok := entry.FetchedAt(); !e.opt.Notes || !ok || at != e.now || entry.Failed() {
		return
	}
	e.Out.Learned = append(e.Out.Learned, Learned{
		Origin: string(e.slots.Origin(origin).Key()), Agent: e.cfg.Robots.UserAgent, Entry: entry.Entry,
	})
}

// learnBackoff makes the doc index keep how the address of a host backs off, if that has changed.
func (e *Engine) learnBackoff(host uint32) {
	if b, changed := e.slots.Host(host).ChangedBackoff(); changed && e.opt.Notes {
		e.Out.Backoffs = append(e.Out.Backoffs, b)
	}
}
