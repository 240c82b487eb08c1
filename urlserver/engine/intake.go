package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// Prepared is an answer of the doc index, parsed. Prepare may run outside the engine's goroutine.
// The engine owns it from Answered until Recycled returns it.
type Prepared struct {
	Batch   docindex.Batch
	Ports   []int // bad ports that may be asked all the same: resolver.allow_ports
	Err     error // what went wrong; what the batch holds counts all the same
	docs    []prepared
	ended   []docindex.Candidate // not to be sent
	skipped int
}

type prepared struct {
	id       []byte
	url      weburl.URL
	priority int32
	at       int32 // in the batch, which has the rest
}

// intake has the state of the requests to the doc index, and of its answers.
type intake struct {
	batch       *Prepared // the answer that is being taken; nil: none
	next        int       // the next of its candidates
	newDocs     int       // of those taken: documents that were new
	asking      bool      // an answer is to come
	woken       bool      // WakeIndex was called meanwhile
	answeredAt  time.Duration
	askAt       time.Duration // the index is not asked before
	most        int           // candidates that the last request asked for
	pausedUntil time.Duration // see pausePerReject
	backoff     time.Duration
	unrejected  uint64        // hostslots.Counts.Unrejected at the last request
	remoteUntil time.Duration // until then another daemon takes documents from the index, too
}

const (
	// pausePerReject times the hosts in the reject list is how long the engine does not ask an
	// exact index again after an answer with fewer candidates than it asked for. Each host in the
	// list costs the slots and the index some 0.5 µs a request. While links are put all the time,
	// each request would bring only a few of them. An index that is not exact may have more than
	// it gave, so the engine asks it at once.
	pausePerReject = 20 * time.Microsecond
	minRejectPause = time.Millisecond // a shorter one spares nothing
	maxRejectPause = 100 * time.Millisecond
)

var errTooLong = errors.New("URL longer than a line of the spider protocol allows")

// Prepare parses the URLs of p.Batch. URLs that the line protocol cannot carry, or with a port
// that the Fetch standard blocks, get the outcome "invalid".
func (p *Prepared) Prepare() {
	p.docs, p.ended, p.skipped = p.docs[:0], p.ended[:0], p.Batch.Skipped()
	for i := range p.Batch.Len() {
		c := p.Batch.At(i)
		if !protocol.ValidDocID(c.DocID) {
			p.skipped++
			continue
		}
		url, err := parse(c.URL, p.Ports)
		if err != nil {
			c.Kind = docindex.Invalid
			p.ended = append(p.ended, c)
			continue
		}
		p.docs = append(p.docs, prepared{id: c.DocID, url: url, priority: c.Priority, at: int32(i)})
	}
	for i := range p.Batch.EndedLen() {
		p.ended = append(p.ended, p.Batch.EndedAt(i))
	}
}

func parse(text []byte, ports []int) (weburl.URL, error) {
	url, err := weburl.Parse(text)
	switch {
	case err != nil:
	case len(url.Text()) > protocol.MaxURL: // the line to the spider has this text
		err = errTooLong
	case weburl.IsBadPort(url.Port()) && !slices.Contains(ports, int(url.Port())):
		err = fmt.Errorf("the Fetch standard blocks port %d: see resolver.allow_ports", url.Port())
	}
	return url, err
}

// Answered takes the doc index's answer to Out.Ask.
func (e *Engine) Answered(p *Prepared) {
	e.intake.asking, e.intake.answeredAt = false, e.now
	e.intake.batch, e.intake.next, e.intake.newDocs = p, 0, 0
	pause := min(time.Duration(e.stats.Rejected)*pausePerReject, maxRejectPause)
	if e.opt.Exact && pause >= minRejectPause && len(p.docs)+len(p.ended)+p.skipped < e.intake.most {
		e.intake.pausedUntil = e.now + pause
	}
	e.stats.BadCandidates += uint64(p.skipped)
	e.stats.Candidates += uint64(len(p.docs) + len(p.ended))
	for _, c := range p.ended {
		if e.slots.FindDoc(c.DocID) != 0 || e.inQuarantine(c.DocID) {
			e.duplicate(c.DocID, c.URL)
			continue
		}
		e.outcome(&docindex.Outcome{DocID: c.DocID, URL: c.URL, Crawl: c.Crawl, Kind: c.Kind})
		delete(e.spiders.returned, string(c.DocID))
		e.intake.newDocs++
	}
}

// duplicate deals with a candidate whose DOC_ID is held or in quarantine. An exact index
// (Options.Exact) offers a document again only if it was put again since. If the held document has
// the same URL, its cancellation is dropped. If it has another URL, the candidate goes back to the
// index, which offers it again until the DOC_ID is free.
func (e *Engine) duplicate(id, url []byte) {
	e.stats.Duplicates++
	if !e.opt.Exact {
		return
	}
	doc := e.slots.FindDoc(id)
	if d := e.slots.Doc(doc); bytes.Equal(e.docURL(&d), url) {
		delete(e.outcomes.cancelOnReturn, doc)
		return
	}
	e.Out.Returns.Add(docindex.Outcome{DocID: id, URL: url})
}

// takeCandidates takes some of the candidates of the index's last answer.
func (e *Engine) takeCandidates() {
	p := e.intake.batch
	if p == nil {
		return
	}
	for n := 0; n < intakeStep && e.intake.next < len(p.docs); n++ {
		if n%hostslots.ReadAhead == 0 {
			e.readOffersAhead(p.docs[e.intake.next:])
		}
		e.offer(&p.docs[e.intake.next])
		e.intake.next++
	}
	if e.intake.next == len(p.docs) {
		e.intake.batch = nil
		clear(e.outcomes.returnOnArrival)
		e.outcomes.recallsArriving = false
		e.outcomes.finishCancels()
		e.setBackoff(e.intake.newDocs > 0)
	}
}

// readOffersAhead reads ahead what offer needs of the first of some documents.
func (e *Engine) readOffersAhead(docs []prepared) {
	var names, ids [hostslots.ReadAhead][]byte
	n := min(len(docs), hostslots.ReadAhead)
	for i := range n {
		names[i], ids[i] = docs[i].url.Host(), docs[i].id
		e.outcomes.quarantine.readAhead(ids[i])
	}
	e.slots.ReadOffersAhead(names[:n], ids[:n])
}

func (e *Engine) offer(d *prepared) {
	if e.inQuarantine(d.id) {
		e.duplicate(d.id, d.url.Text())
		return
	}
	if e.cancelArrived(d) {
		e.intake.newDocs++
		return
	}
	origin := e.slots.EnsureOrigin(d.url.Origin(), d.url.Host())
	host := e.slots.HostOf(origin)
	if faulty(FaultAddress) {
		e.lookUp(string(e.slots.Host(host).Name()))
	}
	if !e.slots.Host(host).Settled() && !e.slots.Host(host).Resolving() {
		e.resolve(host)
	}
	c := e.intake.batch.Batch.At(int(d.at))
	known := e.spiders.recollect(d.id, e.now)
	if !e.slots.Offer(e.now, hostslots.Candidate{
		Origin: origin, Pool: poolQueue(e.poolNo(c.Spider), known.isOne), Crawl: c.Crawl,
		ID: d.id, URL: d.url.Text(), Priority: d.priority, Payload: c.Payload, Attempts: known.attempts,
		OfOrigin: bytes.HasPrefix(d.url.Text(), d.url.Origin()), // unless it has user info
	}) {
		e.duplicate(d.id, d.url.Text())
		return
	}
	if known.isOne {
		e.spiders.suspects[e.slots.FindDoc(d.id)] = known.suspect
	}
	e.intake.newDocs++
	e.startTrace(d.id, host)
	if _, ok := e.outcomes.returnOnArrival[string(d.id)]; ok || e.outcomes.recallsArriving {
		e.recall(e.slots.FindDoc(d.id))
		return
	}
	if !e.slots.Host(host).Settled() {
		e.failIfKnown(host)
	}
	if e.dns.isReturning(host) {
		e.intake.newDocs--
	}
}

// setBackoff sets when the index may be asked again: at once if the answer had new documents, and
// later and later if not.
func (e *Engine) setBackoff(news bool) {
	if news || e.intake.woken {
		e.WakeIndex()
		e.intake.woken = false
		return
	}
	e.intake.backoff = min(max(e.cfg.DocIndex.Retry, 2*e.intake.backoff), e.cfg.DocIndex.MaxRetry)
	e.intake.askAt = e.now + e.intake.backoff
}

// WakeIndex says that the doc index has something new. An answer that is on its way may lack it.
func (e *Engine) WakeIndex() {
	e.intake.backoff, e.intake.askAt, e.intake.woken = 0, e.now, e.intake.asking
}

// askIndex asks the doc index for candidates if a slot is free and no held document can fill it.
func (e *Engine) askIndex(due *waiter) {
	if e.intake.asking && !faulty(FaultAsk) || e.intake.batch != nil || e.rules.next != 0 ||
		e.sending.stopping || e.sending.backpressure || e.noSpiders() || !e.needsCandidates() {
		return
	}
	if e.dns.down || len(e.dns.failing) >= maxFailing {
		// Documents whose hosts' names fail may go back to the index at once.
		e.intake.askAt = max(e.intake.askAt, e.intake.answeredAt+e.cfg.DocIndex.Retry)
	}
	if e.intake.askAt > e.now && e.slots.Counts().Unrejected != e.intake.unrejected {
		// Hosts that were left out may have documents.
		e.intake.askAt = min(e.intake.askAt, e.intake.answeredAt+e.cfg.DocIndex.Retry)
	}
	if askAt := max(e.intake.askAt, e.intake.pausedUntil); askAt > e.now {
		due.after(askAt - e.now)
		return
	}
	a := &Ask{Max: e.cfg.DocIndex.Batch}
	e.intake.most = a.Max
	e.slots.Rejects(func(name []byte) { a.Reject = append(a.Reject, string(name)) })
	e.stats.Rejected, e.intake.unrejected = len(a.Reject), e.slots.Counts().Unrejected
	e.stats.IndexRequests++
	e.intake.asking, e.tracer.askedAt = true, e.now
	e.Out.Ask = a
}

// NoteRemoteLease records that another daemon leases documents from this daemon's index.
func (e *Engine) NoteRemoteLease() { e.intake.remoteUntil = e.now + docindex.RemoteLease }

// needsCandidates reports whether a new group could have a slot and no waiting group could use it,
// leftover has room, few documents wait for their hosts' names, and payloads do not take too much
// memory.
func (e *Engine) needsCandidates() bool {
	c := e.slots.Counts()
	return e.slots.HasRoom(e.now) && c.Leftover < e.cfg.Leftover.Max && c.Payloads < maxPayloads && e.namesHaveRoom()
}
