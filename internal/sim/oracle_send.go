package sim

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"urlserver/docindex"
)

// took records a candidate. The daemon has to take it if it is new and has not just ended.
// text is its URL in serialised form.
func (o *oracle) took(id, text string, priority int32) {
	if d := o.hold(id); d != nil {
		o.arrivals++
		d.origin, d.url, d.priority, d.arrival = o.origin(text), hashOf(text), priority, o.arrivals
		d.origin.queue(d)
		o.count(d.origin.host, 1)
	}
}

// unusable records a candidate that is not to be sent and ends as kind: its URL cannot be used, or
// the index says so. The daemon has to take it if it is new.
func (o *oracle) unusable(id string, kind docindex.Kind) {
	if d := o.hold(id); d != nil {
		d.invalid, d.endsAs = true, kind
	}
}

// hold records a document as held by the daemon. It returns nil if the document is held
// already, or has just ended.
func (o *oracle) hold(id string) *document {
	d := o.doc(id)
	if d.held || d.ever && o.set.quarantine > 0 && o.now-d.ended < o.set.quarantine {
		return nil
	}
	before := *d
	*d = document{taken: o.now, held: true}
	if before.returned && o.now-before.returnedAt < knownReturned {
		d.sends, d.lost, d.alone = before.sends, before.lost, before.alone
		d.lostTogether, d.lasted = before.lostTogether, before.lasted
	}
	if d.lost {
		o.suspected++
	}
	o.held++
	o.report.Taken++
	return d
}

// knownReturned is for how long the daemon knows that a document that it gave back is a suspect.
const knownReturned = time.Hour

func (o *oracle) count(h *host, n int) {
	h.held += n
	if h.at != nil {
		o.addHeld(h.at, n)
	}
	o.release(h)
}

func (q *origin) queue(d *document) {
	for i := range q.queues {
		if q.queues[i].priority == d.priority {
			q.queues[i].docs = append(q.queues[i].docs, arrival{doc: d, arrival: d.arrival})
			return
		}
	}
	q.queues = append(q.queues, originQueue{priority: d.priority, docs: []arrival{{doc: d, arrival: d.arrival}}})
}

// first returns the first held document that was never sent, or nil. A document that was lost with
// a spider before the daemon gave it back waits as a suspect, out of order.
func (l *originQueue) first() *document {
	for len(l.docs) > 0 {
		a := l.docs[0]
		if a.doc.held && !a.doc.sent && !a.doc.lost && a.doc.arrival == a.arrival {
			return a.doc
		}
		l.docs = l.docs[1:]
	}
	return nil
}

// inTurn checks that no other document had to be sent before d, which is sent for the first
// time.
func (o *oracle) inTurn(d *document, url string, since time.Duration) {
	for i := range d.origin.queues {
		l := &d.origin.queues[i]
		first := l.first()
		switch {
		case first == nil || first == d || l.priority < d.priority:
		case o.unseen && first.taken <= o.lostAt: // its line may have been lost before it got out
		case l.priority == d.priority:
			o.wrong(RuleOrder, "%s, taken at %v, is sent before an older one, taken at %v", url, d.taken, first.taken)
		case first.taken < since:
			o.wrong(RuleOrder, "%s is sent before one of priority %d", url, first.priority)
		}
	}
}

// line checks a line to a spider, without its end. since is the earliest moment at which the
// daemon may have decided on it.
func (o *oracle) line(spider uint32, text string, since time.Duration) {
	o.report.Lines++
	f := strings.Split(text, " ")
	if sp := o.spiders[spider]; len(f) < 4 || !sp.said.fits(f, since) {
		o.wrong(RuleLine, "%q has %d fields, or another payload", text, len(f))
		return
	}
	addr, err := netip.ParseAddr(f[2])
	d := o.doc(f[1])
	if err != nil || d == nil || !d.held || d.invalid || d.url != hashOf(f[3]) {
		o.wrong(RuleLine, "%q is not of a document that is held", text)
		return
	}
	o.inScope(f[1], since)
	to := o.documentLine(spider, d, addr, f[3], since)
	tx := &transaction{id: strings.Clone(f[0]), doc: d, host: d.origin.host, target: to, spider: spider, at: o.now,
		since: since, flying: true}
	o.begin(tx)
}

// documentLine checks the document and the address of a line. It returns what the request counts
// for.
func (o *oracle) documentLine(spider uint32, d *document, addr netip.Addr, url string, since time.Duration) target {
	if o.late != nil {
		o.mayGo(d, url, 0)
		return o.requestLate(spider, d, addr)
	}
	h := d.origin.host
	g := o.bind(h, addr)
	o.isCurrent(h, since)
	o.mayFetch(d.origin, url, since)
	o.wasJudged(d, url)
	o.mayGo(d, url, since)
	return o.request(h, g, since)
}

func (o *oracle) mayGo(d *document, url string, since time.Duration) {
	if d.tx != nil {
		o.wrong(RuleTwice, "%s is sent while transaction %s has it", url, d.tx.id)
	}
	switch {
	case d.sent:
		o.report.Retries++
	case !d.lost:
		o.inTurn(d, url, since)
	}
	if d.notBefore > o.now {
		o.wrong(RuleBack, "%s is sent; a spider gave it back until %v", url, d.notBefore)
	}
	d.sent = true
	if d.sends++; int(d.sends) > o.set.attempts {
		o.wrong(RuleAttempts, "%s is sent for the %dth time", url, d.sends)
	}
}

func (o *oracle) begin(tx *transaction) {
	o.name(tx.id)
	o.open[tx.id] = tx
	tx.doc.tx = tx
	sp := o.spiders[tx.spider]
	if sp.mustClose {
		o.wrong(RuleHangUp, "spider %d gets %s, and a document was with it for too long", tx.spider, tx.id)
	}
	o.chosen(tx.spider)
	if tx.doc.lost {
		tx.suspect = true
		sp.suspects++
	}
	if sp.inFlight++; sp.inFlight > o.set.inFlight && o.late == nil {
		o.wrong(RuleInFlight, "spider %d has %d documents; it may have %d", tx.spider, sp.inFlight, o.set.inFlight)
	}
	if sp.said.roomAt >= 0 && tx.since >= sp.said.roomAt && sp.inFlight > sp.said.room {
		o.wrong(RuleRoom, "spider %d has %d documents; it said %d", tx.spider, sp.inFlight, sp.said.room)
	}
	if len(sp.all) > 2*sp.inFlight+16 {
		sp.all = slices.DeleteFunc(sp.all, func(t *transaction) bool { return t.finished })
	}
	sp.all = append(sp.all, tx)
	sp.flying = append(sp.flying, tx)
	o.listen(tx, tx.since)
	o.ages = append(o.ages, tx)
}

// hasRoom reports whether a spider has room for another document and has no suspects.
func (o *oracle) hasRoom(spider uint32) bool {
	sp := o.spiders[spider]
	return sp.inFlight < o.set.inFlight && sp.suspects == 0 && (sp.said.roomAt < 0 || sp.inFlight < sp.said.room)
}

// name checks that a TRANS_ID is new: its last part, the generation, grows.
func (o *oracle) name(id string) {
	dot := strings.LastIndexByte(id, '.')
	generation, err := strconv.ParseUint(id[dot+1:], 10, 32)
	last, known := o.used[id[:max(0, dot)]]
	if err != nil || known && generation <= last {
		o.wrong(RuleTransaction, "%s comes after generation %d", id, last)
	}
	o.used[id[:max(0, dot)]] = generation
}

// lateAfter is the longest time from a decision to the socket for which the gap still counts
// from the decision.
const lateAfter = time.Millisecond

// written records that all lines for a spider were written to the socket. If that took longer
// than lateAfter, the gaps count from now.
func (o *oracle) written(spider uint32) {
	sp := o.spiders[spider]
	for _, tx := range sp.flying {
		tx.flying = false
		if !tx.finished && o.now-tx.at > lateAfter {
			tx.requestedAt(o.now)
		}
	}
	clear(sp.flying)
	sp.flying = sp.flying[:0]
}

// requestedAt sets the time of the last request to a transaction's site and to what is above it.
func (tx *transaction) requestedAt(now time.Duration) {
	tx.host.last, tx.target.site.last, tx.target.above.last = now, now, now
}

// hashOf is FNV-1a, 64 bits.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
