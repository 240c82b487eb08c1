package urlserver

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"urlserver/reservation"
	"urlserver/urlserver/engine"
	"urlserver/urlserver/explain"
)

// Reserver gets leases on groups from the reservation that daemons share.
type Reserver struct {
	Store  reservation.Store
	Lease  time.Duration
	Holder string // this daemon's name, to be shown
	Log    zerolog.Logger

	now            func() time.Time   // nil: time.Now
	reporter       string             // the name under which document counts are reported; "": none are
	formerReporter string             // the name before that, whose counts are to be withdrawn; "": none
	owed           []release          // releases that the store has not answered; they are sent again
	added          added              // hosts that this daemon made known to the store
	calls          []reservation.Call // a buffer
	ends           bool               // the daemon ends: errors of the store are no longer logged

	refusal string  // the last refusal to change an alias that was logged
	broken  limiter // of broken records that are logged

	mu  sync.Mutex // guards all below
	err string     // of the last call; "": it went well
}

func (r *Reserver) lease() time.Duration {
	if r == nil {
		return 0
	}
	return r.Lease
}

// counts reports whether the store counts held documents.
func (r *Reserver) counts() bool {
	if r == nil {
		return false
	}
	_, counts := r.Store.(reservation.Counter)
	return counts
}

// adds reports whether this daemon adds groups to the store and deletes them. A store that counts
// documents knows a group while documents of it are reported. A slice of a cap has no documents.
func (r *Reserver) adds(slice bool) bool { return slice || !r.counts() }

// explain adds who has the lease of a host's group if this daemon lacks it, or that the reservation
// does not tell the host's group.
func (r *Reserver) explain(ctx context.Context, x *engine.Explanation) {
	switch {
	case r == nil:
	case x.Lease != "":
		x.Reasons = append(x.Reasons, r.leaseReason(ctx, x.Lease))
	case x.Queued > 0 && !x.Addr.IsValid():
		if text := r.failure(); text != "" {
			x.Reasons = append(x.Reasons, explain.Reason{Kind: explain.GroupUnknown, By: text})
		}
	}
}

// leaseReason returns what the reservation knows of the lease of a host's group.
func (r *Reserver) leaseReason(ctx context.Context, host string) explain.Reason {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	x, err := r.Store.Explain(ctx, host)
	until := []any{x.Until.UTC().Format(time.RFC3339)}
	switch {
	case err != nil:
		return explain.Reason{Kind: explain.LeaseSilent, By: err.Error()}
	case x.Holder != "":
		return explain.Reason{Kind: explain.LeaseHeld, By: x.Holder, Args: until}
	case x.State == reservation.Waiting:
		return explain.Reason{Kind: explain.LeaseWaits, By: x.Rule, Args: until}
	}
	return explain.Reason{Kind: explain.LeaseState, Args: []any{x.State}}
}

const explainTimeout = 2 * time.Second

func (r *Reserver) clock() time.Time {
	if r.now != nil {
		return r.now()
	}
	return time.Now()
}

// reserve answers the engine's lease requests until the owner has gone, and then releases all leases.
func (d *Daemon) reserve(ctx context.Context) {
	r := d.parts.Reserver
	if r == nil {
		return
	}
	var last *engine.LeaseBatch
	taken := new(bool) // whether the engine has the answers to the last; read once the owner has gone
	for {
		select {
		case c := <-d.leaseBatches:
			late, cancel := outlast(ctx, answerWait)
			r.do(late, c)
			cancel()
			d.clientLeases.freed(c.Releases)
			is := new(bool)
			last, taken = c, is
			d.post(func(e *engine.Engine) {
				e.LeasesAnswered(c)
				*is = true
			})
		case <-d.done:
			if last != nil && !*taken {
				r.undo(last)
			}
			d.surrender(context.WithoutCancel(ctx))
			return
		}
	}
}

// answerWait is how long a daemon that ends waits for answers under way. If it cancelled a call, it
// would not know whether the store has leased the groups.
const answerWait = 2 * time.Second

// outlast returns a context that is canceled a while after its parent.
func outlast(parent context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { time.AfterFunc(by, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}

// undo releases the leases of a batch whose answers the engine has not taken.
func (r *Reserver) undo(c *engine.LeaseBatch) {
	for _, t := range c.Acquires {
		if t.Answer == engine.Granted {
			r.owe(engine.Release{Host: t.Host, Token: t.Token, Delete: true, Slice: t.Slice})
		}
	}
}

// surrender releases all leases, and deletes the hosts that this daemon made known to the store.
func (d *Daemon) surrender(ctx context.Context) {
	r := d.parts.Reserver
	select {
	case c := <-d.leaseBatches:
		r.owe(c.Releases...)
	default:
	}
	r.surrender(ctx, d.engine.ReleaseAll())
}

func (r *Reserver) surrender(ctx context.Context, releases []engine.Release) {
	r.ends = true
	ctx, cancel := context.WithTimeout(ctx, r.Lease/4)
	defer cancel()
	r.release(ctx, releases)
	r.withdrawHoldings(ctx)
	r.clean(ctx, r.clock())
	if n := len(r.owed); n > 0 {
		r.Log.Warn().Int("groups",
			n).Msg("reservation: leases could not be given back; other daemons get the groups when they end")
	}
}

// do carries out a LeaseBatch. It gives up calls that take longer than a quarter of a lease.
func (r *Reserver) do(ctx context.Context, c *engine.LeaseBatch) {
	r.reportHoldings(ctx, c)
	ctx, cancel := context.WithTimeout(ctx, r.Lease/4)
	defer cancel()
	r.extend(ctx, c.Extends) // first: no lease must be lost while a slow store does the rest
	r.release(ctx, c.Releases)
	r.bind(ctx, c.Binds)
	r.try(ctx, c.Acquires)
	for _, slice := range c.Forgets {
		r.mayKnow(slice, true)
	}
	r.clean(ctx, r.clock().Add(-addedLeases*r.Lease))
}

// release is a group to be released, and the moment from which it may be requested again, by this
// process' monotonic clock. The store gets the time that is left until then, so that no two wall
// clocks are compared.
type release struct {
	engine.Release
	next time.Time
}

// owe adds groups to the next release.
func (r *Reserver) owe(releases ...engine.Release) {
	now := r.clock()
	for _, rel := range releases {
		r.owed = append(r.owed, release{rel, now.Add(rel.Next)})
	}
}

// release releases groups, and those that the store has not answered before.
func (r *Reserver) release(ctx context.Context, releases []engine.Release) {
	r.owe(releases...)
	all, now := r.owed, r.clock()
	r.owed = nil
	calls := r.callsOf(len(all))
	for i, rel := range all {
		calls[i] = reservation.Call{Verb: reservation.ReleaseHost, Host: rel.Host, Token: rel.Token,
			After: rel.next.Sub(now)}
		if rel.Delete && r.adds(rel.Slice) { // otherwise the store knows it only while documents are held
			calls[i].Verb = reservation.DeleteHost
		}
	}
	for i, a := range r.call(ctx, calls) {
		switch {
		case a.Err != nil && !answered(a.Err):
			if len(r.owed) < maxOwed {
				r.owed = append(r.owed, all[i])
			}
		case calls[i].Verb == reservation.ReleaseHost || a.Err != nil:
			r.leave(all[i].Host, all[i].Slice)
		}
	}
}

const maxOwed = 100_000 // groups that are released later; the leases of others end by themselves

// answered reports whether the store did answer, if only by a refusal.
func answered(err error) bool {
	return errors.Is(err, reservation.ErrStale) || errors.Is(err, reservation.ErrNotNow) ||
		errors.Is(err, reservation.ErrUnknown) || errors.Is(err, reservation.ErrInvalid) ||
		errors.Is(err, reservation.ErrBroken)
}

// callsOf returns calls to be filled in, good until it is called again.
func (r *Reserver) callsOf(n int) []reservation.Call {
	r.calls = slices.Grow(r.calls[:0], n)[:n]
	return r.calls
}

func (r *Reserver) call(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	if len(calls) == 0 {
		return nil
	}
	answers := r.Store.Do(ctx, calls)
	for i := range answers {
		if err := answers[i].Err; errors.Is(err, reservation.ErrBroken) {
			skipped, ok := r.broken.allow(r.clock())
			if !ok {
				continue
			}
			r.Log.Error().Err(err).Int("skipped", skipped).Str("host",
				calls[i].Host).Msg("reservation: nothing of this host is sent until its record is repaired")
		}
	}
	for i := range answers {
		if err := answers[i].Err; err == nil || !answered(err) {
			r.note(ctx, err)
			break
		}
	}
	return answers
}

// ending reports whether a call was cut off because the daemon ends, which is no fault of the
// store.
func ending(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// note logs once that the store fails or answers again.
func (r *Reserver) note(ctx context.Context, err error) {
	if r.ends || ending(ctx) {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	was := r.err
	r.err = text
	r.mu.Unlock()
	switch {
	case was == "" && err != nil:
		r.Log.Warn().Err(err).Msg(
			"reservation does not answer; the daemon gets no new leases, and those that it has will end")
	case was != "" && err == nil:
		r.Log.Info().Msg("reservation answers again")
	}
}

// away reports whether the last call was not answered.
func (r *Reserver) away() bool { return r.failure() != "" }

// failure is why the last call was not answered; "": it was.
func (r *Reserver) failure() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// firstBinds is the number of hosts in the first call of Bind; each further call has twice as many
// as the one before. The hosts of one call fail together.
const firstBinds = 32

// bind binds hosts for half of the time that do has. The engine asks again for the hosts that a
// slow store has not bound by then.
func (r *Reserver) bind(ctx context.Context, binds []engine.Bind) {
	ctx, cancel := context.WithTimeout(ctx, r.Lease/8)
	defer cancel()
	sort.SliceStable(binds, func(i, j int) bool { return ttlOf(&binds[i]) < ttlOf(&binds[j]) })
	for most := firstBinds; len(binds) > 0; most *= 2 {
		some := binds[:sameTTL(binds[:min(most, len(binds))])]
		binds = binds[len(some):]
		r.join(ctx, some)
		answered := r.bindSome(ctx, some)
		r.cover(ctx, some)
		if !answered {
			return
		}
	}
}

// bindSome binds hosts with the same TTL in one call. Those that somebody has taken out of the alias of their
// rule join it, and are bound again. It returns whether the reservation has answered.
func (r *Reserver) bindSome(ctx context.Context, binds []engine.Bind) bool {
	proposals := make([]reservation.Binding, len(binds))
	for i, b := range binds {
		proposals[i] = reservation.Binding{Host: b.Host, Group: b.Proposed}
	}
	bound, err := r.Store.Bind(ctx, proposals, ttlOf(&binds[0]))
	r.note(ctx, err)
	if err != nil {
		return false
	}
	var at []int
	var out []engine.Bind
	for i := range binds {
		switch b := &binds[i]; {
		case b.Alias == "" || reservation.CheckAliasName(bound[i].Group) == nil:
			b.Group, b.Left = bound[i].Group, bound[i].Left
		case !b.Joins:
			b.Joins = true
			at, out = append(at, i), append(out, *b)
		}
	}
	if len(out) == 0 {
		return true
	}
	r.join(ctx, out)
	answered := r.bindSome(ctx, out)
	for i, b := range out {
		binds[at[i]] = b
	}
	return answered
}

// cover sets Bind.Covered for the hosts in an alias, if the host's address is in the same alias. It binds
// the address for as long as the host: when the address leaves the alias, the store holds the hosts there
// back until then. A host without an answer counts as not bound.
func (r *Reserver) cover(ctx context.Context, binds []engine.Bind) {
	var of []*engine.Bind
	var addrs []reservation.Binding
	ttl := reservation.MinLease
	for i := range binds {
		if b := &binds[i]; reservation.CheckAliasName(b.Group) == nil {
			of, ttl = append(of, b), max(ttl, b.TTL, b.Left)
			addrs = append(addrs, reservation.Binding{Host: b.Addr.String(), Group: b.Addr.String()})
		}
	}
	if len(of) == 0 {
		return
	}
	bound, err := r.Store.Bind(ctx, addrs, min(ttl, reservation.MaxTTL))
	r.note(ctx, err)
	for i, b := range of {
		if err != nil {
			b.Group = ""
			continue
		}
		b.Covered = bound[i].Group == b.Group
		b.Left = min(b.Left, bound[i].Left)
	}
}

// ttlOf returns for how long a host is bound: for the least time that a store takes if the engine
// only asks which group is in force.
func ttlOf(b *engine.Bind) time.Duration {
	if b.Ask {
		return reservation.MinLease
	}
	return min(b.TTL, reservation.MaxTTL)
}

// sameTTL returns how many binds, from the first on, have the TTL of the first.
func sameTTL(binds []engine.Bind) (n int) {
	for n < len(binds) && ttlOf(&binds[n]) == ttlOf(&binds[0]) {
		n++
	}
	return n
}

// join adds hosts whose rule names a group to the alias of that name, for all daemons. A host that is in
// another alias stays there. It does so before they are bound: a binding from before a host joins would hold
// the host back (reservation.Bound). A host that is in no alias when it is bound counts as not answered.
func (r *Reserver) join(ctx context.Context, binds []engine.Bind) {
	join := map[string][]string{}
	for i := range binds {
		if b := &binds[i]; b.Joins {
			join[b.Alias] = append(join[b.Alias], b.Host)
		}
	}
	for name, hosts := range join {
		if _, err := r.Store.JoinAlias(ctx, name, hosts); err != nil && !ending(ctx) && r.refusal != err.Error() {
			r.refusal = err.Error()
			r.Log.Warn().Err(err).Str("group", name).Int("hosts", len(hosts)).Msg("reservation: hosts " +
				"could not be put into the alias that [[rules]] name; they wait, and the daemon tries again")
		}
	}
}

func (r *Reserver) extend(ctx context.Context, requests []engine.LeaseRequest) {
	calls := r.callsOf(len(requests))
	for i, c := range requests {
		calls[i] = reservation.Call{Verb: reservation.ExtendHost, Host: c.Host, Token: c.Token, Lease: r.Lease}
	}
	for i, a := range r.call(ctx, calls) {
		if requests[i].Answer = verdict(a.Err); requests[i].Answer == engine.Denied {
			r.leave(requests[i].Host, requests[i].Slice)
		}
	}
}

func verdict(err error) engine.LeaseAnswer {
	switch {
	case err == nil:
		return engine.Granted
	case answered(err):
		return engine.Denied
	}
	return engine.Unanswered
}

// try reserves groups, and makes those known to the store that were not.
func (r *Reserver) try(ctx context.Context, requests []engine.LeaseRequest) {
	all := make([]*engine.LeaseRequest, len(requests))
	for i := range requests {
		all[i] = &requests[i]
	}
	unknown := r.tryOnce(ctx, all)
	calls := r.callsOf(len(unknown))
	for i, c := range unknown {
		calls[i] = reservation.Call{Verb: reservation.AddHost, Host: c.Host}
	}
	var added []*engine.LeaseRequest
	for i, a := range r.call(ctx, calls) {
		switch {
		case a.Err != nil && !answered(a.Err):
			r.mayKnow(unknown[i].Host, unknown[i].Slice)
		case a.Err == nil && a.Added:
			added = append(added, unknown[i])
			r.leave(unknown[i].Host, unknown[i].Slice)
		}
	}
	r.tryOnce(ctx, added)
}

// tryOnce tries to reserve groups. It returns the requests for groups that the store does not know
// and that this daemon adds.
func (r *Reserver) tryOnce(ctx context.Context, requests []*engine.LeaseRequest) (unknown []*engine.LeaseRequest) {
	calls := r.callsOf(len(requests))
	for i, c := range requests {
		calls[i] = reservation.Call{Verb: reservation.TryReserve, Host: c.Host, Lease: r.Lease, Holder: r.Holder}
	}
	for i, a := range r.call(ctx, calls) {
		c := requests[i]
		c.Answer = verdict(a.Err)
		switch c.Answer {
		case engine.Unanswered:
			r.mayKnow(c.Host, c.Slice)
		case engine.Granted:
			c.Token, c.Group = a.Reservation.Token, a.Reservation.Group
			r.added.remove(c.Host)
		case engine.Denied:
			r.added.again(c.Host, r.clock())
			if c.Unknown = errors.Is(a.Err, reservation.ErrUnknown); c.Unknown && r.adds(c.Slice) {
				unknown = append(unknown, c)
			}
		}
	}
	return unknown
}
