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
//   - Each document may have killed the spider, and is suspect: an attempt counts, and the
//     document is sent again beside ever fewer others (suspects.go). The last attempt that it
//     may have counts only if it was alone in flight.
//   - The spider had said nothing of what it was sent: then it may also have crashed by itself.
//     Its address is distrusted: the next spider there gets its first documents after a pause,
//     and few of them until it says something. A document that it had alone keeps its place in
//     the queue, and is no suspect.
//   - The daemon itself ended the connection, because a transaction took too long. If the spider
//     spoke of others meanwhile, an attempt counts for what took too long, and for nothing else.
//     If it spoke of none, the spider stood still, perhaps because of a document in flight. Then
//     all count as above, and what took too long counts even if the spider had never said
//     anything.

// peer is the address that a spider connects from, or is dialled at.
type peer struct {
	connected int
	silent    int           // connections lost in a row before they said anything of what they were sent
	until     time.Duration // the next connections get nothing before
}

const (
	maxPeers = 4096 // remembered at most, beside those that are connected
	// before the first documents, after one silent connection; twice as long after each further one
	firstSilentPause = time.Second
	mostSilentPause  = time.Minute // at most, or half the status timeout
	// documents before the first word, after one silent connection; half as many after each further
	// one
	firstAgain = 8
)

// loss is how a connection ended.
type loss struct {
	docs   int                 // in flight then, whose lines had left the daemon
	long   map[uint32]struct{} // of docs: the spider had worked at them for a status timeout
	unsent int                 // beside docs: whose lines had not left it; they were sent last
	spares bool                // one took too long while the spider spoke of others: the others do not count
}

// peerAt returns what is known of an address, and counts a connection.
func (ss *spiders) peerAt(addr string) *peer {
	p := ss.peers[addr]
	if p == nil {
		if len(ss.peers) >= maxPeers {
			ss.dropPeer()
		}
		p = &peer{}
		ss.peers[addr] = p
	}
	p.connected++
	return p
}

// dropPeer forgets one address without a connection: the one that was distrusted longest ago.
func (ss *spiders) dropPeer() {
	oldest := ""
	for addr, p := range ss.peers {
		if o := ss.peers[oldest]; p.connected == 0 &&
			(o == nil || p.until < o.until || p.until == o.until && addr < oldest) {
			oldest = addr
		}
	}
	delete(ss.peers, oldest)
}

// distrust notes that a connection ended before the spider said anything.
func (e *Engine) distrust(p *peer) {
	p.silent++
	pause := min(mostSilentPause, e.cfg.TimeoutSpiderStatus/2)
	if n := p.silent - 1; n < 10 {
		pause = min(pause, firstSilentPause<<n)
	}
	p.until = e.now + pause
}

const (
	noteFrom = 2  // silent connections in a row from which on an address has a note
	maxNotes = 10 // addresses
)

// notes returns a text for each address whose last spiders went without an answer, at most maxNotes.
func (e *Engine) notes() (notes []string) {
	for _, addr := range slices.Sorted(maps.Keys(e.spiders.peers)) {
		if p := e.spiders.peers[addr]; p.silent >= noteFrom && len(notes) < maxNotes {
			notes = append(notes, fmt.Sprintf(
				"the last %d connections of spiders at %s ended without a line about any document: "+
					"the next spider there gets its first documents at %s, and %d at most until it answers; look "+
					"at the spider's log",
				p.silent, addr, explain.Dated(e.date(max(p.until, e.now))), firstDocs(p.silent)))
		}
	}
	return notes
}

// noteOf returns why a spider gets few documents, in words; "" if it does not.
func (e *Engine) noteOf(id uint32, sp *spider) string {
	switch {
	case sp.distrusted():
		return fmt.Sprintf("gets %d documents at most until it answers: the last %d spiders at this address did not",
			firstDocs(sp.peer.silent), sp.peer.silent)
	case len(sp.company) > 0 || e.isReserved(id, sp):
		return "gets few documents while it has one that may have killed another spider"
	}
	return ""
}

// distrusted reports whether a spider has said nothing yet and its predecessor at the same address
// ended without having said anything.
func (sp *spider) distrusted() bool { return sp.peer.silent > 0 && !sp.spoke }

// noteSpoke notes that a spider said something of what it was sent.
func (sp *spider) noteSpoke(now time.Duration) {
	sp.heard, sp.spoke = now, true
	sp.peer.silent, sp.peer.until = 0, 0
}

// firstDocs returns how many documents a spider gets before it says anything, after so many silent
// connections.
func firstDocs(silent int) int { return max(1, firstAgain>>(silent-1)) }

// allowance returns how many documents may be in flight at a spider.
func (e *Engine) allowance(sp *spider) int {
	most := e.window(sp)
	if sp.distrusted() {
		most = min(most, firstDocs(sp.peer.silent))
	}
	return min(most, sp.company.least(most))
}

// loseSpider makes the documents in flight at a spider go back to the queues. Its connection has
// ended or, if a document takes too long there, is to be ended.
func (e *Engine) loseSpider(id uint32, sp *spider, how hostslots.Lateness) {
	if sp.gone {
		return
	}
	if sp.writingSince >= 0 { // lines that were with the connection may have got through until now
		e.Written(id)
	}
	answers := sp.spoke && e.now-sp.heard < e.cfg.TimeoutSpiderStatus/2
	sp.loss = loss{
		docs: sp.inFlight - sp.queued, long: sp.longFetches, unsent: sp.queued,
		spares: how == hostslots.Endless || how == hostslots.Silent && answers,
	}
	took := sp.takes()
	sp.gone, sp.out, sp.queued = true, nil, 0
	sp.peer.connected--
	e.spiders.connected--
	e.countTaking(sp, took)
	e.countConnected(sp.pool, -1)
	e.spiders.delayed.Remove(id)
	e.spiders.unreserve(sp.pool, id)
	if !sp.spoke && !sp.notSpider && sp.sent > uint64(sp.loss.unsent) {
		e.distrust(sp.peer)
	}
	e.updateSpider(id, sp)
	e.spiders.leaving = append(e.spiders.leaving, id)
}

// endOverdue ends the connections of spiders with a document that takes too long, and takes their
// documents back.
func (e *Engine) endOverdue(budget *int) {
	for *budget > 0 {
		id, how := e.slots.Overdue(e.now)
		if id == 0 {
			return
		}
		if sp := e.spiders.byID[id]; !sp.gone {
			e.loseSpider(id, sp, how)
			e.drop(id, map[hostslots.Lateness]string{
				hostslots.Silent:  "no status of a document for Timeout_Spider_Status",
				hostslots.Endless: "a document went on for spider.max_fetch",
			}[how])
		}
		e.requeueLost(budget)
	}
}

// requeueLost queues documents again that were in flight at spiders that have gone.
func (e *Engine) requeueLost(budget *int) {
	for len(e.spiders.leaving) > 0 && *budget > 0 {
		id := e.spiders.leaving[len(e.spiders.leaving)-1]
		sp := e.spiders.byID[id]
		doc, how := e.slots.Lost(e.now, id)
		if doc == 0 {
			e.spiders.leaving = e.spiders.leaving[:len(e.spiders.leaving)-1]
			if sp.closed {
				e.spiders.byID[id] = nil
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
		e.traceBack(doc, why)
		e.takeBack(doc, sp, how)
	}
}

// takeBack queues a document again that was in flight at a spider that has gone, or ends it.
func (e *Engine) takeBack(doc uint32, sp *spider, how hostslots.Lateness) {
	e.spiders.parted(doc)
	blame := e.blame(sp, how)
	switch {
	case how == hostslots.Endless: // the fetch takes long, but the spider lives
		delete(e.spiders.suspects, doc)
	case blame != hostslots.None && (sp.spoke || how != hostslots.InTime || blame == hostslots.Shared) &&
		!faulty(FaultBlame):
		e.suspect(doc, &sp.loss)
	}
	_, suspect := e.spiders.suspects[doc]
	queue := poolQueue(spiderPoolOf(e.slots.Doc(doc).Pool), suspect)
	if e.slots.Pool(queue).Requeue(e.now, doc, blame) {
		e.end(doc, docindex.Timeout, 0)
		return
	}
	if _, wanted := e.outcomes.returnOnTurn[doc]; wanted && e.slots.Dequeue(doc) {
		e.returnDoc(doc)
		return
	}
	e.endCancelled(doc)
}

// blame returns what the end of its connection counts for a document.
func (e *Engine) blame(sp *spider, how hostslots.Lateness) hostslots.Blame {
	alone := sp.loss.docs == 1
	if sp.loss.unsent > 0 { // the youngest come back first
		sp.loss.unsent--
		return hostslots.None
	}
	switch {
	case sp.notSpider:
		return hostslots.None
	case how == hostslots.Endless, how == hostslots.Silent && (alone || sp.loss.spares):
		return hostslots.Whole
	case how == hostslots.Silent:
		return hostslots.Shared
	case sp.loss.spares:
		return hostslots.None
	case alone, faulty(FaultBlame):
		return hostslots.Whole
	}
	return hostslots.Shared
}
