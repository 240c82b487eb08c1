package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver/explain"
)

// What the end of a spider's connection counts for the documents that were in flight there:
//
//   - A spider that said nothing of what it was sent may have crashed by itself: no attempt counts, and its address is
//     distrusted: what connects from there next gets its first documents after a pause, and few, until it says something.
//   - Otherwise each of them may be what killed it, and is suspect: an attempt counts, and it is tried again in ever
//     smaller company (suspects.go). The last attempt that it may have counts only where it was alone.
//   - What was alone counts in both cases; where the spider had said nothing, only if that happens to it again, and the
//     address is one from which spiders spoke.
//   - The daemon ends a connection with a transaction that takes too long. Where the spider spoke of others meanwhile, that
//     one counts, and the others do not. Where it spoke of none, it stood still, and one of those in flight may have
//     been the cause: they count as above, and those that take too long do so whether the spider ever spoke or not.

// peer is the address that a spider comes from, or is dialled at.
type peer struct {
	linked int           // connections
	mute   int           // connections lost in a row before they said anything of what they were sent
	until  time.Duration // nothing goes to those that come next before
	spoke  bool          // one of them said something once
}

const (
	maxPeers       = 4096        // remembered at most, beside those that are connected
	firstMutePause = time.Second // before the first documents, after one mute connection; twice as long after each further one
	mostMutePause  = time.Minute // at most, or half the status timeout
	fewAgain       = 8           // documents before the first word, after one mute connection; half as many after each further one
)

// loss is how a connection ended.
type loss struct {
	docs   int                 // in flight then, whose lines had left the daemon
	long   map[uint32]struct{} // of docs: the spider had worked at them for a status timeout
	unsent int                 // of all, the youngest: whose lines had not
	spares bool                // it ended for what took too long, while the spider spoke of others
}

// peerAt returns what is known of an address, and notes a connection.
func (e *Engine) peerAt(addr string) *peer {
	p := e.peers[addr]
	if p == nil {
		if len(e.peers) >= maxPeers {
			e.dropPeer()
		}
		p = &peer{}
		e.peers[addr] = p
	}
	p.linked++
	return p
}

// dropPeer forgets the address, of those with no connection, that was distrusted longest ago.
func (e *Engine) dropPeer() {
	oldest := ""
	for addr, p := range e.peers {
		if o := e.peers[oldest]; p.linked == 0 && (o == nil || p.until < o.until || p.until == o.until && addr < oldest) {
			oldest = addr
		}
	}
	delete(e.peers, oldest)
}

// distrust notes that a connection ended without a word.
func (e *Engine) distrust(p *peer) {
	p.mute++
	pause := min(mostMutePause, e.cfg.TimeoutSpiderStatus/2)
	if n := p.mute - 1; n < 10 {
		pause = min(pause, firstMutePause<<n)
	}
	p.until = e.now + pause
}

const (
	noteFrom = 2  // connections in a row without a word, from which on their address has a note
	maxNotes = 10 // addresses
)

// notes are on addresses whose spiders go without a word.
func (e *Engine) notes() (notes []string) {
	for _, addr := range slices.Sorted(maps.Keys(e.peers)) {
		if p := e.peers[addr]; p.mute >= noteFrom && len(notes) < maxNotes {
			notes = append(notes, fmt.Sprintf(
				"the last %d connections of spiders at %s ended before they said a word on what they were sent: "+
					"the next one gets its first documents at %s, and %d at most until it answers; look at the spider's log",
				p.mute, addr, explain.Dated(e.date(max(p.until, e.now))), few(p.mute)))
		}
	}
	return notes
}

// noteOf says why a spider gets few documents.
func (e *Engine) noteOf(id uint32, sp *spider) string {
	switch {
	case sp.distrusted():
		return fmt.Sprintf("gets %d at most until it answers: %d before it here did not", few(sp.peer.mute), sp.peer.mute)
	case len(sp.company) > 0 || e.isReserved(id, sp):
		return "gets few while it has what may have killed another spider"
	}
	return ""
}

// distrusted reports whether a spider has said nothing yet, and the one before it at its address had not when it went.
func (sp *spider) distrusted() bool { return sp.peer.mute > 0 && !sp.spoke }

// hears notes that a spider said something of what it was sent.
func (e *Engine) hears(sp *spider) {
	sp.heard, sp.spoke = e.now, true
	sp.peer.mute, sp.peer.until, sp.peer.spoke = 0, 0, true
}

// few is how many documents a spider gets before its first word, after so many connections without one.
func few(mute int) int { return max(1, fewAgain>>(mute-1)) }

// allowance is how many documents may be in flight at a spider.
func (e *Engine) allowance(sp *spider) int {
	most := e.window(sp)
	if sp.distrusted() {
		most = min(most, few(sp.peer.mute))
	}
	return min(most, sp.company.least(most))
}

// lose has what a spider has in flight go back, since its connection has ended or, where something takes too long there, is
// to be ended.
func (e *Engine) lose(id uint32, sp *spider, how hostslots.Lateness) {
	if sp.gone {
		return
	}
	if sp.flying >= 0 { // lines that were with the connection may have got through until now
		e.Written(id)
	}
	answers := sp.spoke && e.now-sp.heard < e.cfg.TimeoutSpiderStatus/2
	sp.loss = loss{
		docs: sp.inFlight - sp.queued, long: sp.long, unsent: sp.queued,
		spares: how == hostslots.Endless || how == hostslots.Silent && answers,
	}
	sp.gone, sp.out, sp.queued = true, nil, 0
	sp.peer.linked--
	if e.linked--; e.linked == 0 {
		e.lastLeft = e.now
	}
	e.link(sp.crew, -1)
	e.greeters.Remove(id)
	e.unreserve(sp.crew, id)
	if !sp.spoke && !sp.stranger && sp.sent > uint64(sp.loss.unsent) {
		e.distrust(sp.peer)
	}
	e.review(id, sp)
	e.leaving = append(e.leaving, id)
}

// expire ends the connections of spiders with something that takes too long, and takes back what they had.
func (e *Engine) expire(budget *int) {
	for *budget > 0 {
		id, how := e.slots.Overdue(e.now)
		if id == 0 {
			return
		}
		if sp := e.spiders[id]; !sp.gone {
			e.lose(id, sp, how)
			e.drop(id, map[hostslots.Lateness]string{
				hostslots.Silent:  "no status of a document for Timeout_Spider_Status",
				hostslots.Endless: "a document went on for spider.max_fetch",
			}[how])
		}
		e.putBack(budget)
	}
}

// putBack puts documents back that spiders had in flight when they went away.
func (e *Engine) putBack(budget *int) {
	for len(e.leaving) > 0 && *budget > 0 {
		id := e.leaving[len(e.leaving)-1]
		sp := e.spiders[id]
		doc, how := e.slots.Lost(e.now, id)
		if doc == 0 {
			e.leaving = e.leaving[:len(e.leaving)-1]
			if sp.closed {
				e.spiders[id] = nil
			}
			continue
		}
		*budget--
		sp.inFlight--
		why := "gone"
		if how == hostslots.InTime {
			e.stats.Lost++
		} else {
			why = "silent"
			e.stats.Expired++
		}
		e.comeBack(doc, why)
		e.takeBack(doc, sp, how)
	}
}

// takeBack queues a document again that was in flight at a spider that has gone, or ends it.
func (e *Engine) takeBack(doc uint32, sp *spider, how hostslots.Lateness) {
	e.parted(doc)
	blame := e.blame(doc, sp, how)
	switch {
	case how == hostslots.Endless: // it lasts, and has killed nobody
		delete(e.suspects, doc)
	case blame != hostslots.None && !faulty(faultBlame):
		e.suspect(doc, &sp.loss)
	}
	_, suspect := e.suspects[doc]
	lane := laneOf(crewOf(e.slots.Doc(doc).Pool), suspect)
	if e.slots.Requeue(e.now, doc, lane, blame) {
		e.end(doc, docindex.Timeout, 0)
		return
	}
	if _, wanted := e.recalled[doc]; wanted && e.slots.Dequeue(doc) {
		e.returned(doc)
		return
	}
	e.isDoomed(doc)
}

// blame says what the end of its connection counts for a document.
func (e *Engine) blame(doc uint32, sp *spider, how hostslots.Lateness) hostslots.Blame {
	alone := sp.loss.docs == 1
	if sp.loss.unsent > 0 { // the youngest come back first
		sp.loss.unsent--
		return hostslots.None
	}
	switch {
	case sp.stranger:
		return hostslots.None
	case how == hostslots.Endless, how == hostslots.Silent && (alone || sp.loss.spares):
		return hostslots.Whole
	case how == hostslots.Silent:
		return hostslots.Shared
	case sp.loss.spares:
		return hostslots.None
	case sp.spoke && alone:
		return hostslots.Whole
	case sp.spoke && faulty(faultBlame):
		return hostslots.Whole
	case sp.spoke:
		return hostslots.Shared
	case alone && sp.peer.spoke && e.wasMute(doc):
		return hostslots.Whole
	}
	return hostslots.None
}

// wasMute reports whether a document was alone before at a spider that said nothing, and notes that it was.
func (e *Engine) wasMute(doc uint32) bool {
	_, before := e.wereMute[doc]
	e.wereMute[doc] = struct{}{}
	return before
}
