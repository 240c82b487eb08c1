package sim

import (
	"sync"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// Witness applies the oracle to a daemon that runs in real time. It sees what the daemon's index
// and spiders see, and knows the settings. A slow machine causes no complaint.
//
// It checks documents of hosts that are IP addresses. The index offers each document once and uses
// numbers as DOC_ID. It does not support robots.txt, politeness.delay_factor, status timeouts that
// expire, and status 429 and 503. There may be several spiders only if Req_Host_Concurrent is 1, in
// rules, too. Safe for concurrent use.
type Witness struct {
	start time.Time

	mu     sync.Mutex // guards all below
	oracle *oracle
}

// NewWitness returns a Witness. Call it before the daemon starts, with the daemon's settings; each
// DOC_ID is below documents.
func NewWitness(c configs.Config, documents int) *Witness {
	o := newOracle(limitsOf(c, true), documents)
	o.late = &late{spiders: map[uint32]moment{}}
	return &Witness{start: time.Now(), oracle: o}
}

// record sets the oracle's clock to the present and calls do.
func (w *Witness) record(do func(o *oracle)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oracle.setClocks(time.Since(w.start), time.Time{})
	do(w.oracle)
}

// Taken records an answer of the index. Call it before the daemon gets the answer.
func (w *Witness) Taken(b *docindex.Batch) {
	w.record(func(o *oracle) {
		for i := range b.Len() {
			c := b.At(i)
			o.took(string(c.DocID), string(c.URL), c.Priority)
		}
	})
}

// Outcome records how a document has ended.
func (w *Witness) Outcome(out docindex.Outcome) {
	w.record(func(o *oracle) {
		o.wall = out.At // the time of an outcome is not checked
		o.outcome(out)
	})
}

// Connected records a spider. Call it before the spider connects.
func (w *Witness) Connected(spider uint32) {
	w.record(func(o *oracle) { o.connected(spider) })
}

// Line records a line, without its end, that a spider has received.
func (w *Witness) Line(spider uint32, text string) {
	w.record(func(o *oracle) {
		o.line(spider, text, 0)
		o.written(spider)
	})
}

// Status records a spider's line, without its end. Call it before the spider sends the line.
func (w *Witness) Status(spider uint32, text string) {
	w.record(func(o *oracle) { o.status(spider, text) })
}

// Reload records a change of settings. do makes the daemon apply them, and returns when it has.
func (w *Witness) Reload(c configs.Config, do func()) {
	w.record(func(o *oracle) { o.changing(limitsOf(c, true)) })
	do()
	w.record((*oracle).changed)
}

// Settled returns how many requests since the last Reload were checked against the new settings
// only.
func (w *Witness) Settled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.late.settled
}

// Done returns how many documents have ended.
func (w *Witness) Done() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.report.Taken - w.oracle.held
}

// Complaint returns the first violation, or nil.
func (w *Witness) Complaint() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.oracle.complaint == nil {
		return nil
	}
	return w.oracle.complaint
}
