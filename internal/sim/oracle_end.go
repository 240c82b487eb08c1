package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"urlserver/docindex"
)

func (o *oracle) connected(spider uint32) {
	if o.spiders[spider] != nil {
		o.wrong(RuleInFlight, "spider %d is two connections at once", spider)
	}
	o.spiders[spider] = &spiderView{heard: -1, stale: -1, said: said{roomAt: -1, payloadAt: -1}}
}

// gone records that a spider's connection has ended.
func (o *oracle) gone(spider uint32) {
	o.lose(spider, nil)
	delete(o.spiders, spider)
}

// lose ends all transactions of a spider. overdue is the one that takes too long, because of which
// the daemon has to close the connection; nil: the connection has ended.
func (o *oracle) lose(spider uint32, overdue *transaction) {
	o.written(spider) // lines in the socket may have arrived just now
	sp := o.spiders[spider]
	docs, timeout, young := sp.inFlight, overdue != nil, 0
	for _, tx := range sp.all {
		timeout = timeout || !tx.finished && tx.maybe
		if !tx.finished && !o.lasts(tx) {
			young++
		}
	}
	for _, tx := range sp.all {
		if !tx.finished {
			late := tx.maybe || timeout && (tx.at+o.set.maxFetch <= o.now || tx.since+o.set.statusTimeout <= o.now)
			aged := tx.at+o.set.maxFetch <= o.now || overdue != nil && overdue.at+o.set.maxFetch <= o.now
			o.blame(tx, sp, docs, young, timeout, late, aged)
			o.finish(tx)
		}
	}
	o.lostAt = o.now
	sp.mustClose = sp.mustClose || overdue != nil
}

// lasts reports whether a spider has sent WORKING for a transaction for a status timeout or longer.
// Such a document does not count among those that were lost together.
func (o *oracle) lasts(tx *transaction) bool {
	return tx.since >= tx.at+o.set.statusTimeout
}

// blame updates a document whose transaction was lost with its spider. docs is the number of
// transactions at the spider, young the number of those that do not last. timeout: the connection
// ends because a transaction takes too long. late: this one does. aged: this one, or the one
// because of which the connection ends, has reached the longest time that a fetch may take.
//
// If a spider's process stood still, any of its documents may be the cause. A status in the second
// half of the status timeout shows that it did not stand still; in the first half it need not have
// sent a status of the silent documents. The daemon may take a stale status for such a sign, or
// not.
func (o *oracle) blame(tx *transaction, sp *spiderView, docs, young int, timeout, late, aged bool) {
	d := tx.doc
	if !d.lost {
		o.suspected++
	}
	d.lost = true
	cause := docs == 1 || late && (sp.heard > o.now-o.set.statusTimeout/2 || tx.at+o.set.maxFetch <= o.now)
	d.alone = cause || late && (sp.stale > o.now-o.set.statusTimeout/2 || aged)
	switch {
	case timeout && !late:
		d.sends-- // no attempt
	case tx.at+o.set.maxFetch <= o.now: // a fetch without end breaks no connection
		d.lostTogether, d.lasted = 0, false
	case cause:
	case d.alone: // the daemon may take it for the cause
		d.sends = min(d.sends, uint8(o.set.attempts-1))
	default: // one of them may be the cause
		others := young
		if !o.lasts(tx) {
			others--
		}
		switch {
		case o.lasts(tx) && !d.lasted: // once, it may have been sent with any number of others
			d.lasted = true
		case d.lostTogether > 0 && others > 0 && others+1 >= d.lostTogether:
			o.wrong(RuleSuspects, "%s was lost with %d others, and then with %d", d.origin.host.name,
				d.lostTogether-1, others)
		}
		d.lostTogether = others + 1
		d.sends = min(d.sends, uint8(o.set.attempts-1))
	}
}

// finish ends a transaction.
func (o *oracle) finish(tx *transaction) {
	tx.finished = true
	tx.doc.tx = nil
	delete(o.open, tx.id)
	sp := o.spiders[tx.spider]
	sp.inFlight--
	if tx.suspect {
		sp.suspects--
	}
	o.closed(tx.host, tx.target)
}

// listen starts a transaction's status timeout.
func (o *oracle) listen(tx *transaction, since time.Duration) {
	o.silences = append(o.silences, silence{tx: tx, at: since})
	for i := len(o.silences) - 1; i > 0 && o.silences[i-1].at > since; i-- {
		o.silences[i], o.silences[i-1] = o.silences[i-1], o.silences[i]
	}
}

// expire ends all transactions of a spider if one of them has passed its status timeout or the
// longest time that a fetch may take.
func (o *oracle) expire() {
	for len(o.silences) > 0 && o.silences[0].at+o.set.statusTimeout <= o.now {
		s := o.silences[0]
		o.silences = o.silences[1:]
		if s.tx.finished || s.tx.since != s.at && !(s.tx.maybe && s.at == s.tx.at) {
			continue
		}
		if s.at < s.tx.at { // the moment at which its timeout began is not known exactly
			s.tx.maybe = true
			o.listen(s.tx, s.tx.at)
			continue
		}
		if late := o.now - s.at - o.set.statusTimeout; late > 0 && !s.tx.maybe {
			o.wrong(RuleTimeout,
				"transaction %s is silent for %v more than the timeout, and the daemon slept", s.tx.id, late)
		}
		o.lose(s.tx.spider, s.tx)
	}
	for len(o.ages) > 0 && o.ages[0].at+o.set.maxFetch <= o.now {
		tx := o.ages[0]
		o.ages = o.ages[1:]
		if tx.finished {
			continue
		}
		if late := o.now - tx.at - o.set.maxFetch; late > 0 {
			o.wrong(RuleTimeout, "transaction %s goes on for %v more than any may, and the daemon slept", tx.id, late)
		}
		o.lose(tx.spider, tx)
	}
}

// status records a line of a spider.
func (o *oracle) status(spider uint32, text string) {
	f := strings.Split(text, " ")
	if o.spiders[spider].said.hear(o.now, f) {
		return
	}
	tx := o.open[f[0]]
	if tx == nil {
		o.spiders[spider].stale = o.now // a stale status, or a bad line
	}
	if tx == nil || tx.spider != spider || len(f) < 2 {
		return
	}
	code, retry, ok := statusFields(f[2:])
	switch {
	case f[1] == "BACK" && ok && len(f) < 4:
		o.spiders[spider].heard = o.now
		o.back(tx, time.Duration(code)*time.Second)
	case f[1] == "WORKING" && len(f) == 2:
		o.spiders[spider].heard = o.now
		tx.since, tx.maybe = o.now, false
		o.listen(tx, o.now)
	case f[1] == "DONE" && ok:
		o.spiders[spider].heard = o.now
		o.done(tx, code, retry)
	}
}

// statusFields reads STATUS and RETRY_AFTER.
func statusFields(f []string) (code int, retry time.Duration, ok bool) {
	var seconds int
	var errCode, errRetry error
	if len(f) > 0 {
		code, errCode = strconv.Atoi(f[0])
	}
	if len(f) > 1 {
		seconds, errRetry = strconv.Atoi(f[1])
	}
	return code, time.Duration(seconds) * time.Second, len(f) < 3 && errCode == nil && errRetry == nil
}

// done ends a transaction with DONE.
func (o *oracle) done(tx *transaction, code int, retry time.Duration) {
	if tx.flying && o.now-tx.at > lateAfter {
		tx.requestedAt(o.now)
	}
	o.spiders[tx.spider].fetches.took(o.now - tx.at)
	o.finished(tx.host, tx.target, o.now-tx.at, code, retry)
	tx.doc.answered, tx.doc.code = true, int16(code)
	o.answered++
	o.finish(tx)
}

// outcome checks how a document ended.
func (o *oracle) outcome(out docindex.Outcome) {
	id := string(out.DocID)
	o.report.Outcomes[out.Kind]++
	if !out.At.Equal(o.wall) {
		o.wrong(RuleOutcome, "document %s ended at %v, not at %v", id, out.At, o.wall)
	}
	d := o.doc(id)
	if d != nil && d.origin != nil && out.Kind == docindex.Robots {
		o.abandoned(d.origin)
	}
	if d == nil || !d.held {
		o.wrong(RuleOutcome, "%v for document %s, which is not held", out.Kind, id)
		return
	}
	if d.tx != nil {
		o.wrong(RuleOutcome, "%v for document %s, which is at spider %d", out.Kind, id, d.tx.spider)
	}
	if why := o.unfit(d, out); why != "" {
		o.wrong(RuleOutcome, "%v for document %s: %s", out.Kind, id, why)
	}
	o.servedBy(id, d)
	if d.answered {
		o.answered--
		h := d.origin.host
		h.told = max(h.told, h.floor, h.last+max(h.backoff, h.wants(o.now), o.fair(&h.level)))
	}
	if d.lost {
		o.suspected--
	}
	d.held, d.answered, d.ever, d.ended = false, false, true, o.now
	o.held--
	if !d.invalid {
		o.count(d.origin.host, -1)
	}
}

// hopeless reports whether a host's name has failed for so long that the daemon may give it up. The
// daemon may not have noticed outages that are shorter than the pause between two look-ups.
func (o *oracle) hopeless(h *host) bool {
	return h.failed && o.answers-h.failing >= o.set.giveUp-unnoticed
}

// mayGiveUp records a failure of a host's name if the daemon may give the name up after it.
func (o *oracle) mayGiveUp(h *host) {
	if !o.hopeless(h) {
		return
	}
	if h.givenUp[1] < h.failedAt {
		h.givenUp[0] = o.now
	}
	h.givenUp[1] = o.now
}

// unnoticed is the longest pause between two look-ups of a name that fails.
const unnoticed = 90 * time.Second

// returned checks a document that the daemon returns to the index. It may do so while the host's
// name fails.
func (o *oracle) returned(id string) {
	d := o.doc(id)
	if d == nil || !d.held || d.tx != nil || d.answered {
		o.wrong(RuleOutcome, "document %s is given back, which is not held, or at a spider", id)
		return
	}
	if h := d.origin.host; h.at != nil && !o.crawls.wantsBack(id) {
		o.wrong(RuleOutcome, "document %s is given back, whose host has an address", id)
	}
	if d.lost {
		o.suspected--
	}
	d.held, d.returned, d.returnedAt = false, true, o.now
	o.held--
	o.count(d.origin.host, -1)
}

// unfit returns why a document cannot have had this outcome; "": it can.
func (o *oracle) unfit(d *document, out docindex.Outcome) string {
	if d.invalid && out.Kind != d.endsAs || !d.invalid && out.Kind == docindex.Invalid {
		return "its URL is another, or the index has ended it"
	}
	if d.invalid {
		return ""
	}
	if out.Attempts < int(d.sends) && !o.unseen || out.Attempts > o.set.attempts {
		return "sent " + strconv.Itoa(int(d.sends)) + " times, not " + strconv.Itoa(out.Attempts)
	}
	if d.answered != (out.Kind == docindex.Done) {
		return "DONE came, or did not"
	}
	switch out.Kind {
	case docindex.Done:
		if out.Status != int(d.code) {
			return "the status was " + strconv.Itoa(int(d.code))
		}
	case docindex.Timeout:
		if out.Attempts != o.set.attempts {
			return "attempts are left"
		}
		if !d.alone {
			o.wrong(RulePatience, "document %s ends as timeout, and was lost together with %d others",
				out.DocID, d.lostTogether-1)
		}
	case docindex.Robots:
		s := &d.origin.robotsState
		o.wasJudged(d, string(out.URL))
		forbids := d.origin.forbidden(string(out.URL))
		// the old file, which allows it, was dropped for lack of memory, and a new one cannot be
		// fetched
		lost := s.state == stale && o.set.forgets && !forbids
		if !o.set.robots || !lost && !forbids {
			return "robots.txt allows it"
		}
		if (s.state == silent || lost) && (s.misses < o.set.attempts ||
			o.now-s.missing < time.Duration(o.set.attempts-1)*o.set.errorTTL) {
			o.wrong(RulePatience,
				"document %s ends as robots: its robots.txt was asked for %d times, since %v", out.DocID,
				s.misses, s.missing)
		}
	case docindex.DNS:
		if !d.origin.host.failed || d.origin.host.at != nil && !d.origin.host.none {
			return "its host has an address"
		}
		if h := d.origin.host; !h.none && !o.hopeless(h) {
			o.wrong(RulePatience,
				"document %s ends as dns: %s has failed for %v of the time in which others were "+
					"answered; it has %v", out.DocID, h.name, o.answers-h.failing, o.set.giveUp)
		}
	case docindex.Stopped, docindex.Expired, docindex.OutOfScope:
		return "nobody asked for that"
	}
	return ""
}

// stepped is called when the daemon has done what it had to do for now.
func (o *oracle) stepped() {
	o.relocate()
	if o.answered != 0 {
		o.wrong(RuleOutcome, "%d documents were done and have no outcome", o.answered)
	}
	for id, sp := range o.spiders {
		if sp.mustClose {
			o.wrong(RuleHangUp, "spider %d is still connected, and a document was with it for too long", id)
		}
	}
}

const (
	rejectEvery  = 4      // requests to the index, of which one has its reject list checked
	mostRejected = 10_000 // names in a reject list
)

// asked hears a request for candidates.
func (o *oracle) asked(reject []string) {
	if o.asking {
		o.wrong(RuleAsk, "the index is asked while it is being asked")
	}
	o.asking = true
	if o.asks++; len(o.overLimit) == 0 || o.asks%rejectEvery != 0 {
		return
	}
	if len(reject) >= mostRejected {
		return
	}
	rejected := make(map[string]struct{}, len(reject))
	for _, name := range reject {
		rejected[name] = struct{}{}
	}
	for _, g := range slices.SortedFunc(maps.Keys(o.overLimit),
		func(a, b *group) int { return strings.Compare(a.name, b.name) }) {
		o.missing(g, rejected)
	}
}

// missing checks that the hosts of a group that are not among the rejected have together at most
// limits.rejectOver documents.
func (o *oracle) missing(g *group, rejected map[string]struct{}) {
	kept, held, name := g.bound[:0], 0, ""
	for _, s := range g.bound {
		if s.over(g) {
			continue
		}
		kept = append(kept, s)
		if _, ok := rejected[s.host.name]; !ok && s.host.held > 0 && s.host.at == g {
			held += s.host.held
			name = s.host.name
		}
	}
	if held > o.set.rejectOver {
		o.wrong(RuleReject, "%v has %d documents of hosts that are not rejected, as of %s", g.name, held, name)
	}
	g.bound = kept
}

// counts compares what the daemon says that it holds.
func (o *oracle) counts(held, inFlight int, exact bool) {
	if held != o.held {
		o.wrong(RuleHeld, "the daemon holds %d documents; %d have no outcome yet", held, o.held)
	}
	if inFlight < len(o.open) || exact && inFlight != len(o.open) {
		o.wrong(RuleHeld, "the daemon has %d documents at spiders; %d are there", inFlight, len(o.open))
	}
}
