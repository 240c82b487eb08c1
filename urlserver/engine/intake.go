package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// Prepared is an answer of the doc index, parsed: made by Prepare outside the
// engine's goroutine, and owned by the engine from Answered until Recycled gives it back.
type Prepared struct {
	Batch   docindex.Batch
	Ports   []int // bad ports that may be asked all the same: resolver.allow_ports
	Err     error // what went wrong; what the batch holds counts all the same
	docs    []prepared
	invalid []docindex.Candidate
	skipped int
}

type prepared struct {
	id       []byte
	url      weburl.URL
	priority int32
	at       int32 // in the batch, which has the rest
}

var errTooLong = errors.New("URL longer than a line of the spider protocol allows")

// Prepare parses the URLs of p.Batch. Those that break the rules of the spider's
// protocol, or have a port that no web server has, become outcomes "invalid".
func (p *Prepared) Prepare() {
	p.docs, p.invalid, p.skipped = p.docs[:0], p.invalid[:0], p.Batch.Skipped()
	for i := range p.Batch.Len() {
		c := p.Batch.At(i)
		if !protocol.ValidDocID(c.DocID) {
			p.skipped++
			continue
		}
		url, err := parse(c.URL, p.Ports)
		if err != nil {
			p.invalid = append(p.invalid, c)
			continue
		}
		p.docs = append(p.docs, prepared{id: c.DocID, url: url, priority: c.Priority, at: int32(i)})
	}
	for i := range p.Batch.InvalidLen() {
		p.invalid = append(p.invalid, p.Batch.InvalidAt(i))
	}
}

func parse(text []byte, ports []int) (weburl.URL, error) {
	url, err := weburl.Parse(text)
	switch {
	case err != nil:
	case !protocol.ValidURL(url.Text()):
		err = errTooLong
	case weburl.IsBadPort(url.Port()) && !slices.Contains(ports, int(url.Port())):
		err = fmt.Errorf("port %d is none of a web server: see resolver.allow_ports", url.Port())
	}
	return url, err
}

// Answered takes the doc index's answer to Out.Ask.
func (e *Engine) Answered(p *Prepared) {
	e.asking, e.answered = false, e.now
	e.intake, e.taken, e.fresh = p, 0, 0
	e.stats.BadCandidates += uint64(p.skipped)
	e.stats.Candidates += uint64(len(p.docs) + len(p.invalid))
	for _, c := range p.invalid {
		if e.slots.FindDoc(c.DocID) != 0 || e.inQuarantine(c.DocID) {
			e.duplicate(c.DocID, c.URL)
			continue
		}
		e.outcome(docindex.Outcome{DocID: c.DocID, URL: c.URL, Kind: docindex.Invalid})
		e.fresh++
	}
}

// duplicate deals with a candidate whose DOC_ID a held document has, or one in quarantine. An exact index offers a document
// again only if it was put again since: the same one is wanted again then, and another one has to wait for the DOC_ID.
func (e *Engine) duplicate(id, url []byte) {
	e.stats.Duplicates++
	if !e.opt.Exact {
		return
	}
	if doc := e.slots.FindDoc(id); bytes.Equal(e.slots.Doc(doc).URL, url) {
		delete(e.doomed, doc)
		return
	}
	e.Out.Returns.Add(docindex.Outcome{DocID: id, URL: url})
}

// take deals with some of the candidates that have come.
func (e *Engine) take() {
	p := e.intake
	if p == nil {
		return
	}
	for n := 0; n < intakeStep && e.taken < len(p.docs); n++ {
		e.offer(&p.docs[e.taken])
		e.taken++
	}
	if e.taken == len(p.docs) {
		e.intake = nil
		clear(e.recallLater)
		e.allCame()
		e.pace(e.fresh > 0)
	}
}

func (e *Engine) offer(d *prepared) {
	if e.inQuarantine(d.id) {
		e.duplicate(d.id, d.url.Text())
		return
	}
	if e.isAwaited(d) {
		e.fresh++
		return
	}
	origin := e.slots.EnsureOrigin(d.url.Origin(), d.url.Host())
	host := e.slots.HostOf(origin)
	if faulty(faultAddress) {
		e.lookUp(string(e.slots.Host(host).Name()))
	}
	if !e.slots.Host(host).Settled() && !e.slots.Host(host).Resolving() {
		e.resolve(host)
	}
	c := e.intake.Batch.At(int(d.at))
	if !e.slots.Offer(e.now, hostslots.Candidate{
		Origin: origin, Pool: laneOf(e.crewNo(c.Spider), false), Crawl: c.Crawl,
		ID: d.id, URL: d.url.Text(), Priority: d.priority,
	}) {
		e.duplicate(d.id, d.url.Text())
		return
	}
	e.fresh++
	e.follow(d.id, host)
	if _, ok := e.recallLater[string(d.id)]; ok {
		e.recall(e.slots.FindDoc(d.id))
		return
	}
	if !e.slots.Host(host).Settled() {
		e.failIfKnown(host)
	}
	if e.isAway(host) {
		e.fresh--
	}
}

// pace sets when the index may be asked again: at once after something new, and
// later and later after nothing.
func (e *Engine) pace(news bool) {
	if news || e.poked {
		e.Poke()
		e.poked = false
		return
	}
	e.backoff = min(max(e.cfg.DocIndex.Retry, 2*e.backoff), e.cfg.DocIndex.MaxRetry)
	e.askAt = e.now + e.backoff
}

// Poke says that the doc index has something new, which an answer that is on its way may lack.
func (e *Engine) Poke() { e.backoff, e.askAt, e.poked = 0, e.now, e.asking }

// ask asks the doc index for more where a slot is empty and nothing at hand can
// fill it.
func (e *Engine) ask(due *waiter) {
	if e.asking && !faulty(faultAsk) || e.intake != nil || e.ruling.next != 0 || e.stopping || e.choked || e.alone() || !e.hungry() {
		return
	}
	if e.names.down || len(e.names.failing) >= maxFailing {
		e.askAt = max(e.askAt, e.answered+e.cfg.DocIndex.Retry) // what comes may go back at once
	}
	if e.askAt > e.now && e.slots.Unrejected() != e.readmitted {
		e.askAt = min(e.askAt, e.answered+e.cfg.DocIndex.Retry) // hosts may be had that were left out
	}
	if e.askAt > e.now {
		due.after(e.askAt - e.now)
		return
	}
	a := &Ask{Max: e.cfg.DocIndex.Batch}
	e.slots.Rejects(func(name []byte) { a.Reject = append(a.Reject, string(name)) })
	e.stats.Rejected, e.readmitted = len(a.Reject), e.slots.Unrejected()
	e.stats.IndexRequests++
	e.asking, e.journeys.asked = true, e.now
	e.Out.Ask = a
}

// alone reports whether there is nobody to send to and others who can.
func (e *Engine) alone() bool { return e.linked == 0 && (e.opt.Shared || e.now < e.lent) }

// Lend says that another daemon takes documents from the index that lives with this one.
func (e *Engine) Lend() { e.lent = e.now + docindex.RemoteLease }

// hungry reports whether there is room in the slots, no group in line for it, and what is
// still being resolved not enough either.
func (e *Engine) hungry() bool {
	c := e.slots.Counts()
	return e.slots.HasRoom(e.now) && c.Leftover < e.cfg.Leftover.Max && e.namesHaveRoom()
}
