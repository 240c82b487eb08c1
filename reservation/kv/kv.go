// Package kv is a reservation store on any key-value store that can get a value, swap a value
// atomically and list keys in order, such as TiKV's raw API in atomic mode, or etcd. There is one
// record for each name, "h" NAME for a host and "a" NAME for an alias. The records are the truth.
// The queue rows, "q" TIME HOST, are hints.
//
// The record of a host's group is the only lock. A lease covers other names by references in their
// records. A reference counts only while the record that it names is busy under the same token, so
// a reference never has to be undone. A change of an alias concerns many records. It is written
// first, under "c", and then freezes these records. If the process that began it dies, the janitor
// or the next change completes it. After a crash between any two calls, other processes complete
// what is left, or it ends with its lease.
package kv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/reservation"
)

// KV is the store underneath. Its calls may be repeated.
type KV interface {
	// Get returns a key's value, nil if it has none.
	Get(ctx context.Context, key string) ([]byte, error)
	// CompareAndSwap replaces a value if it equals was (nil: the key does not exist), and reports
	// whether it did. After an error the swap may have happened. to is nil only for queue rows;
	// these may be deleted whatever their value is.
	CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error)
	// Scan returns the keys in [from, before) in order, at most limit, with their values.
	Scan(ctx context.Context, from, before string, limit int) ([]Pair, error)
}

// TxnKV is a KV that can swap a value, put a queue row and delete another one in one transaction.
// The row to delete may not exist. With any other KV this takes three calls, the record first.
type TxnKV interface {
	SwapAndMove(ctx context.Context, key string, was, to []byte, before, row string) (bool, error)
}

// Pair is a key with its value.
type Pair struct {
	Key   string
	Value []byte
}

// A call that loses a swap starts again, at most that many times, after pauses that double, 8 s in
// all. The longest pause is several times as long as a call at a loaded store, so that sixteen
// callers that collide do not collide again.
const (
	tries      = 20
	busyTries  = 8 // tries that remain counted while the calls that are faster make progress
	firstPause = time.Millisecond
	maxPause   = time.Second
)

var errDamaged = errors.New("is no record")

var errBusy = errors.New("reservations: others changed the same records again and again; try later")

// Config is the configuration of a Store.
type Config struct {
	KV       KV
	ID       string // unique to this process for all time
	Penalty  time.Duration
	Parallel int // how many calls of one batch, or steps of one change, run at a time; 0: one
	// Now returns the time in ms, of one clock for all processes. It may stand still, but never
	// goes back.
	Now func(ctx context.Context) (int64, error)
	// Late returns how far Now may be behind the time of another process, in ms. The ends of leases
	// and bindings and next-request times are stored later by as much. nil: all have one time.
	Late func() int64
}

// Store is a reservation.Store on a KV. Create it with New.
type Store struct {
	reservation.SingleCalls
	cfg      Config
	penalty  int64
	writes   atomic.Uint64
	repaired atomic.Uint64
	sleep    func(ctx context.Context, d time.Duration) error
	reads    *reads        // nil: the KV reads one key at a time
	changing chan struct{} // has an element while a call of this process changes an alias

	mu        sync.Mutex         // guards all below
	rowsInUse map[string]bool    // rows that a call of this process is working on
	joins     map[string][]*join // by alias: those that wait for s.changing
	swept     int64              // when Sweep was called last; 0: never
}

var _ reservation.Store = (*Store)(nil)

// New returns a store.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg, penalty: cfg.Penalty.Milliseconds(), sleep: sleep, changing: make(chan struct{}, 1),
		rowsInUse: map[string]bool{}, joins: map[string][]*join{}}
	s.SingleCalls.Batcher = s
	if many, can := cfg.KV.(ManyKV); can {
		s.reads = &reads{many: many}
	}
	return s
}

// late returns how far this process' time may be behind that of another one, in ms.
func (s *Store) late() int64 {
	if s.cfg.Late == nil {
		return 0
	}
	return s.cfg.Late()
}

// passed returns a moment at which at has passed by the time of every process. now is this process'
// time.
func (s *Store) passed(at, now int64) int64 {
	if at <= now {
		return at
	}
	return at + s.late()
}

// pause waits before the attempt with this number. Attempt 0 starts at once, and after the last one
// pause returns an error. The pause is random between half of its maximum and its maximum, so that
// callers that collided do not collide again.
func (s *Store) pause(ctx context.Context, try int) error {
	switch {
	case try == 0:
		return nil
	case try >= tries:
		return errBusy
	}
	most := min(firstPause<<(try-1), maxPause)
	return s.sleep(ctx, most/2+rand.N(most/2))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// record is all that the store knows of a name.
type record struct {
	// the process that wrote it and the number of the write, so no two values are equal
	By   string `json:"by"`
	Next int64  `json:"next,omitempty"` // nobody can lease it before, ms

	// As a host.
	Added    bool   `json:"added,omitempty"`
	Due      int64  `json:"due,omitempty"`
	Row      int64  `json:"row,omitempty"` // the time of its queue row; rows with another time are void
	Alias    string `json:"alias,omitempty"`
	Bound    string `json:"bound,omitempty"`
	BoundTo  int64  `json:"bound_to,omitempty"`
	Answered string `json:"answered,omitempty"` // the group that Bind answered, until BoundTo; "": Bound

	// As a group.
	Token  uint64   `json:"token,omitempty"` // the last token of this name
	Busy   string   `json:"busy,omitempty"`  // the host that is leased under Token; "": none
	Holder string   `json:"holder,omitempty"`
	End    int64    `json:"end,omitempty"`
	Covers []string `json:"covers,omitempty"` // keys of records with references to this lease
	Was    string   `json:"was,omitempty"`    // the host that was leased under Token, after the lease has ended
	Then   int64    `json:"then,omitempty"`   // nobody can lease what that lease covered before, ms
	Waits  []ref    `json:"waits,omitempty"`  // leases of other groups that cover this name
	Hosts  []string `json:"hosts,omitempty"`  // hosts of the alias, sorted

	// For a change of an alias.
	Frozen  uint64 `json:"frozen,omitempty"` // the change that it is part of; 0: none
	Applied bool   `json:"applied,omitempty"`
	Change  uint64 `json:"change,omitempty"` // the last change that it was part of
}

// ref names a lease: the record that is busy, and the token.
type ref struct {
	Key   string `json:"key"`
	Token uint64 `json:"token"`
}

// versioned is a record with the value that was read, for a compare and swap.
type versioned struct {
	key string
	raw []byte
	record
}

func hostKey(host string) string   { return "h" + host }
func aliasKey(alias string) string { return "a" + alias }
func (c *versioned) name() string  { return c.key[1:] }

func rowKey(at int64, host string) string { return fmt.Sprintf("q%015d%s", at, host) }

func (s *Store) read(ctx context.Context, key string) (*versioned, error) {
	raw, err := s.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reservations: get %s: %w", key, err)
	}
	return parse(key, raw)
}

// get returns a key's value, nil if it has none.
func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	if s.reads != nil {
		return s.reads.get(ctx, key)
	}
	return s.cfg.KV.Get(ctx, key)
}

func parse(key string, raw []byte) (*versioned, error) {
	c := &versioned{key: key, raw: raw}
	if raw != nil {
		if err := json.Unmarshal(raw, &c.record); err != nil {
			return nil, fmt.Errorf("reservations: %s %w: %w", key, errDamaged, err)
		}
	}
	return c, nil
}

// write swaps the record for what was read, and reports whether nobody was faster. If the time of
// the host's queue row changed from before, it moves the row. If ok comes with an error, the record
// was written and the row was not.
func (s *Store) write(ctx context.Context, c *versioned, before int64) (ok bool, err error) {
	c.By = fmt.Sprintf("%s.%d", s.cfg.ID, s.writes.Add(1))
	moves := c.Added && c.Row != before
	mover, can := s.cfg.KV.(TxnKV)
	ok, raw, err := s.swap(ctx, c.key, c.record, func(raw []byte) (bool, error) {
		if !moves || !can {
			return s.cfg.KV.CompareAndSwap(ctx, c.key, c.raw, raw)
		}
		return mover.SwapAndMove(ctx, c.key, c.raw, raw, rowKey(before, c.name()), rowKey(c.Row, c.name()))
	})
	if !ok || err != nil {
		return false, err
	}
	c.raw = raw
	if !moves || can {
		return true, nil
	}
	return true, s.queue(ctx, c, before)
}

// swap writes a value, and reports whether nobody was faster. After an error it reads the value
// again to find out: the field By tells who wrote it.
func (s *Store) swap(ctx context.Context, key string, to any,
	swap func(raw []byte) (bool, error)) (ok bool, raw []byte, err error) {
	if raw, err = json.Marshal(to); err != nil {
		return false, nil, err
	}
	if ok, err = swap(raw); err == nil {
		return ok, raw, nil
	}
	now, getErr := s.cfg.KV.Get(ctx, key)
	if getErr != nil {
		return false, nil, fmt.Errorf("reservations: swap %s: %w", key, err)
	}
	return string(now) == string(raw), raw, nil
}

// update changes a record, and moves its queue row, until no other process is faster. f reports
// whether anything changes.
func (s *Store) update(ctx context.Context, key string, f func(*record) bool) (*versioned, error) {
	for try := 0; ; try++ {
		if err := s.pause(ctx, try); err != nil {
			return nil, err
		}
		c, err := s.read(ctx, key)
		if err != nil {
			return nil, err
		}
		before := c.Row
		if !f(&c.record) {
			return c, nil
		}
		if ok, err := s.write(ctx, c, before); ok || err != nil {
			return c, err
		}
	}
}

// queue puts a host's queue row at the time in its record, and deletes the row at before.
func (s *Store) queue(ctx context.Context, c *versioned, before int64) error {
	if _, err := s.cfg.KV.CompareAndSwap(ctx, rowKey(c.Row, c.name()), nil, []byte{'.'}); err != nil {
		return fmt.Errorf("reservations: queue %s: %w", c.name(), err)
	}
	return s.unqueue(ctx, before, c.name())
}

func (s *Store) unqueue(ctx context.Context, at int64, host string) error {
	if at == 0 {
		return nil
	}
	if _, err := s.cfg.KV.CompareAndSwap(ctx, rowKey(at, host), []byte{'.'}, nil); err != nil {
		return fmt.Errorf("reservations: unqueue %s: %w", host, err)
	}
	return nil
}

// requeue moves the host's queue row to another time. If another process is faster, that process
// does it.
func (s *Store) requeue(ctx context.Context, c *versioned, at int64) error {
	before := c.Row
	c.Row = at
	_, err := s.write(ctx, c, before)
	return err
}

// group reads the record of h's current group, which may be h.
func (s *Store) group(ctx context.Context, h *versioned, now int64) (g *versioned, err error) {
	_, g, err = s.groups(ctx, h, now)
	return g, err
}

// groups reads two records: g is that of h's current group, and via that of the name that makes h belong to g: the
// one that h is bound to, or h itself. g may be h.
func (s *Store) groups(ctx context.Context, h *versioned, now int64) (via, g *versioned, err error) {
	via = h
	if h.Alias == "" && h.Bound != "" && h.BoundTo > now && h.Bound != h.name() {
		if via, err = s.read(ctx, hostKey(h.Bound)); err != nil {
			return nil, nil, err
		}
	}
	if via.Alias == "" {
		return via, via, nil
	}
	g, err = s.read(ctx, aliasKey(via.Alias))
	return via, g, err
}

// ended is a lease that has ended, with the names that it covered.
type ended struct {
	over   ref
	host   string // the leased host
	covers []string
	next   int64 // nobody can lease the names that it covered before, ms
}

// expire removes from a record, as read, what has ended by now: a lost lease, which it returns for
// propagate, and references to leases that have ended.
func (s *Store) expire(ctx context.Context, c *versioned, now int64) (lost ended, err error) {
	if c.Busy != "" && c.End <= now {
		lost = s.end(c, c.End+s.penalty)
	}
	waits := c.Waits[:0:0]
	for _, w := range c.Waits {
		g, err := s.read(ctx, w.Key)
		if err != nil {
			return ended{}, err
		}
		switch host, next := g.after(w.Token, s.penalty); {
		case g.Busy != "" && g.Token == w.Token && g.End > now:
			waits = append(waits, w)
		default:
			c.raiseNext(c.key, host, next)
		}
	}
	c.Waits = waits
	return lost, nil
}

// after returns the host of a lease that has ended, and when the names that it covered may be
// leased again.
func (c *versioned) after(token uint64, penalty int64) (host string, next int64) {
	switch {
	case c.Token != token: // later leases have followed
		return "", c.Next
	case c.Busy != "":
		return c.Busy, c.End + penalty
	}
	return c.Was, c.Then
}

// raiseNext updates a record that a lease of host covered, after that lease has ended. key is the
// record's.
func (r *record) raiseNext(key, host string, next int64) {
	r.Next = max(r.Next, next)
	if key == hostKey(host) {
		r.Due = next
	}
}

// end ends the lease of a record, as read. Nobody can lease the name before next.
func (s *Store) end(c *versioned, next int64) ended {
	over := ended{over: ref{c.key, c.Token}, host: c.Busy, covers: c.Covers, next: next}
	c.Was, c.Then = c.Busy, next
	c.raiseNext(c.key, c.Busy, next)
	c.Busy, c.Holder, c.Covers = "", "", nil
	return over
}

// propagate updates the records that a lease covered after the lease has ended.
func (s *Store) propagate(ctx context.Context, e ended) error {
	for _, key := range e.covers {
		if _, err := s.update(ctx, key, func(r *record) bool {
			kept := slices.DeleteFunc(slices.Clone(r.Waits), func(w ref) bool { return w == e.over })
			if len(kept) == len(r.Waits) {
				return false
			}
			r.Waits = kept
			r.raiseNext(key, e.host, e.next)
			if r.Added {
				r.Row = max(r.Due, r.Next)
			}
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}

// busyUntil returns until when a record, after expire, is leased or covered, and by whom. It
// returns zero if it is free.
func (s *Store) busyUntil(ctx context.Context, c *versioned) (until int64, holder string, err error) {
	if c.Busy != "" {
		until, holder = c.End, c.Holder
	}
	for _, w := range c.Waits {
		g, err := s.read(ctx, w.Key)
		if err != nil {
			return 0, "", err
		}
		if g.End > until {
			until, holder = g.End, g.Holder
		}
	}
	return until, holder, nil
}

func isAlias(key string) bool { return strings.HasPrefix(key, "a") }
