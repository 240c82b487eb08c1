package sim

import (
	"strconv"
	"strings"
	"time"
)

// The engine decides about all hosts in one goroutine. A verdict by expensive rules must not delay
// it, so such verdicts are made outside the engine: when a robots.txt is read, or when the engine
// asks a question.

const (
	timePerOctet = time.Nanosecond // time that a verdict takes for each timePerOctet that is looked at
	originPause  = 100             // an origin waits this many times as long as its last verdicts took
)

// remembers checks how much memory the daemon says the rules of all robots.txt take.
func (o *oracle) remembers(size int) {
	if size > o.set.robotsMemory || size < 0 {
		o.wrong(RuleMemory, "the rules take %d bytes; they may take %d", size, o.set.robotsMemory)
	}
}

// targetDoc returns the document whose path and query these are; its number is at the end.
func (o *oracle) targetDoc(target []byte) *document {
	n, err := numberOfURL(string(target))
	if err != nil || int(n) >= len(o.docs) {
		o.wrong(RuleCostly, "a verdict is asked for on %q, which is of no document", target)
		return nil
	}
	return &o.docs[n]
}

// numberOfURL returns the number of the document whose URL, or path and query, these are: it is in
// the last segment.
func numberOfURL(url string) (uint32, error) {
	last := url[strings.LastIndexByte(url, '/')+1:]
	last, _, _ = strings.Cut(strings.TrimPrefix(last, "p%20"), ".")
	n, err := strconv.ParseUint(last, 10, 32)
	return uint32(n), err
}

// judges records verdicts on documents that were made outside the engine.
func (o *oracle) judges(targets [][]byte) {
	for _, target := range targets {
		if d := o.targetDoc(target); d != nil {
			d.judged = true
		}
	}
}

// asksVerdicts checks a question about documents of one origin.
func (o *oracle) asksVerdicts(targets [][]byte) {
	d := o.targetDoc(targets[0])
	switch {
	case d == nil:
	case o.judging:
		o.wrong(RuleCostly, "two questions about robots.txt at once")
	case o.now < o.judgesAt:
		o.wrong(RuleCostly, "the next question about robots.txt comes %v before others had as much time",
			o.judgesAt-o.now)
	case o.now < d.origin.questionAt:
		o.wrong(RuleCostly, "verdicts on documents of %s are asked for %v too early", d.origin.host.name,
			d.origin.questionAt-o.now)
	}
	o.judging = true
}

// getsVerdicts records the answer: verdicts on these documents, and how many octets were read for
// them.
func (o *oracle) getsVerdicts(targets [][]byte, work int) {
	o.judging = false
	o.judges(targets)
	took := time.Duration(work) * timePerOctet
	o.judgesAt = o.now + took
	if d := o.targetDoc(targets[0]); d != nil {
		d.origin.questionAt = o.now + originPause*took
	}
}

// wasJudged checks a document that is sent, or that robots.txt ends.
func (o *oracle) wasJudged(d *document, url string) {
	s := &d.origin.robotsState
	if o.set.robots && s.costly && (s.state == read || s.state == stale) && !d.judged {
		o.wrong(RuleCostly, "a verdict on %s, by rules that cost much, was made by the engine", url)
	}
	d.judged = false
}
