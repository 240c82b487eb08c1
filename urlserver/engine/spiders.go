package engine

import (
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/protocol"
)

// spider is a connection to a spider.
type spider struct {
	addr       string
	out        []byte        // lines that are not with its connection yet
	stamped    time.Duration // when the first of them counts as sent
	inFlight   int
	sent, done uint64
	badInRow   int
	flying     time.Duration // since when lines are with the connection, not written; negative: none are
	silent     bool          // a document of it timed out, and it has said nothing since
	gone       bool
	stranger   bool // no spider: what it has counts no attempt
	crew       uint32
	from       time.Duration // it gets nothing before; 0: it may
	recent     recent
}

// Line is a line from a spider, parsed.
type Line struct {
	protocol.Status
	Bad bool // it did not parse
}

// Connected adds a spider, with its address for people to read, and returns its
// number.
func (e *Engine) Connected(addr string) (id uint32) {
	sp := &spider{addr: addr, flying: -1}
	for i := 1; i < len(e.spiders) && id == 0; i++ {
		if e.spiders[i] == nil {
			id = uint32(i)
		}
	}
	if id == 0 {
		id = uint32(len(e.spiders))
		e.spiders = append(e.spiders, nil)
	}
	e.spiders[id] = sp
	e.linked++
	e.link(0, 1)
	e.withdrawn = 0
	e.review(id, sp)
	return id
}

// Gone says that a spider's connection has ended. What it had in flight goes
// back to the front of its slots. Lines that were with the connection may have
// got through until now.
func (e *Engine) Gone(id uint32) {
	sp := e.spiders[id]
	if sp.flying >= 0 {
		e.Written(id)
	}
	sp.gone, sp.out = true, nil
	e.linked--
	e.link(sp.crew, -1)
	e.review(id, sp)
	e.leaving = append(e.leaving, id)
}

// Disown says that a connection is no spider's: it gets nothing more, and what it has counts no attempt.
// Gone is to follow. What it said counts as a bad line.
func (e *Engine) Disown(id uint32) {
	sp := e.spiders[id]
	sp.stranger = true
	e.stats.BadLines++
	e.review(id, sp)
}

// Lines takes lines from a spider, in their order. It returns the first that names a
// transaction which never was, or is not this spider's; nil: none does.
func (e *Engine) Lines(id uint32, lines []Line) (foreign *Line) {
	sp := e.spiders[id]
	sp.silent, sp.from = false, 0
	for i := range lines {
		if e.line(id, sp, &lines[i]) {
			sp.badInRow = 0
			continue
		}
		if foreign == nil && !lines[i].Bad {
			foreign = &lines[i]
		}
		e.stats.BadLines++
		if sp.badInRow++; sp.badInRow == maxBadInRow {
			e.Out.Drop = append(e.Out.Drop, id)
		}
	}
	e.review(id, sp)
	return foreign
}

// line takes one line and answers whether it was a good one.
func (e *Engine) line(id uint32, sp *spider, l *Line) bool {
	if l.Bad {
		return false
	}
	trans := hostslots.Trans(l.Trans)
	verdict, holder := e.slots.Lookup(trans)
	switch {
	case verdict == hostslots.Never, verdict == hostslots.Live && holder != id && !faulty(faultAlien):
		return false
	case verdict == hostslots.Stale:
		e.stats.Stale++
	case l.Verb == protocol.Working:
		e.slots.Working(e.now, trans)
		sp.recent.working()
	default:
		e.done(sp, trans, &l.Status)
	}
	return true
}

func (e *Engine) done(sp *spider, trans hostslots.Trans, s *protocol.Status) {
	if sent := e.slots.Sent(trans); sp.flying >= 0 && sent >= sp.flying && e.now-sent > lateAfter {
		e.slots.Touch(e.now, trans)
	}
	retry := time.Duration(max(0, s.RetryAfter)) * time.Second
	sp.recent.answered(e.now, e.now-e.slots.Sent(trans))
	doc := e.slots.Done(e.now, trans, s.Code, retry)
	sp.inFlight--
	sp.done++
	status := s.Code
	if !s.HasStatus {
		status = protocol.NoStatus
	}
	e.end(doc, docindex.Done, status)
}

// Output takes the lines out that wait for a spider, in exchange for an empty
// buffer; where there are none it returns nil and spare stays the caller's. Written is to follow before
// the next Output.
func (e *Engine) Output(id uint32, spare []byte) (lines []byte) {
	sp := e.spiders[id]
	if len(sp.out) == 0 {
		return nil
	}
	lines, sp.out = sp.out, spare[:0]
	sp.flying = sp.stamped
	e.review(id, sp)
	return lines
}

// WriteBy is when the last Output must have been written: the first of its lines is taken for lost then, or its group's
// lease may have ended. It may have passed.
func (e *Engine) WriteBy(id uint32) time.Duration {
	most := e.cfg.TimeoutSpiderStatus
	if e.opt.Lease > 0 {
		most = min(most, e.margin())
	}
	return e.spiders[id].flying + most
}

// Written says that the last Output is with the spider now. Where that took
// long, the groups' gaps count from now, so that they hold on the wire.
func (e *Engine) Written(id uint32) {
	sp := e.spiders[id]
	if e.now-sp.flying > lateAfter && !faulty(faultWire) {
		e.slots.Delayed(e.now, id, sp.flying)
	}
	sp.flying = -1
}
