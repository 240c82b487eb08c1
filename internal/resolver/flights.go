package resolver

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/netip"
)

// flight is a look-up of a name, and all callers that wait for it.
type flight struct {
	name    string // folded
	waiters []func(netip.Addr, error)
}

// takeIn is the intake goroutine. It answers names that need no server, and queues the others. It
// ends when no more names arrive.
func (r *Resolver) takeIn() {
	var spare []*flight
	for {
		batch := r.nextBatch(spare)
		if batch == nil {
			return
		}
		r.rereadHosts()
		r.nets.own.refresh()
		rest := batch[:0]
		for _, f := range batch {
			if o, ok := r.local(f.name); ok {
				r.land(f, o)
			} else {
				rest = append(rest, f)
			}
		}
		r.enqueue(rest)
		clear(batch)
		spare = batch[:0]
	}
}

// nextBatch returns the names that have arrived, and leaves spare for those to come. It returns nil
// if none has arrived; the intake goroutine then ends.
func (r *Resolver) nextBatch(spare []*flight) []*flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.arrived) == 0 {
		r.intake = false
		r.stopped.Broadcast()
		return nil
	}
	batch := r.arrived
	r.arrived = nil
	if cap(spare) <= maxSpare {
		r.arrived = spare
	}
	return batch
}

func (r *Resolver) rereadHosts() {
	err := r.hosts.refresh(r.now())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hostErr = err
}

func (r *Resolver) enqueue(batch []*flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range batch {
		r.queue.push(f)
	}
	r.staffLocked()
}

// staffLocked starts workers for queued names, as many as the window allows.
func (r *Resolver) staffLocked() {
	for range min(r.window.limit-r.workers, r.queue.len()) {
		r.workers++
		go r.work()
	}
}

// work is a worker goroutine. It ends when nothing is queued or the window has shrunk.
func (r *Resolver) work() {
	var seed [32]byte
	crand.Read(seed[:])
	w := &worker{r: r, rng: rand.NewChaCha8(seed)}
	for f := r.next(); f != nil; f = r.next() {
		began := r.now()
		o := w.run(f.name)
		r.counts.took.Add(uint64(max(0, r.now()-began)))
		r.counts.asked.Add(1)
		r.land(f, o)
	}
	w.port.drop(r)
	r.leave()
}

func (r *Resolver) next() *flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workers > r.window.limit {
		return nil
	}
	return r.queue.pop()
}

func (r *Resolver) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers--
	r.staffLocked() // for names queued since next returned nil
	r.stopped.Broadcast()
}

// run looks up name at the servers. If they fail it returns the cached address, even if its TTL has
// passed.
func (w *worker) run(name string) outcome {
	r := w.r
	l := r.newLookup(name)
	w.ask(l)
	o := l.conclude(&r.cfg)
	if o.kind == kindAddr {
		r.known.Store(&name)
	}
	if o.kind != kindFailed {
		return o
	}
	if r.alive.Err() != nil {
		return outcome{err: l.fail(ErrClosed, nil)}
	}
	if addr, ok := r.cache.stale([]byte(name), staleFor, r.now()); ok && !r.IsOwn(addr) {
		r.counts.stale.Add(1)
		return outcome{addr: addr}
	}
	if _, _, down := r.servers.down(); down {
		return outcome{err: fmt.Errorf("%w; %w", o.err, ErrDown)}
	}
	return o
}

// land caches o and passes it to all callers of the flight.
func (r *Resolver) land(f *flight, o outcome) {
	if o.kind != kindNone {
		r.cache.put([]byte(f.name), o.kind, o.addr, o.ttl, r.now())
	}
	r.counts.ended(o.err)
	r.mu.Lock()
	delete(r.flights, f.name)
	waiters := f.waiters
	r.mu.Unlock()
	for _, deliver := range waiters {
		deliver(o.addr, o.err)
	}
}

// local answers a name that needs no server.
func (r *Resolver) local(name string) (outcome, bool) {
	if r.alive.Err() != nil {
		return outcome{err: fmt.Errorf("host %.255q: %w", name, ErrClosed)}, true
	}
	if addr, ok := literal(name); ok {
		return r.localLiteral(name, addr), true
	}
	if err := checkName(name); err != nil {
		return outcome{err: err}, true
	}
	if addr, err, ok := r.remembered([]byte(name)); ok {
		if err != nil {
			err = fmt.Errorf("host %q: %w (remembered)", name, err)
		}
		return outcome{addr: addr, err: err}, true
	}
	if isLocalhost(name) {
		return r.localNames(name, []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()})
	}
	return r.localNames(name, r.hosts.names[name])
}

// localLiteral answers an IP address with itself, whatever the family.
func (r *Resolver) localLiteral(name string, addr netip.Addr) outcome {
	if err := r.Check(addr); err != nil {
		return outcome{kind: kindRefused, ttl: r.cfg.MaxTTL, err: fmt.Errorf("host %q: %w", name, err)}
	}
	return outcome{kind: kindLocal, addr: addr, ttl: r.cfg.MaxTTL}
}

// localNames answers from the hosts file. If the name has no address of a wanted family there, the
// servers are asked.
func (r *Resolver) localNames(name string, addrs []netip.Addr) (outcome, bool) {
	addr, refused := r.nets.choose(addrs)
	switch {
	case addr.IsValid():
		return outcome{kind: kindLocal, addr: addr, ttl: hostsCheck}, true
	case refused:
		return outcome{kind: kindRefused, ttl: hostsCheck, err: fmt.Errorf("host %q: %w (local name)", name,
			ErrRefused)}, true
	}
	return outcome{}, false
}

// crowded reports whether names are queued.
func (r *Resolver) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.len() > 0
}

// era, widen and narrow lock mu and use the window.
func (r *Resolver) era() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.window.era
}

func (r *Resolver) widen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window.answered()
	r.staffLocked()
}

func (r *Resolver) narrow(era uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window.silent(era)
}
