// Package reservation decides which of many crawlers may work on which host. The crawlers share a
// store.
//
// A crawler leases a host, works on it while the lease lasts, extends the lease as often as it
// needs, and releases the host with the earliest time of the next request. Hosts that must share
// one pace form a group: by an operator's alias, or by a binding, usually to the IP address that
// they share. Every Store guarantees:
//
//   - At most one live lease covers a group, and so each host of it.
//   - A token names a lease. The tokens of a group only grow. A call with a stale token changes
//     nothing and returns ErrStale. A token becomes stale when its lease ends, even if nobody else
//     leases the group.
//   - The earliest time of the next request to a group survives leases, an empty queue and
//     deletion. After a lost lease it is the end of the lease plus the penalty. The group is
//     available again at most one period of the janitor later.
//   - No host that was added is lost, whenever a process crashes.
//   - The store's clock decides, never the caller's.
//
// The name of a group is its alias, else the group that its host is bound to, else the host itself.
// A lease also covers the name of its host, so two crawlers never have a host that changes groups.
//
// An answer of Bind holds for its ttl, whatever other callers do: until then the host stays in that
// group. A crawler asks a host only under an answer that holds, so no two crawlers ask a host in
// two groups at once. As each answer extends the binding, a crawler that may not be able to work in
// the group in force binds with a short ttl first. A host whose address changes comes to its new
// group when its binding has ended. So a crawler extends a binding only while its own look-up of
// the host still gives the bound address. If its look-up gives another one, the crawler stops
// asking the host before its answer ends, early enough for open requests to end. Until then, and
// after it, it calls Bind with MinLease now and then, which tells it the group in force and for how
// long, and extends nothing. While another crawler extends the binding, since it still finds the
// bound address, this one may go on there. When all crawlers find the new address, the old binding
// ends, and the first to propose the new one wins.
//
// A change of an alias may give a bound host another group: the host joins or leaves the alias, or the
// address that it is bound to does. A binding keeps the group that Bind has answered. While the alias
// gives the host another group, Bind extends nothing, and tells for how long nobody may ask the host in
// the new group: until the binding ends (Bound.Left). The same holds for all hosts that are bound to an
// address which is itself bound, if Bind has answered another group for the address. A lease does not
// extend such a binding, either. So a crawler that asks a host under the lease of an alias alone, since
// the host's address is in the alias, binds the address, too.
//
// SetAlias takes effect at once. Live leases stay valid under their tokens. Until they end, nobody
// else can lease a host of the former or the new set. The latest next-request time of these hosts
// applies to all of them. For a released lease this is the time that the release named; for a lost
// lease, its end plus the penalty. These times do not add up, however often the alias changes. After a
// lost lease the hosts are free from the later of that time and the first pass of the janitor after
// the last lease has ended, so at most one period of the janitor late, as without an alias.
package reservation

import (
	"context"
	"errors"
	"time"
)

// Errors of a Store, for errors.Is. After any other error the store could not be reached, and the
// call may have taken effect or not.
var (
	ErrStale   = errors.New("stale token: this reservation is over, or never was")
	ErrNotNow  = errors.New("not now: nothing is due, or the host may not be asked yet, or is with somebody")
	ErrUnknown = errors.New("unknown: no such host was added, no such alias set")
	ErrInvalid = errors.New("invalid")

	// ErrBroken means that another program has damaged the record of the host. Other hosts are not
	// affected.
	ErrBroken = errors.New("broken record")

	// ErrFull means that the store has no room for the call. The store has changed nothing; try
	// again later.
	ErrFull = errors.New("full")
)

// Reservation is the right to work on Host and on its Group until LeaseEnd.
type Reservation struct {
	Host     string
	Group    string
	Token    uint64
	LeaseEnd time.Time // by the store's clock
}

// Binding proposes a group for a host.
type Binding struct{ Host, Group string }

// Bound is the answer of Bind for a host.
type Bound struct {
	Group string // in force
	// Left is how long the binding holds at least; 0: the store does not tell. Below 0: an alias has
	// changed, and the answer does not extend the binding. For -Left after the answer other crawlers
	// may go by answers from before the change, and the caller must not use this one.
	Left time.Duration
}

// Stats are the counters of a store. Hosts is the sum of Waiting, Ready and Busy, which are the
// states that Explain reports.
type Stats struct {
	Hosts, Waiting, Ready, Busy uint64
	Aliases                     uint64
	Repaired                    uint64 // queue entries that a janitor has restored since the store was made
}

// State is the state of a host.
type State string

// The states of a host. Unknown: the host was not added. Waiting: its time has not come, or another
// host of its group has the lease. Ready: it can be leased. Busy: it is leased.
const (
	Unknown State = "unknown"
	Waiting State = "waiting"
	Ready   State = "ready"
	Busy    State = "busy"
)

// Explanation says why a host is not served: until when (zero: no known time) and by which rule.
type Explanation struct {
	Host, Group string
	State       State
	Until       time.Time
	Rule        string
	Holder      string // who has the lease of the group; "": nobody
}

// Store keeps leases. It is safe for concurrent use. A host argument may have any form that Host
// accepts; results have the normal form. A time argument that is zero or in the past means now.
type Store interface {
	// AddHost adds a host that is due at earliest. If the host was known, added is false and the
	// host becomes due at the earlier of both times. The next-request time of its group still
	// applies.
	AddHost(ctx context.Context, host string, earliest time.Time) (added bool, err error)
	// DeleteHost removes a host. For a leased host the caller passes its token, and the lease ends;
	// for any other host the token is 0. The host and its group may not be asked before next, even
	// if the host is added again.
	DeleteHost(ctx context.Context, host string, token uint64, next time.Time) error
	// TryReserve leases one host. It returns ErrNotNow if the host is not due or its group is
	// leased.
	TryReserve(ctx context.Context, host string, lease time.Duration, holder string) (Reservation, error)
	// ExtendHost makes the lease end that long from now.
	ExtendHost(ctx context.Context, host string, token uint64, lease time.Duration) (end time.Time, err error)
	// ReleaseHost ends a lease. Nobody can lease the group before next.
	ReleaseHost(ctx context.Context, host string, token uint64, next time.Time) error
	// Do executes a batch of the five calls above. The calls are independent, and each has its own
	// answer.
	Do(ctx context.Context, calls []Call) []Answer

	// ReserveNextHost leases up to max hosts that are due (0: one), each of another group, the
	// longest due first. It does not wait: if no host is due it returns ErrNotNow.
	ReserveNextHost(ctx context.Context, lease time.Duration, max int, holder string) ([]Reservation, error)
	// SetAlias sets the hosts of an alias, whether they were added or not. Without hosts it
	// dissolves the alias. A host of another alias leaves that alias.
	SetAlias(ctx context.Context, alias string, hosts []string) error
	// JoinAlias adds hosts to an alias in one step, whether they were added or not, so concurrent
	// callers do not lose each other's hosts. A host of another alias stays there. aliases has the
	// alias of each host after the call, in the order of hosts.
	JoinAlias(ctx context.Context, alias string, hosts []string) (aliases []string, err error)
	// GetAlias finds an alias by its name or by one of its hosts. The hosts are sorted.
	GetAlias(ctx context.Context, name string) (alias string, hosts []string, err error)
	// Bind returns the effective group of each host: its alias, else its former binding if that is
	// in use, else the proposed group. A binding is in use if it is bound again within ttl, or
	// while its host is leased. The answers are in the order of bindings.
	Bind(ctx context.Context, bindings []Binding, ttl time.Duration) ([]Bound, error)

	Stats(ctx context.Context) (Stats, error)
	Explain(ctx context.Context, host string) (Explanation, error)

	// Sweep is one pass of the janitor. It ends lost leases and restores queue entries that a crash
	// has removed.
	Sweep(ctx context.Context) error
}
