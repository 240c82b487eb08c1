package sim

import (
	"sync"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// Witness has the oracle judge a daemon that runs in real time, by what its index and its spiders see, and by what its
// settings were meant to be. How long anything takes does not matter.
//
// It judges documents of hosts that are IP addresses, offered once each by an index that gives numbers as DOC_ID;
// without robots.txt, politeness.delay_factor and status timeouts that run out, and without status 429 and 503. Only
// where Req_Host_Concurrent, and that of rules, is 1 may there be several spiders. Safe for concurrent use.
type Witness struct {
	start time.Time

	mu     sync.Mutex // guards all below
	oracle *oracle
}

// NewWitness has to be called before the daemon starts, with its settings and the number above all of DOC_ID.
func NewWitness(c configs.Config, documents int) *Witness {
	o := newOracle(limitsOf(c, true), documents)
	o.late = &late{spiders: map[uint32]moment{}}
	return &Witness{start: time.Now(), oracle: o}
}

// tell has the oracle hear of something now.
func (w *Witness) tell(do func(o *oracle)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oracle.tell(time.Since(w.start), time.Time{})
	do(w.oracle)
}

// Taken hears of an answer of the index before the daemon gets it.
func (w *Witness) Taken(b *docindex.Batch) {
	w.tell(func(o *oracle) {
		for i := range b.Len() {
			c := b.At(i)
			o.took(string(c.DocID), string(c.URL), c.Priority)
		}
	})
}

// Outcome hears how a document has ended.
func (w *Witness) Outcome(out docindex.Outcome) {
	w.tell(func(o *oracle) {
		o.wall = out.At // no matter of this oracle's
		o.outcome(out)
	})
}

// Connected hears of a spider before it connects.
func (w *Witness) Connected(spider uint32) {
	w.tell(func(o *oracle) { o.connected(spider) })
}

// Line hears of a line, without its end, that has come to a spider.
func (w *Witness) Line(spider uint32, text string) {
	w.tell(func(o *oracle) {
		o.line(spider, text, 0)
		o.written(spider)
	})
}

// Status hears of a spider's line, without its end, before it is sent.
func (w *Witness) Status(spider uint32, text string) {
	w.tell(func(o *oracle) { o.status(spider, text) })
}

// Reload hears that the daemon is to take other settings over; do returns when it has.
func (w *Witness) Reload(c configs.Config, do func()) {
	w.tell(func(o *oracle) { o.changing(limitsOf(c, true)) })
	do()
	w.tell((*oracle).changed)
}

// Settled is how many requests since the last Reload were judged by its settings alone.
func (w *Witness) Settled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.late.settled
}

// Done is how many documents have ended.
func (w *Witness) Done() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.figures.Taken - w.oracle.held
}

// Complaint is the first thing wrong; nil: nothing is.
func (w *Witness) Complaint() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.oracle.complaint == nil {
		return nil
	}
	return w.oracle.complaint
}
