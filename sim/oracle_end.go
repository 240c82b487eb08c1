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
	o.spiders[spider] = &spiderView{}
}

// gone hears that a spider's connection has ended.
func (o *oracle) gone(spider uint32) {
	o.written(spider) // what was on its way may have got through just now
	for _, tx := range o.spiders[spider].all {
		if !tx.finished {
			o.lose(tx, false)
		}
	}
	delete(o.spiders, spider)
}

// lose ends a transaction whose spider has gone, or is to go since it was silent.
func (o *oracle) lose(tx *transaction, silent bool) {
	sp, d := o.spiders[tx.spider], tx.doc
	sp.lost = max(sp.lost, sp.inFlight) // the first is the one whose silence ends the connection, if that does
	sp.silenced = sp.silenced || silent
	alone := sp.lost == 1 && sp.silenced == silent
	if !alone || !sp.spoke && !silent {
		d.spared++
	}
	d.culprit = alone || silent && sp.spoke && o.now-sp.heard < o.set.statusTimeout/2
	o.finish(tx)
}

// finish ends a transaction.
func (o *oracle) finish(tx *transaction) {
	tx.finished = true
	tx.doc.tx = nil
	delete(o.open, tx.id)
	o.spiders[tx.spider].inFlight--
	o.closed(tx.host, tx.group)
}

// listen starts a transaction's status timeout.
func (o *oracle) listen(tx *transaction) {
	o.silences = append(o.silences, silence{tx: tx, at: tx.since})
	for i := len(o.silences) - 1; i > 0 && o.silences[i-1].at > tx.since; i-- {
		o.silences[i], o.silences[i-1] = o.silences[i-1], o.silences[i]
	}
}

// expire ends the transactions that have been silent for too long.
func (o *oracle) expire() {
	for len(o.silences) > 0 && o.silences[0].at+o.set.statusTimeout <= o.now {
		s := o.silences[0]
		o.silences = o.silences[1:]
		if s.tx.finished || s.tx.since != s.at {
			continue
		}
		if late := o.now - s.at - o.set.statusTimeout; late > 0 && s.at >= s.tx.at {
			o.wrong(RuleTimeout, "transaction %s is silent for %v more than the timeout, and the daemon slept", s.tx.id, late)
		}
		o.lose(s.tx, true)
	}
}

// status hears a line of a spider.
func (o *oracle) status(spider uint32, text string) {
	f := strings.Split(text, " ")
	tx := o.open[f[0]]
	if len(f) > 1 {
		o.spiders[spider].heard = o.now
	}
	if tx == nil || tx.spider != spider || len(f) < 2 {
		return
	}
	code, retry, ok := statusFields(f[2:])
	sp := o.spiders[spider]
	switch {
	case f[1] == "WORKING" && len(f) == 2:
		sp.spoke = true
		tx.since = o.now
		o.listen(tx)
	case f[1] == "DONE" && ok:
		sp.spoke = true
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

// done ends a transaction whose spider is through.
func (o *oracle) done(tx *transaction, code int, retry time.Duration) {
	g, h := tx.group, tx.host
	if tx.flying && o.now-tx.at > lateAfter {
		g.last, h.last = o.now, o.now
	}
	o.finished(h, g, o.now-tx.at, code, retry)
	tx.doc.answered, tx.doc.code = true, int16(code)
	o.answered++
	o.finish(tx)
}

// outcome hears how a document ended.
func (o *oracle) outcome(out docindex.Outcome) {
	id := string(out.DocID)
	o.figures.Outcomes[out.Kind]++
	if !out.At.Equal(o.wall) {
		o.wrong(RuleOutcome, "document %s ended at %v, not at %v", id, out.At, o.wall)
	}
	d := o.doc(id)
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
	}
	d.held, d.answered, d.ever, d.ended = false, false, true, o.now
	o.held--
	if !d.invalid {
		o.count(d.origin.host, -1)
	}
}

// unfit says why a document cannot have ended so; "": it can.
func (o *oracle) unfit(d *document, out docindex.Outcome) string {
	if d.invalid != (out.Kind == docindex.Invalid) {
		return "its URL is another"
	}
	if out.Attempts < int(d.sends)-int(d.spared) || out.Attempts > min(o.set.attempts, int(d.sends)) {
		return "sent " + strconv.Itoa(int(d.sends)) + " times, " + strconv.Itoa(int(d.spared)) + " of them perhaps in vain, and not " + strconv.Itoa(out.Attempts)
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
		if !d.culprit {
			return "others were at its spider, and may have been the cause"
		}
	case docindex.Robots:
		if !o.set.robots || !d.origin.forbidden(string(out.URL)) {
			return "robots.txt allows it"
		}
		if s := &d.origin.robotsState; s.state == silent && (s.misses < o.set.attempts || o.now-s.missing < time.Duration(o.set.attempts-1)*o.set.errorTTL) {
			o.wrong(RulePatience, "document %s ends as robots: its robots.txt was asked for %d times, since %v", out.DocID, s.misses, s.missing)
		}
	case docindex.DNS:
		if !d.origin.host.failed || d.origin.host.at != nil {
			return "its host has an address"
		}
		if h := d.origin.host; !h.none && o.answers-h.failing < o.set.giveUp {
			o.wrong(RulePatience, "document %s ends as dns: %s has failed for %v of the time in which others were answered; it has %v", out.DocID, h.name, o.answers-h.failing, o.set.giveUp)
		}
	case docindex.Stopped, docindex.Expired:
		return "nobody asked for that"
	}
	return ""
}

// stepped is called when the daemon has done what it had to do for now.
func (o *oracle) stepped() {
	if o.answered != 0 {
		o.wrong(RuleOutcome, "%d documents were done and have no outcome", o.answered)
	}
}

const rejectEvery = 4 // requests to the index, of which one has its reject list checked

// asked hears a request for candidates.
func (o *oracle) asked(reject []string) {
	if o.asking {
		o.wrong(RuleAsk, "the index is asked while it is being asked")
	}
	o.asking = true
	if o.asks++; len(o.heavy) == 0 || o.asks%rejectEvery != 0 {
		return
	}
	rejected := make(map[string]struct{}, len(reject))
	for _, name := range reject {
		rejected[name] = struct{}{}
	}
	for _, g := range slices.SortedFunc(maps.Keys(o.heavy), func(a, b *group) int { return strings.Compare(a.name, b.name) }) {
		o.missing(g, rejected)
	}
}

// missing checks that all hosts of a group are among the rejected.
func (o *oracle) missing(g *group, rejected map[string]struct{}) {
	kept := g.bound[:0]
	for _, s := range g.bound {
		if s.over(g) {
			continue
		}
		kept = append(kept, s)
		if _, ok := rejected[s.host.name]; !ok && s.host.held > 0 {
			o.wrong(RuleReject, "%v has %d documents, and %s is not rejected", g.name, g.held, s.host.name)
		}
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
