// Package kv keeps reservations in any store that can get a value, swap one atomically and list keys in order: TiKV's
// raw API in atomic mode, etcd. A record per name is the truth (host: "h" NAME, alias: "a" NAME), queue rows
// ("q" TIME HOST) are hints.
//
// The record of a host's group is the only lock. A reservation covers other names by references in their records; a
// reference counts only while the record it points to is still busy under the same token, so nothing has to be undone
// for it. A change of an alias concerns many records: it is written down first ("c"), freezes them all, and is
// carried on by the janitor and by the next change if who began it is gone. A crash between any two calls leaves nothing that others do not finish, or
// that does not end with its lease.
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

// A KV is the store underneath. Its calls may be repeated.
type KV interface {
	// Get returns a key's value, nil if it has none.
	Get(ctx context.Context, key string) ([]byte, error)
	// CompareAndSwap replaces a value if it is was (nil: none), and tells if it did. After an error it may have happened.
	// To is nil only for queue rows; those may go whatever their value is.
	CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error)
	// Scan returns keys of [from, before) in order, at most limit, with their values.
	Scan(ctx context.Context, from, before string, limit int) ([]Pair, error)
}

// Mover is a KV that can swap a value, and if it does put a queue row and take one away (which may not be there), in one
// step. With others it takes three, the record first.
type Mover interface {
	SwapAndMove(ctx context.Context, key string, was, to []byte, before, row string) (bool, error)
}

// Pair is a key with its value.
type Pair struct {
	Key   string
	Value []byte
}

// A call begins anew where others were faster, at most so often, after pauses that double: 8 s in all.
// The longest is several times what a call takes at a store that is loaded, so that sixteen who meet do not meet again.
const (
	tries      = 20
	firstPause = time.Millisecond
	maxPause   = time.Second
)

var errBusy = errors.New("reservations: others changed the same records again and again; try later")

// Config is what a Store works with.
type Config struct {
	KV       KV
	ID       string // of this process, unlike any other's, past ones included
	Penalty  time.Duration
	Parallel int // how many of the things asked for at once are done at a time; 0: one
	// Now is the time in ms, of one clock for all processes; it may stand, but never go back.
	Now func(ctx context.Context) (int64, error)
}

// Store is a reservation.Store over a KV. Use New.
type Store struct {
	reservation.Verbs
	cfg      Config
	penalty  int64
	writes   atomic.Uint64
	repaired atomic.Uint64
	sleep    func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex      // guards all below
	claimed map[string]bool // rows that a caller of this process is at
	swept   int64           // when Sweep was called last; 0: never
}

var _ reservation.Store = (*Store)(nil)

// New returns a store.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg, penalty: cfg.Penalty.Milliseconds(), claimed: map[string]bool{}, sleep: sleep}
	s.Verbs.Doer = s
	return s
}

// pause waits before the try of that number, of which the first, 0, comes at once; an error ends the call. It
// waits for some time between half of its longest and that, so that those who met do not meet again.
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

// record is what is known of a name.
type record struct {
	By   string `json:"by"`             // who wrote it, and when: no two values are the same
	Next int64  `json:"next,omitempty"` // nobody gets it before

	// As a host.
	Added   bool   `json:"added,omitempty"`
	Due     int64  `json:"due,omitempty"`
	Row     int64  `json:"row,omitempty"` // the time of its queue row; rows of other times are void
	Alias   string `json:"alias,omitempty"`
	Bound   string `json:"bound,omitempty"`
	BoundTo int64  `json:"bound_to,omitempty"`

	// As a group.
	Token  uint64   `json:"token,omitempty"` // the last one given for this name
	Busy   string   `json:"busy,omitempty"`  // the host that is reserved, under Token
	Holder string   `json:"holder,omitempty"`
	End    int64    `json:"end,omitempty"`
	Covers []string `json:"covers,omitempty"` // keys with references to this reservation
	Was    string   `json:"was,omitempty"`    // the host that was reserved under Token, once that is over
	Then   int64    `json:"then,omitempty"`   // and the time before which nobody gets what it covered
	Waits  []ref    `json:"waits,omitempty"`  // reservations of other groups that cover this name
	Hosts  []string `json:"hosts,omitempty"`  // of the alias, sorted

	// Of a change of an alias.
	Frozen  uint64 `json:"frozen,omitempty"` // the change that it is part of
	Applied bool   `json:"applied,omitempty"`
	Change  uint64 `json:"change,omitempty"` // the last one that is over
}

// ref names a reservation: the record that is busy, and under which token.
type ref struct {
	Key   string `json:"key"`
	Token uint64 `json:"token"`
}

// cell is a record as it was read.
type cell struct {
	key string
	raw []byte
	record
}

func hostKey(host string) string   { return "h" + host }
func aliasKey(alias string) string { return "a" + alias }
func (c *cell) name() string       { return c.key[1:] }

func rowKey(at int64, host string) string { return fmt.Sprintf("q%015d%s", at, host) }

func (s *Store) read(ctx context.Context, key string) (*cell, error) {
	raw, err := s.cfg.KV.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reservations: get %s: %w", key, err)
	}
	return parse(key, raw)
}

func parse(key string, raw []byte) (*cell, error) {
	c := &cell{key: key, raw: raw}
	if raw != nil {
		if err := json.Unmarshal(raw, &c.record); err != nil {
			return nil, fmt.Errorf("reservations: %s is no record: %w", key, err)
		}
	}
	return c, nil
}

// write puts a record in place of what was read, and tells if nobody was faster. Then it has the host's row follow, which
// stood at the time before; the record is written, too, where ok comes with an error.
func (s *Store) write(ctx context.Context, c *cell, before int64) (ok bool, err error) {
	c.By = fmt.Sprintf("%s.%d", s.cfg.ID, s.writes.Add(1))
	moves := c.Added && c.Row != before
	mover, can := s.cfg.KV.(Mover)
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

// swap puts a value into the store, and tells if nobody was faster. What ended in an error may have happened: a value is
// known by who wrote it.
func (s *Store) swap(ctx context.Context, key string, to any, swap func(raw []byte) (bool, error)) (ok bool, raw []byte, err error) {
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

// update changes a record, and the row that it names, until nobody is faster; f says if there is anything to change.
func (s *Store) update(ctx context.Context, key string, f func(*record) bool) (*cell, error) {
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

// queue puts a host's row where its record says, and takes away the one before.
func (s *Store) queue(ctx context.Context, c *cell, before int64) error {
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

// requeue has a host be looked at, at a time. Who was faster has seen to it.
func (s *Store) requeue(ctx context.Context, c *cell, at int64) error {
	before := c.Row
	c.Row = at
	_, err := s.write(ctx, c, before)
	return err
}

// group reads the record of the group that h stands in; it may be h.
func (s *Store) group(ctx context.Context, h *cell, now int64) (*cell, error) {
	if h.Alias != "" {
		return s.read(ctx, aliasKey(h.Alias))
	}
	if h.Bound == "" || h.BoundTo <= now || h.Bound == h.name() {
		return h, nil
	}
	g, err := s.read(ctx, hostKey(h.Bound))
	if err != nil || g.Alias == "" {
		return g, err
	}
	return s.read(ctx, aliasKey(g.Alias))
}

// ended is a reservation that is over, of which those that it covered are to know.
type ended struct {
	over   ref
	host   string // that it was for
	covers []string
	next   int64 // nobody gets what it covered before
}

// settle takes out of a record, as read, what is over by now: a lost lease, which it returns for tell, and references to
// reservations that have ended.
func (s *Store) settle(ctx context.Context, c *cell, now int64) (lost ended, err error) {
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
			c.told(c.key, host, next)
		}
	}
	c.Waits = waits
	return lost, nil
}

// after is the host of a reservation that is over, and when what it covered may be had again.
func (c *cell) after(token uint64, penalty int64) (host string, next int64) {
	switch {
	case c.Token != token: // others came after it
		return "", c.Next
	case c.Busy != "":
		return c.Busy, c.End + penalty
	}
	return c.Was, c.Then
}

// told has the record of a key know that a reservation of host, which covered it, is over.
func (r *record) told(key, host string, next int64) {
	r.Next = max(r.Next, next)
	if key == hostKey(host) {
		r.Due = next
	}
}

// end ends the reservation of a record as read; nobody gets the name before next.
func (s *Store) end(c *cell, next int64) ended {
	over := ended{over: ref{c.key, c.Token}, host: c.Busy, covers: c.Covers, next: next}
	c.Was, c.Then = c.Busy, next
	c.told(c.key, c.Busy, next)
	c.Busy, c.Holder, c.Covers = "", "", nil
	return over
}

// tell has those that a reservation covered know that it ended.
func (s *Store) tell(ctx context.Context, e ended) error {
	for _, key := range e.covers {
		if _, err := s.update(ctx, key, func(r *record) bool {
			kept := slices.DeleteFunc(slices.Clone(r.Waits), func(w ref) bool { return w == e.over })
			if len(kept) == len(r.Waits) {
				return false
			}
			r.Waits = kept
			r.told(key, e.host, e.next)
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

// free tells if nobody has a settled record, else until when somebody does, and who.
func (s *Store) free(ctx context.Context, c *cell) (until int64, holder string, err error) {
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
