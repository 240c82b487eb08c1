package engine

import (
	"slices"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/container/timeheap"
	"urlserver/protocol"
)

// spiders has the connected spiders, their pools, and the documents that are suspects.
type spiders struct {
	byID      []*spider // nil: none
	pools     pools
	delayed   timeheap.Heap // spiders that get nothing yet, by the moment from which they do
	peers     map[string]*peer
	suspects  map[uint32]suspect  // by document
	returned  map[string]returned // documents in the index, by DOC_ID: what is known of them
	reserved  int                 // spiders that pools have reserved for suspects
	withRoom  int                 // spiders that may get a document
	backs     backs               // documents that they gave back
	leaving   []uint32            // spiders that have gone, with documents to be queued again
	connected int                 // spiders that have not gone
	taking    int                 // those of them that take documents
	keepUntil time.Duration       // until then the slots keep their documents though no spider takes any
}

// pools has the spider pools, by number and by spiderid.
type pools struct {
	all    []spiderPool
	byName map[string]uint32
	turn   int // where resumeSuspended begins
}

func newSpiders() spiders {
	return spiders{
		byID:     make([]*spider, 1),
		pools:    pools{all: make([]spiderPool, 1), byName: map[string]uint32{}},
		peers:    map[string]*peer{},
		suspects: map[uint32]suspect{},
		returned: map[string]returned{},
		backs:    newBacks(),
	}
}

// spider is a connection to a spider.
type spider struct {
	addr         string
	out          []byte        // lines that are not with its connection yet
	queued       int           // the number of these lines
	stamped      time.Duration // when the first of them counts as sent
	inFlight     int
	sent, done   uint64
	badInRow     int
	writingSince time.Duration // since when the connection has lines that it has not written; negative: it has none
	peer         *peer
	heard        time.Duration       // when it last said something of what it was sent
	spoke        bool                // it has said something of what it was sent
	notSpider    bool                // it is no spider: its documents in flight count no attempt
	company      company             // what the suspects there allow
	longFetches  map[uint32]struct{} // documents that it said WORKING of when it had them for a status timeout
	loss         loss                // how it ended, if it is gone
	gone         bool                // it gets nothing more; its documents are queued again
	closed       bool                // its connection has ended, too
	dropped      string              // why the daemon ends its connection; "": it does not
	pool         uint32
	notBefore    time.Duration // it gets nothing before; 0: it may
	recent       recent
	room         int  // that it said it has; noRoomSaid: it did not
	payloads     bool // it said PAYLOAD
}

// Line is a parsed line from a spider.
type Line struct {
	protocol.Status
	IsRoom    bool // it is a ROOM line: Room, and no Status, is set
	Room      int
	IsPayload bool // it is a PAYLOAD line; no Status is set
	Bad       bool // it did not parse
	Asked     bool // a PUT or COUNT came before it, which the engine does not see
}

// Connected adds a spider and returns its number. addr is its address, for people to read.
func (e *Engine) Connected(addr string) (id uint32) { return e.ConnectedFrom(addr, addr) }

// ConnectedFrom is Connected for spiders whose successive connections are recognised by peer
// instead of addr.
func (e *Engine) ConnectedFrom(addr, peer string) (id uint32) {
	sp := &spider{addr: addr, writingSince: -1, peer: e.spiders.peerAt(peer), room: noRoomSaid}
	for i := 1; i < len(e.spiders.byID) && id == 0; i++ {
		if e.spiders.byID[i] == nil {
			id = uint32(i)
		}
	}
	if id == 0 {
		id = uint32(len(e.spiders.byID))
		e.spiders.byID = append(e.spiders.byID, nil)
	}
	e.spiders.byID[id] = sp
	e.spiders.connected++
	e.countTaking(sp, false)
	e.countConnected(0, 1)
	e.holdUntil(id, sp, sp.peer.until)
	return id
}

// Gone says that a spider's connection has ended. Its documents in flight are queued again, before
// younger ones of their priority. If it said nothing of what it was sent, Gone returns how many connections in a row
// from its address have not, and how long the next one there waits for its first documents.
func (e *Engine) Gone(id uint32) (silent int, pause time.Duration) {
	sp := e.spiders.byID[id]
	e.loseSpider(id, sp, hostslots.InTime)
	sp.closed = true
	if !slices.Contains(e.spiders.leaving, id) { // all is back already
		e.spiders.byID[id] = nil
	}
	if sp.spoke || sp.notSpider {
		return 0, 0
	}
	return sp.peer.silent, max(0, sp.peer.until-e.now)
}

// drop makes the owner end a spider's connection. why is for people.
func (e *Engine) drop(id uint32, why string) {
	e.spiders.byID[id].dropped = why
	if !faulty(FaultHangUp) {
		e.Out.Drop = append(e.Out.Drop, id)
	}
}

// WhyDropped returns why a spider is in Out.Drop, in words.
func (e *Engine) WhyDropped(id uint32) string { return e.spiders.byID[id].dropped }

// holdUntil delays a spider's documents until the given moment; if that is past, it gets them now.
func (e *Engine) holdUntil(id uint32, sp *spider, until time.Duration) {
	took := sp.takes()
	if sp.notBefore = until; until > e.now {
		e.spiders.delayed.Set(id, until)
	} else {
		sp.notBefore = 0
		e.spiders.delayed.Remove(id)
	}
	e.countTaking(sp, took)
	e.updateSpider(id, sp)
}

// NotSpider says that a connection is not a spider's. It gets nothing more, its documents in flight
// count no attempt, and what it said counts as a bad line. Gone must follow.
func (e *Engine) NotSpider(id uint32) {
	sp := e.spiders.byID[id]
	sp.notSpider = true
	e.stats.BadLines++
	e.updateSpider(id, sp)
}

// Lines takes lines from a spider, in their order. It returns the first one that names a
// transaction which never was, or is not this spider's; nil: there is none.
func (e *Engine) Lines(id uint32, lines []Line) (foreign *Line) {
	sp := e.spiders.byID[id]
	if sp.notBefore > sp.peer.until {
		e.holdUntil(id, sp, sp.peer.until)
	}
	for i := range lines {
		if i%hostslots.ReadAhead == 0 {
			e.readDoneAhead(lines[i:])
		}
		if e.line(id, sp, &lines[i]) {
			sp.badInRow = 0
			if !lines[i].IsRoom && !lines[i].IsPayload {
				sp.noteSpoke(e.now)
			}
			continue
		}
		if lines[i].Asked {
			sp.badInRow = 0
		}
		if foreign == nil && !lines[i].Bad {
			foreign = &lines[i]
		}
		e.stats.BadLines++
		if sp.badInRow++; sp.badInRow == maxBadInRow {
			e.drop(id, "too many bad lines in a row")
		}
	}
	e.updateSpider(id, sp)
	return foreign
}

// readDoneAhead makes the slots read ahead for the first of some lines.
func (e *Engine) readDoneAhead(lines []Line) {
	var names [hostslots.ReadAhead]hostslots.TransID
	n := min(len(lines), hostslots.ReadAhead)
	for i := range n {
		names[i] = hostslots.TransID(lines[i].Trans)
	}
	e.slots.ReadDoneAhead(names[:n])
}

// line takes one line and reports whether it was a good one.
func (e *Engine) line(id uint32, sp *spider, l *Line) bool {
	if l.Bad {
		return false
	}
	if l.IsRoom {
		e.setRoom(id, sp, l.Room)
		return true
	}
	if l.IsPayload {
		sp.payloads = true
		return true
	}
	trans := hostslots.TransID(l.Trans)
	state, tx := e.slots.Lookup(trans)
	switch {
	case state == hostslots.Unknown, state == hostslots.Live && tx.Spider != id && !faulty(FaultAlien):
		return false
	case state == hostslots.Stale:
		e.stats.Stale++
	case l.Verb == protocol.Working:
		e.slots.Working(e.now, trans)
		sp.recent.working()
		e.worked(sp, tx)
	case l.Verb == protocol.Back:
		e.back(sp, trans, tx.Sent, &l.Status)
	default:
		e.done(sp, trans, tx.Sent, &l.Status)
	}
	return true
}

func (e *Engine) done(sp *spider, trans hostslots.TransID, sent time.Duration, s *protocol.Status) {
	e.markWritten(sp, trans, sent)
	retry := time.Duration(max(0, s.RetryAfter)) * time.Second
	sp.recent.answered(e.now, e.now-sent)
	doc := e.slots.Done(e.now, trans, s.Code, retry)
	delete(sp.longFetches, doc)
	sp.inFlight--
	sp.done++
	status := s.Code
	if !s.HasStatus {
		status = protocol.NoStatus
	}
	o := docindex.Outcome{Took: max(0, e.now-sent), Location: []byte(s.Location)}
	switch {
	case s.HasChanged && s.Changed:
		o.Change = docindex.Modified
	case s.HasChanged:
		o.Change = docindex.Unchanged
	}
	e.stats.Bytes += uint64(s.Bytes)
	e.stats.FetchTook += o.Took
	e.endWith(doc, docindex.Done, status, &o)
}

// markWritten counts now as the last request to the group of a document whose line may have been
// written only now.
func (e *Engine) markWritten(sp *spider, trans hostslots.TransID, sent time.Duration) {
	if sp.writingSince >= 0 && sent >= sp.writingSince && e.now-sent > lateAfter {
		e.slots.MarkRequested(e.now, trans)
	}
}

// Output returns the lines that wait for a spider, in exchange for an empty buffer. If there are
// none it returns nil, and spare stays the caller's. Written must follow before the next Output.
func (e *Engine) Output(id uint32, spare []byte) (lines []byte) {
	sp := e.spiders.byID[id]
	if len(sp.out) == 0 {
		return nil
	}
	lines, sp.out, sp.queued = sp.out, spare[:0], 0
	sp.writingSince = sp.stamped
	e.updateSpider(id, sp)
	return lines
}

// WriteBy returns when the last Output must have been written: after that, its first line counts
// as lost, or its group's lease may have ended. The moment may have passed.
func (e *Engine) WriteBy(id uint32) time.Duration {
	most := e.cfg.TimeoutSpiderStatus
	if e.opt.Lease > 0 {
		most = min(most, e.margin())
	}
	return e.spiders.byID[id].writingSince + most
}

// Written says that the spider has the last Output now. If that took long, the groups' gaps count
// from now, so that they hold on the wire.
func (e *Engine) Written(id uint32) {
	sp := e.spiders.byID[id]
	if e.now-sp.writingSince > lateAfter && !faulty(FaultWire) {
		e.slots.LinesWritten(e.now, id, sp.writingSince)
	}
	sp.writingSince = -1
	e.updateSpider(id, sp)
}

// listens reports whether lines may go to a spider now.
func (sp *spider) listens(now time.Duration) bool {
	return !sp.gone && !sp.notSpider && sp.notBefore == 0 && len(sp.out) < maxOutput && !sp.stuck(now)
}
