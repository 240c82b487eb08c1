// Package resolver finds the IP address of a host. It is a stub resolver with its own sockets. It
// accepts only answers to its own questions, sends one query for any number of callers, caches
// results, and never returns an address in a network that a crawler must not reach.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Why a look-up fails. Errors wrap one of these, and name the host and the server.
var (
	ErrNoHost  = errors.New("no such host")                 // the name does not exist or has no address
	ErrRefused = errors.New("address in a refused network") // all its addresses are; see Config.AllowNetworks
	ErrServers = errors.New("name servers failed")          // for this name; a later look-up may succeed
	// for any name; wrapped together with ErrServers, and not cached
	ErrDown    = errors.New("no name server can be used")
	ErrBadName = errors.New("not a name that DNS can carry") // no server was asked
	ErrClosed  = errors.New("resolver closed")               // Close was called
)

// Resolver answers from IP literals, localhost, the hosts file, its cache and name servers, in that
// order. Safe for concurrent use.
type Resolver struct {
	cfg     Config
	nets    networks
	servers *servers
	cache   *cache
	sockets socketSet
	counts  counters
	start   time.Time

	known atomic.Pointer[string] // the last name that was answered with an address; nil: none was

	alive context.Context // ends with Close
	end   context.CancelFunc

	hosts *hostsFile // used by the intake goroutine only

	mu      sync.Mutex         // guards all below; held for memory work only
	stopped sync.Cond          // on mu: a worker or intake has ended
	flights map[string]*flight // by name; every name that a caller waits for
	arrived []*flight          // not handled by intake yet
	queue   fifo[flight]       // names to ask the servers for
	intake  bool               // the intake goroutine runs
	workers int                // worker goroutines
	probing bool               // the goroutine of a probe runs
	probed  time.Duration      // when the last probe began
	window  window
	hostErr error // why the hosts file could not be read again
}

// New checks cfg, and reads the hosts file, and /etc/resolv.conf if cfg names no servers. The error
// names every fault of cfg. Call Close when done.
func New(cfg Config) (*Resolver, error) {
	cfg, addrs, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("resolver: %w", err)
	}
	hosts, err := openHosts(cfg.HostsFile)
	if err != nil {
		return nil, fmt.Errorf("resolver: %w", err)
	}
	r := &Resolver{
		cfg:     cfg,
		nets:    newNetworks(cfg.Family, cfg.AllowNetworks, newOwn(cfg.Interfaces)),
		servers: newServers(addrs),
		cache:   newCache(maxCached),
		start:   time.Now(),
		hosts:   hosts,
		flights: make(map[string]*flight),
		window:  newWindow(cfg.Concurrency),
	}
	r.stopped.L = &r.mu
	r.alive, r.end = context.WithCancel(context.Background())
	return r, nil
}

// Health is the state of the name servers.
type Health struct {
	Down    bool      // no server has given a usable answer since New, or no server answers any more
	Since   time.Time // if Down: when the first try failed, or when the last server became silent
	Why     string    // if Down: how the last try failed, with the server
	Servers []string  // all servers, "ip:port"
}

// Health returns the state of the name servers. Before the first look-up they count as usable.
func (r *Resolver) Health() (h Health) {
	for _, s := range r.servers.list {
		h.Servers = append(h.Servers, s.addr.String())
	}
	since, why, down := r.servers.down()
	if down {
		h.Down, h.Since, h.Why = true, r.start.Add(since), why
	}
	return h
}

// CachedFor returns how long Cached will return its present result for host; 0: it has none.
func (r *Resolver) CachedFor(host []byte) time.Duration {
	var buf [maxName]byte
	key, ok := appendFolded(buf[:0], host)
	if !ok {
		return 0
	}
	return r.cache.left(key, r.now())
}

// Cached returns the cached result. It does not block or allocate. ok is false if there is none;
// call Resolve then. If ok, err is nil, ErrNoHost, ErrRefused or ErrServers, not wrapped.
func (r *Resolver) Cached(host []byte) (addr netip.Addr, err error, ok bool) {
	var buf [maxName]byte
	key, ok := appendFolded(buf[:0], host)
	if !ok {
		return netip.Addr{}, nil, false
	}
	addr, err, ok = r.remembered(key)
	if ok {
		r.counts.remembered.Add(1)
	}
	return addr, err, ok
}

// remembered returns the cached result. It refuses an address that has become this machine's own.
func (r *Resolver) remembered(name []byte) (addr netip.Addr, err error, ok bool) {
	addr, err, ok = r.cache.get(name, r.now())
	if ok && err == nil && r.IsOwn(addr) {
		return netip.Addr{}, ErrRefused, true
	}
	return addr, err, ok
}

// IsOwn reports whether addr is an address of this machine that Config.AllowNetworks does not
// allow. It does not block. A change of the machine's addresses takes effect after some seconds.
func (r *Resolver) IsOwn(addr netip.Addr) bool {
	return r.nets.own.has(addr) && r.nets.refusal(addr) == ownUse
}

// Resolve looks up host and calls deliver exactly once, from another goroutine. ErrServers without
// ErrDown is about this name alone, after one try at each server that answers, or after
// Config.Attempts tries without an answer; fewer if other names wait. deliver must be quick,
// because the next result waits for it, and must not call Close. Names are queued in memory; each
// takes a few hundred bytes until it is answered.
func (r *Resolver) Resolve(host string, deliver func(netip.Addr, error)) {
	name := fold(host)
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.flights[name]; f != nil {
		f.waiters = append(f.waiters, deliver)
		return
	}
	f := &flight{name: name, waiters: []func(netip.Addr, error){deliver}}
	r.flights[name] = f
	r.arrived = append(r.arrived, f)
	if !r.intake {
		r.intake = true
		go r.takeIn()
	}
}

// Lookup is Resolve for a caller that waits. It returns at once when ctx ends; the look-up
// continues, for other callers and the cache.
func (r *Resolver) Lookup(ctx context.Context, host string) (netip.Addr, error) {
	if err := ctx.Err(); err != nil {
		return netip.Addr{}, fmt.Errorf("host %.255q: %w", host, err)
	}
	type answer struct {
		addr netip.Addr
		err  error
	}
	answers := make(chan answer, 1)
	r.Resolve(host, func(addr netip.Addr, err error) { answers <- answer{addr, err} })
	select {
	case a := <-answers:
		return a.addr, a.err
	case <-ctx.Done():
		return netip.Addr{}, fmt.Errorf("host %.255q: %w", host, ctx.Err())
	}
}

// Check returns an error that wraps ErrRefused if addr, or an IPv4 address embedded in it, is in a
// refused network and not in Config.AllowNetworks.
func (r *Resolver) Check(addr netip.Addr) error {
	if why := r.nets.refusal(addr); why != "" {
		return fmt.Errorf("%w: %s: %s", ErrRefused, addr, why)
	}
	return nil
}

// Close ends all look-ups at once with ErrClosed. It returns when the resolver's goroutines have
// ended. After that Resolve delivers ErrClosed.
func (r *Resolver) Close() error {
	r.end()
	r.sockets.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.workers > 0 || r.intake || r.probing {
		r.stopped.Wait()
	}
	return nil
}

// now returns the time since the resolver's start, on the monotonic clock.
func (r *Resolver) now() time.Duration { return time.Since(r.start) }
