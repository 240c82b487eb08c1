// Package reservation says who may work on which host, among many crawlers that share a store.
//
// A crawler reserves a host, works on it while its lease lasts, extends the lease as long as it needs, and releases
// the host with the moment at which it may be asked next. Hosts that must share one pace form a group: by an
// operator's alias, or by a binding (usually to the IP that they share). What every Store promises:
//
//   - At most one live reservation covers a group, and so any host of it.
//   - A token names a reservation. Tokens of a group only grow. A stale one changes nothing and is answered with
//     ErrStale; it is stale from its lease's end on, also while nobody else has the group.
//   - The moment at which a group may be asked next outlives leases, an empty queue and deletion. A lost lease allows
//     the group again at its end plus the penalty, at most one janitor period late.
//   - No host that was added is lost, whatever crashes between whichever steps.
//   - The store's clock decides, never the caller's.
//
// A group's name is its alias, else what its host is bound to, else the host itself. A reservation covers its host's
// own name too, so that a host which changes groups is never with two crawlers.
//
// SetAlias holds at once: what is busy goes on under its token, and until it ends nobody else gets a host of the
// former or the new set; the longest next-allowed time among them holds for all.
package reservation

import (
	"context"
	"errors"
	"time"
)

// What a Store answers, to be told apart with errors.Is. Any other error means that the store could not be asked, and
// that what was asked for may have happened or not.
var (
	ErrStale   = errors.New("stale token: this reservation is over, or never was")
	ErrNotNow  = errors.New("not now: nothing is due, or the host may not be asked yet, or is with somebody")
	ErrUnknown = errors.New("unknown: no such host was added, no such alias set")
	ErrInvalid = errors.New("invalid")

	// ErrBroken is in errors of calls for a host whose record somebody else has spoilt. No other host is
	// concerned.
	ErrBroken = errors.New("broken record")

	// ErrFull is in errors of a store that has no room for what it was asked. Nothing of that was done; ask
	// again later.
	ErrFull = errors.New("full")
)

// Reservation is the right to work on Host, and on the group that it stands in, until LeaseEnd.
type Reservation struct {
	Host     string
	Group    string
	Token    uint64
	LeaseEnd time.Time // by the store's clock
}

// Binding proposes the group of a host.
type Binding struct{ Host, Group string }

// Stats counts. Waiting, Ready and Busy make up Hosts: Busy are those reserved, Ready those that Explain calls so.
type Stats struct {
	Hosts, Waiting, Ready, Busy uint64
	Aliases                     uint64
	Repaired                    uint64 // queue entries that a janitor had to put back, ever
}

// State is what Explain finds a host in.
type State string

// The states of a host. Unknown is one that was not added, Waiting one whose time has not come or whose group
// is with somebody, on another of its hosts.
const (
	Unknown State = "unknown"
	Waiting State = "waiting"
	Ready   State = "ready"
	Busy    State = "busy"
)

// Explanation says why a host is not served: until when (zero: no time is known) and by which rule, in words.
type Explanation struct {
	Host, Group string
	State       State
	Until       time.Time
	Rule        string
	Holder      string // who has the group, where anybody has
}

// Store is where reservations are kept. It is safe for concurrent use. Hosts are given as people write them and
// answered in normal form (Host). A zero time, or one that has passed, means now.
type Store interface {
	// AddHost makes a host known, to be served from earliest on; added is false if it was known, then it is served at
	// the earlier of both times. Neither makes it served sooner than its group may be asked.
	AddHost(ctx context.Context, host string, earliest time.Time) (added bool, err error)
	// DeleteHost takes a host out. It wants the token of a busy host, which ends its reservation, and 0 for an idle one.
	// The host may not be asked before next if it comes back, and neither may its group.
	DeleteHost(ctx context.Context, host string, token uint64, next time.Time) error
	// TryReserve reserves one host, if it is due and its group free: else ErrNotNow.
	TryReserve(ctx context.Context, host string, lease time.Duration, holder string) (Reservation, error)
	// ExtendHost has the lease end that long from now.
	ExtendHost(ctx context.Context, host string, token uint64, lease time.Duration) (end time.Time, err error)
	// ReleaseHost ends a reservation. Nobody gets the group before next.
	ReleaseHost(ctx context.Context, host string, token uint64, next time.Time) error
	// Do makes calls of the five above, many at once. They are independent: each has an answer of its own.
	Do(ctx context.Context, calls []Call) []Answer

	// ReserveNextHost reserves up to max hosts that are due (0: one), longest due first, each of another group.
	// It does not wait: where nothing is due it answers ErrNotNow.
	ReserveNextHost(ctx context.Context, lease time.Duration, max int, holder string) ([]Reservation, error)
	// SetAlias has the alias stand for just these hosts, added or not; none dissolves it. A host that is in another
	// alias moves.
	SetAlias(ctx context.Context, alias string, hosts []string) error
	// JoinAlias adds hosts, added or not, to an alias in one step: callers that add to it at once do not
	// leave each other's hosts out. A host that is in another alias stays there. aliases are those that the
	// hosts are in now, in order.
	JoinAlias(ctx context.Context, alias string, hosts []string) (aliases []string, err error)
	// GetAlias finds an alias by its name or by one of its hosts. Hosts are sorted.
	GetAlias(ctx context.Context, name string) (alias string, hosts []string, err error)
	// Bind answers the group in force of each host: its alias, else what it was bound to before while that is used, else
	// what is proposed. A binding is used while it is bound again within ttl, or its host is reserved.
	Bind(ctx context.Context, bindings []Binding, ttl time.Duration) (groups []string, err error)

	Stats(ctx context.Context) (Stats, error)
	Explain(ctx context.Context, host string) (Explanation, error)

	// Sweep is one pass of the janitor: ends lost leases, puts back what a crash took out of the queues.
	Sweep(ctx context.Context) error
}
