package reservation

import (
	"context"
	"time"
)

// Verb names the method of Store that a Call stands for.
type Verb uint8

// The verbs. Each is the method of Store with the same name.
const (
	AddHost Verb = iota + 1
	DeleteHost
	TryReserve
	ExtendHost
	ReleaseHost
)

// Call is one call of a batch. Which fields count depends on the verb.
type Call struct {
	Verb  Verb
	Host  string
	Token uint64        // DeleteHost, ExtendHost, ReleaseHost
	Lease time.Duration // TryReserve, ExtendHost
	// Time is the earliest argument of AddHost and the next argument of DeleteHost and ReleaseHost,
	// by the store's clock.
	Time time.Time
	// After, if above 0, replaces Time in DeleteHost and ReleaseHost: that long after the store
	// executes the call.
	After  time.Duration
	Holder string // TryReserve
}

// Answer is the result of one Call.
type Answer struct {
	Err         error
	Added       bool        // AddHost
	Reservation Reservation // TryReserve
	LeaseEnd    time.Time   // ExtendHost
}

// Batcher executes many independent calls at once, such as a Store.
type Batcher interface {
	Do(ctx context.Context, calls []Call) []Answer
}

// SingleCalls implements the methods of Store that have a Verb. Each method is a batch of one.
type SingleCalls struct{ Batcher }

func (v SingleCalls) one(ctx context.Context, c Call) Answer { return v.Batcher.Do(ctx, []Call{c})[0] }

// AddHost implements Store.
func (v SingleCalls) AddHost(ctx context.Context, host string, earliest time.Time) (bool, error) {
	a := v.one(ctx, Call{Verb: AddHost, Host: host, Time: earliest})
	return a.Added, a.Err
}

// DeleteHost implements Store.
func (v SingleCalls) DeleteHost(ctx context.Context, host string, token uint64, next time.Time) error {
	return v.one(ctx, Call{Verb: DeleteHost, Host: host, Token: token, Time: next}).Err
}

// TryReserve implements Store.
func (v SingleCalls) TryReserve(ctx context.Context, host string, lease time.Duration,
	holder string) (Reservation, error) {
	a := v.one(ctx, Call{Verb: TryReserve, Host: host, Lease: lease, Holder: holder})
	return a.Reservation, a.Err
}

// ExtendHost implements Store.
func (v SingleCalls) ExtendHost(ctx context.Context, host string, token uint64,
	lease time.Duration) (time.Time, error) {
	a := v.one(ctx, Call{Verb: ExtendHost, Host: host, Token: token, Lease: lease})
	return a.LeaseEnd, a.Err
}

// ReleaseHost implements Store.
func (v SingleCalls) ReleaseHost(ctx context.Context, host string, token uint64, next time.Time) error {
	return v.one(ctx, Call{Verb: ReleaseHost, Host: host, Token: token, Time: next}).Err
}
