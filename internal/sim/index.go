package sim

import (
	"errors"
	"strconv"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// docIndex is what a run needs of the doc index.
type docIndex interface {
	asked(*engine.Ask)            // answers the daemon's request for candidates after a while
	returned(o docindex.Outcome)  // puts back a document that the daemon returns
	ended(o docindex.Outcome)     // hears that the daemon has ended a document
	complete(n uint32)            // takes the outcome, which the outbox has delivered
	unfinished() int              // documents that are not completed
	lines(c *conn, asks []string) // does what PUT and COUNT lines ask for that have come at once
}

// index simulates the doc index. It gives out documents by host, round robin.
type index struct {
	run    *run
	queues [][]uint32 // due documents by host
	ring   []uint32   // hosts with due documents
	state  []state    // by document
	recent []uint32   // documents given out before, to repeat some
	left   int        // documents that are not completed
	reject map[string]struct{}
	answer engine.Prepared
	picked []uint32
}

type state uint8

const (
	later state = iota
	due
	out
	completed
)

const (
	perHost    = 20               // documents of one host an answer, while there are others
	releases   = 1000             // times that documents come due
	leaseTime  = 10 * time.Minute // after a lost answer
	recentMost = 4096
)

var errIndex = errors.New("index: connection reset")

func newIndex(r *run) *index {
	x := &index{run: r, queues: make([][]uint32, r.sc.Hosts), state: make([]state, r.sc.Documents),
		left: r.sc.Documents, reject: map[string]struct{}{}}
	slots := make([][]uint32, releases)
	for n := range r.world.docs {
		at := r.world.docs[n].due
		slots[at] = append(slots[at], uint32(n))
	}
	for i, docs := range slots {
		r.plan(r.sc.Day*time.Duration(i)/releases, func() {
			for _, n := range docs {
				if r.world.docs[n].kind < badURL && r.chance(r.sc.Puts) {
					x.putBySpider(n)
				} else {
					x.put(n)
				}
			}
		})
	}
	return x
}

// put makes a document due now.
func (x *index) put(n uint32) {
	h := x.run.world.docs[n].host
	x.state[n] = due
	x.run.oracle.due(n)
	if len(x.queues[h]) == 0 {
		x.ring = append(x.ring, h)
	}
	x.queues[h] = append(x.queues[h], n)
}

// returned implements [docIndex].
func (x *index) returned(o docindex.Outcome) {
	if n, err := strconv.ParseUint(string(o.DocID), 10, 32); err == nil && int(n) < len(x.state) && x.state[n] == out {
		x.put(uint32(n))
	}
}

// asked implements [docIndex].
func (x *index) asked(a *engine.Ask) {
	r := x.run
	r.oracle.asked(a.Reject)
	r.trace.text(r.now, strconv.Itoa(len(a.Reject)))
	clear(x.reject)
	if len(x.ring) > 0 && !r.chance(r.sc.Trouble.Ignores) {
		for _, name := range a.Reject {
			x.reject[name] = struct{}{}
		}
	}
	x.picked = x.picked[:0]
	var failed error
	switch {
	case !r.chance(r.sc.Trouble.NoAnswers):
		x.pick(a.Max)
	case r.rng.IntN(2) == 0:
		failed = errIndex
		x.lose(a.Max)
	}
	wait := r.between(10*time.Millisecond, 1500*time.Millisecond)
	if r.rng.IntN(20) == 0 {
		wait = r.between(time.Second, 20*time.Second)
	}
	r.after(wait, r.ofLife(func() { x.deliver(failed) }))
}

// lose gives out documents in an answer that never arrives. They come due again after leaseTime.
func (x *index) lose(most int) {
	x.pick(most)
	lost := append([]uint32(nil), x.picked...)
	x.picked = x.picked[:0]
	x.run.after(leaseTime, func() {
		for _, n := range lost {
			if x.state[n] == out {
				x.put(n)
			}
		}
	})
}

// pick chooses the documents of the next answer.
func (x *index) pick(most int) {
	for range len(x.ring) {
		if len(x.picked) >= most {
			return
		}
		h := x.ring[0]
		x.ring = x.ring[1:]
		if _, no := x.reject[x.run.world.hosts[h].name]; !no && x.run.kept.closed[h] <= x.run.now {
			x.pickFrom(h, min(most-len(x.picked), max(perHost, most/(len(x.ring)+1))))
		}
		if len(x.queues[h]) > 0 {
			x.ring = append(x.ring, h)
		}
	}
}

func (x *index) pickFrom(h uint32, most int) {
	n := min(most, len(x.queues[h]))
	for _, doc := range x.queues[h][:n] {
		x.give(doc)
	}
	x.queues[h] = x.queues[h][n:]
}

func (x *index) give(doc uint32) {
	if x.state[doc] == due {
		x.state[doc] = out
	}
	x.picked = append(x.picked, doc)
	if len(x.recent) < recentMost {
		x.recent = append(x.recent, doc)
	} else {
		x.recent[x.run.rng.IntN(recentMost)] = doc
	}
	if x.run.chance(x.run.sc.Trouble.Repeats) {
		x.picked = append(x.picked, x.recent[x.run.rng.IntN(len(x.recent))])
	}
}

// deliver passes the answer to the engine.
func (x *index) deliver(failed error) {
	r := x.run
	r.oracle.asking = false
	x.answer.Batch.Reset()
	x.answer.Err = failed
	for _, n := range x.picked {
		x.add(n)
	}
	x.answer.Prepare()
	r.engine.Answered(&x.answer)
}

func (x *index) add(n uint32) {
	r := x.run
	p := &r.world.docs[n]
	id, priority := r.world.docID(n), int32(p.priority)
	raw, text := r.world.url(n)
	switch p.kind {
	case badID: // the daemon cannot report an outcome for it
		x.complete(n)
	case badURL:
		r.oracle.unusable(id, docindex.Invalid)
	default:
		r.oracle.took(id, text, priority)
	}
	x.answer.Batch.Add([]byte(id), []byte(raw), priority)
	if r.sc.Payloads {
		x.answer.Batch.AttachPayload([]byte(payloadOf(n)))
	}
}

// ended implements [docIndex].
func (x *index) ended(docindex.Outcome) {}

// unfinished implements [docIndex].
func (x *index) unfinished() int { return x.left }

// complete implements [docIndex].
func (x *index) complete(n uint32) {
	if x.state[n] != completed {
		x.state[n] = completed
		x.left--
	}
}

// outbox keeps outcomes until the index has acknowledged them. While it holds too many, it puts the
// daemon under back-pressure.
type outbox struct {
	run     *run
	ended   []uint32
	sending int  // of ended
	full    bool // the daemon may send nothing
	outage  bool
}

func (b *outbox) waiting() int { return len(b.ended) }

func (b *outbox) put(id string) {
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil || int(n) >= len(b.run.world.docs) {
		return // the oracle has complained
	}
	b.ended = append(b.ended, uint32(n))
	b.send()
}

// send delivers all outcomes after a while, and tries again if that fails.
func (b *outbox) send() {
	if b.sending > 0 {
		return
	}
	b.sending = len(b.ended)
	r := b.run
	r.after(r.between(time.Millisecond, 300*time.Millisecond), func() {
		if b.outage || r.chance(r.sc.Trouble.Undelivered) {
			b.sending = 0
			r.after(time.Second, b.retry)
			return
		}
		for _, n := range b.ended[:b.sending] {
			r.index.complete(n)
		}
		b.ended, b.sending = append(b.ended[:0], b.ended[b.sending:]...), 0
		b.setBackpressure()
		b.retry()
	})
}

func (b *outbox) retry() {
	if len(b.ended) > 0 {
		b.send()
	}
}

// setBackpressure stops the daemon while too many outcomes wait.
func (b *outbox) setBackpressure() {
	most := b.run.sc.Config.DocIndex.OutcomesMax
	is := len(b.ended) >= most || b.full && len(b.ended) > most/2
	if is != b.full {
		b.full = is
		b.run.engine.SetBackpressure(is)
		b.run.oracle.disable(backpressure, is)
	}
}
