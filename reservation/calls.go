package reservation

import (
	"context"
	"time"
)

// Verb is what a Call asks for.
type Verb uint8

// The verbs: each is the method of Store of that name.
const (
	AddHost Verb = iota + 1
	DeleteHost
	TryReserve
	ExtendHost
	ReleaseHost
)

// Call is one of several things asked for at once.
type Call struct {
	Verb   Verb
	Host   string
	Token  uint64        // DeleteHost, ExtendHost, ReleaseHost
	Lease  time.Duration // TryReserve, ExtendHost
	Time   time.Time     // earliest of AddHost, next of DeleteHost and ReleaseHost; by the store's clock
	After  time.Duration // if above 0, next of DeleteHost and ReleaseHost: so long after the store does the call, whatever Time says
	Holder string        // TryReserve
}

// Answer is what came of a Call.
type Answer struct {
	Err         error
	Added       bool        // AddHost
	Reservation Reservation // TryReserve
	LeaseEnd    time.Time   // ExtendHost
}

// Doer does calls.
type Doer interface {
	Do(ctx context.Context, calls []Call) []Answer
}

// Verbs gives a Doer the methods of Store that are calls.
type Verbs struct{ Doer }

func (v Verbs) one(ctx context.Context, c Call) Answer { return v.Doer.Do(ctx, []Call{c})[0] }

// AddHost is Store's.
func (v Verbs) AddHost(ctx context.Context, host string, earliest time.Time) (bool, error) {
	a := v.one(ctx, Call{Verb: AddHost, Host: host, Time: earliest})
	return a.Added, a.Err
}

// DeleteHost is Store's.
func (v Verbs) DeleteHost(ctx context.Context, host string, token uint64, next time.Time) error {
	return v.one(ctx, Call{Verb: DeleteHost, Host: host, Token: token, Time: next}).Err
}

// TryReserve is Store's.
func (v Verbs) TryReserve(ctx context.Context, host string, lease time.Duration, holder string) (Reservation, error) {
	a := v.one(ctx, Call{Verb: TryReserve, Host: host, Lease: lease, Holder: holder})
	return a.Reservation, a.Err
}

// ExtendHost is Store's.
func (v Verbs) ExtendHost(ctx context.Context, host string, token uint64, lease time.Duration) (time.Time, error) {
	a := v.one(ctx, Call{Verb: ExtendHost, Host: host, Token: token, Lease: lease})
	return a.LeaseEnd, a.Err
}

// ReleaseHost is Store's.
func (v Verbs) ReleaseHost(ctx context.Context, host string, token uint64, next time.Time) error {
	return v.one(ctx, Call{Verb: ReleaseHost, Host: host, Token: token, Time: next}).Err
}
