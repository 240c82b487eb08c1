package sim

import (
	"net/netip"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver/engine"
)

// kept is what an index on disk keeps for the next engine, besides documents and notes of
// robots.txt.
type kept struct {
	paused   []time.Duration // by host: the end of the longest pause that the engine told of its site
	closed   []time.Duration // by host: nothing of it is offered before, by what an earlier engine told
	backoffs map[netip.Addr]hostslots.AddressBackoff
}

// atRestart is called before each restart, for mutation tests; nil: nothing is.
var atRestart func(*run)

func newKept(hosts int) kept {
	return kept{
		make([]time.Duration, hosts), make([]time.Duration, hosts),
		map[netip.Addr]hostslots.AddressBackoff{},
	}
}

// learn keeps what the engine says of sites and addresses.
func (r *run) learn(out *engine.Out) {
	for i := range out.Outcomes.Len() {
		r.kept.pause(r, out.Outcomes.At(i))
	}
	for i := range out.Pauses.Len() {
		r.kept.pause(r, out.Pauses.At(i))
	}
	for _, b := range out.Backoffs {
		r.kept.backoffs[b.Addr] = b
	}
	out.Pauses.Reset()
	out.Backoffs = out.Backoffs[:0]
}

func (k *kept) pause(r *run, o docindex.Outcome) {
	if h, known := r.world.byName[string(docindex.HostOf(o.URL))]; known && o.Pause > 0 {
		k.paused[h] = max(k.paused[h], r.now+o.Pause)
	}
}

// restart kills the engine and starts another one, which knows what the index keeps. Outcomes have
// reached the index. Documents that had none are due again.
func (r *run) restart() {
	for _, n := range r.outbox.ended {
		r.index.complete(n)
	}
	r.outbox.ended, r.outbox.sending, r.outbox.full = nil, 0, false
	for _, s := range r.spiders {
		if s.conn != nil {
			s.conn.broken()
		}
	}
	if atRestart != nil {
		atRestart(r)
	}
	copy(r.kept.closed, r.kept.paused)
	r.oracle.restarted(func(origin string) bool { return r.notes[origin] != nil }, r.kept.backoffs)
	r.life++
	r.born = r.now
	r.startEngine()
	r.engine.Advance(0, r.start.Add(r.now+r.drift))
	if x, ok := r.index.(*index); ok {
		x.restarted()
	}
	r.event = true
}

// startEngine starts an engine.
func (r *run) startEngine() {
	o := engine.Options{Cached: r.cached, ForNow: isForNow, Down: isDown,
		Generation: uint32(r.sc.Seed) + uint32(r.life)<<16, Exact: r.sc.Exact, Notes: r.sc.Notes}
	for _, b := range r.kept.backoffs { // each is restored the same, whatever the order
		if b.Gap > 0 {
			o.Backoffs = append(o.Backoffs, b)
		}
	}
	for h, until := range r.kept.closed {
		if until > r.now {
			o.Pauses = append(o.Pauses, engine.Pause{Host: r.world.hosts[h].name, Until: until - r.now})
		}
	}
	r.engine = engine.New(r.sc.Config, o)
}

// ofLife returns a function that calls do unless the engine of now has gone.
func (r *run) ofLife(do func()) func() {
	life := r.life
	return func() {
		if r.life == life {
			do()
		}
	}
}

// broken ends a connection, as the daemon has died. In half of the cases the spider's process
// goes on fetching.
func (c *conn) broken() {
	c.over, c.pieces.ended = true, true
	delete(c.run.conns, c.id)
	c.spider.conn = nil
	if c.run.rng.IntN(2) == 0 {
		c.spider.life++
	}
	c.run.after(c.run.between(100*time.Millisecond, 30*time.Second), c.spider.connect)
}

// restarted makes all documents due that an engine had.
func (x *index) restarted() {
	x.picked = x.picked[:0]
	for n, s := range x.state {
		if s == out {
			x.put(uint32(n))
		}
	}
}
