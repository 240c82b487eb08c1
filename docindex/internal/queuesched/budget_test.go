package queuesched_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"urlserver/docindex/internal/queuesched"
	"urlserver/internal/budgetmodel"
)

// budgetRig drives a scheduler and the model of budgets side by side: one crawl, domains of some
// queues each, and slots that take so many URLs of each domain at most.
type budgetRig struct {
	t      *testing.T
	rnd    *rand.Rand
	d      *queuesched.Scheduler
	model  budgetmodel.Crawl
	ahead  queuesched.Ahead
	queues []*budgetQueue
	inTurn bool // a page of this answer went in turn
}

type budgetQueue struct {
	id                   uint32
	domain               string
	scheduled, at, taken int // at: URLs that the slots have; taken: that other daemons have
}

// TestBudgetTwin: a domain that waits is handed out only when all wait of which the slots have not
// enough, and the slots never have more than enough of one. Some pages count as several.
func TestBudgetTwin(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		r := &budgetRig{t: t, rnd: rnd, d: queuesched.New(func() {})}
		r.setAhead()
		r.model.SetBudget(1 + rnd.IntN(12))
		r.d.SetBudget(uint32(r.model.Budget))
		domains := 1 + rnd.IntN(6)
		for i := range 3 * domains {
			key := fmt.Appendf(nil, "h%d.d%d.example", i, min(rnd.IntN(domains), rnd.IntN(domains)))
			domain := string(key[len(key)-len("d0.example"):])
			q := &budgetQueue{id: r.d.Open(nil, key, key, 1000), domain: domain}
			r.model.Known(q.domain)
			r.queues = append(r.queues, q)
		}
		for step := 0; step < 300 && !t.Failed(); step++ {
			r.step()
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (r *budgetRig) setAhead() {
	r.ahead = queuesched.Ahead{Domain: uint32(r.rnd.IntN(8)), Waiting: uint32(r.rnd.IntN(4))}
	if most := r.ahead.Domain; most > 0 && (r.ahead.Waiting == 0 || r.ahead.Waiting > most) {
		r.ahead.Waiting = most // of a domain that waits they take no more
	}
	r.d.SetAhead(r.ahead)
}

func (r *budgetRig) step() {
	q := r.queues[r.rnd.IntN(len(r.queues))]
	switch n := r.rnd.IntN(100); {
	case n < 40:
		q.scheduled++
		r.d.Count(q.id, queuesched.Scheduled)
		r.d.SetDue(q.id, 0, 1000)
	case n < 65:
		r.take(1+r.rnd.IntN(6), queuesched.SlotConsumer)
	case n < 70:
		r.take(1, queuesched.RemoteConsumer)
	case n < 98:
		r.finish(q)
	default:
		r.setAhead()
	}
}

// finish ends a URL of a queue that somebody has.
func (r *budgetRig) finish(q *budgetQueue) {
	consumer, has := queuesched.SlotConsumer, &q.at
	if q.at == 0 {
		consumer, has = queuesched.RemoteConsumer, &q.taken
	}
	if *has > 0 {
		*has--
		r.d.Move(q.id, queuesched.InTransit, queuesched.Completed)
		r.d.CountBack(q.id, nil, consumer, 1000)
	}
}

func (r *budgetRig) take(n int, consumer queuesched.Consumer) {
	r.d.BeginRound(nil)
	r.inTurn = false
	defer r.d.EndRound(1000)
	for range n {
		ready := r.ready(consumer)
		id := r.d.NextForSlots(consumer)
		if id == 0 {
			if len(ready) > 0 && !r.inTurn {
				r.t.Errorf("nothing is handed out to %d, and there is something of %v", consumer, ready)
			}
			return
		}
		for _, q := range r.queues {
			if q.id == id {
				r.handOut(q, consumer, ready)
			}
		}
	}
}

func (r *budgetRig) handOut(q *budgetQueue, consumer queuesched.Consumer, ready map[string]bool) {
	if !ready[q.domain] {
		r.t.Errorf("%s is handed out to %d, of which the slots have enough: %+v, %+v", q.domain, consumer,
			r.ahead, *q)
	}
	pages := 1 + 7*(r.rnd.IntN(4)/3)
	active := map[string]bool{}
	for _, other := range r.queues {
		if other.scheduled+other.at+other.taken > 0 {
			active[other.domain] = true
		}
	}
	if _, left := r.model.Waits(q.domain); left == 0 {
		r.inTurn = true
	} else if r.inTurn {
		r.t.Errorf("%s goes out of turn beside others", q.domain)
	}
	wrong := r.model.Page(q.domain, pages, func() map[string]bool { return ready }, len(active))
	if wrong != "" && consumer == queuesched.SlotConsumer { // other daemons take the others' first
		r.t.Error(wrong)
	}
	due := int64(0)
	if q.scheduled--; q.scheduled == 0 {
		due = queuesched.Never
	}
	if consumer == queuesched.SlotConsumer {
		q.at++
	} else {
		q.taken++
	}
	r.d.Move(q.id, queuesched.Scheduled, queuesched.InTransit)
	r.d.CountOut(q.id, nil, consumer, uint32(pages), 1000)
	r.d.EndTurn(q.id, due, 1000)
}

// ready returns the domains of which a consumer may be given something. A host with URLs at one
// consumer is left to that.
func (r *budgetRig) ready(consumer queuesched.Consumer) map[string]bool {
	out := map[string]uint32{}
	for _, q := range r.queues {
		out[q.domain] += uint32(q.at)
	}
	ready := map[string]bool{}
	for _, q := range r.queues {
		most := r.ahead.Domain
		if _, pages := r.model.Waits(q.domain); pages > 0 {
			most = r.ahead.Waiting
		}
		slots := consumer == queuesched.SlotConsumer
		if q.scheduled > 0 && (slots && q.taken == 0 && (most == 0 || out[q.domain] < most) ||
			!slots && q.at == 0) {
			ready[q.domain] = true
		}
	}
	return ready
}

// TestBudgetToldDuringGap: of a domain's budget and the gap of a host, the one that ends last is told.
// A block is told in any case: the budget binds only as long as others have something due.
func TestBudgetToldDuringGap(t *testing.T) {
	for _, c := range []struct {
		name              string
		gap, blocked, due int64  // blocked: until when
		pages             uint32 // that each other domain has had
		done              bool   // the others have no more
		at                int64
		reason            queuesched.Reason
	}{
		{"no gap", 0, 0, 0, 4, false, 250_000, queuesched.OverBudget},
		{"no gap, and others have nothing left", 0, 0, 0, 4, true, 100_000, queuesched.Open},
		{"a short gap", 20_000, 0, 0, 4, false, 250_000, queuesched.OverBudget},
		{"a short gap, and others have had nothing", 20_000, 0, 0, 0, false, 120_000, queuesched.SlotGap},
		{"a short gap, and others have nothing left", 20_000, 0, 0, 4, true, 120_000, queuesched.SlotGap},
		{"a long gap", 200_000, 0, 0, 4, false, 300_000, queuesched.SlotGap},
		{"a block", 20_000, 200_000, 0, 4, false, 200_000, queuesched.HostBlocked},
		{"due later", 0, 0, 200_000, 4, false, 200_000, queuesched.NotYetDue},
		{"due later, and others have had nothing", 0, 0, 200_000, 0, false, 200_000, queuesched.NotYetDue},
	} {
		d := queuesched.New(func() {})
		d.SetBudget(10)
		d.SetSlotGap(c.gap)
		var ids []uint32
		for i := range 6 {
			key := fmt.Appendf(nil, "d%d.example", i)
			id := d.Open(nil, key, key, 0)
			d.Count(id, queuesched.Scheduled)
			d.SetDue(id, 0, 0)
			ids = append(ids, id)
		}
		d.CountOut(ids[0], nil, queuesched.RemoteConsumer, 10, 0)
		for _, id := range ids[1:] {
			if c.pages > 0 {
				d.CountOut(id, nil, queuesched.RemoteConsumer, c.pages, 100_000)
			}
			if c.done {
				d.Uncount(id, queuesched.Scheduled)
				d.SetDue(id, queuesched.Never, 100_000)
			}
		}
		d.CountBack(ids[0], nil, queuesched.RemoteConsumer, 100_000)
		d.SetDue(ids[0], c.due, 100_000)
		block := queuesched.Settings{Blocked: &c.blocked}
		if c.blocked > 0 && !d.SetHostOverride([]byte("d0.example"), block, 100_000) {
			t.Fatal("the host is not blocked")
		}
		if at, reason := d.NotBefore(ids[0], queuesched.SlotConsumer, 100_000); at != c.at || reason != c.reason {
			t.Errorf("%s: not before %d by %d; want %d by %d", c.name, at, reason, c.at, c.reason)
		}
	}
}

// TestPaceOutlivesARestart: the moment of a domain's next round goes by the pace since it overran,
// also in a scheduler that was told of that by an earlier one.
func TestPaceOutlivesARestart(t *testing.T) {
	open := func(d *queuesched.Scheduler) (ids []uint32) {
		d.SetBudget(10)
		for i := range 6 {
			key := fmt.Appendf(nil, "d%d.example", i)
			id := d.Open(nil, key, key, 0)
			for range 50 {
				d.Count(id, queuesched.Scheduled)
			}
			d.SetDue(id, 0, 0)
			ids = append(ids, id)
		}
		return ids
	}
	page := func(d *queuesched.Scheduler, id uint32, now int64) {
		d.CountOut(id, nil, queuesched.RemoteConsumer, 1, now)
	}
	next := func(d *queuesched.Scheduler, id uint32, now int64, left uint64, want int64) {
		t.Helper()
		if b := d.BudgetOf(id, now); b.Left != left || b.Next != want {
			t.Errorf("at %d: %+v; want the next round after %d pages, at %d", now, b, left, want)
		}
	}
	d := queuesched.New(func() {})
	ids := open(d)
	for range 10 {
		page(d, ids[0], 0)
	}
	for n := range 20 {
		page(d, ids[1+n%5], int64(1+n)*5_000)
	}
	next(d, ids[0], 100_000, 30, 250_000)
	for range 2 { // the second time without a page
		var as []queuesched.Overrun
		d.EachOverrun(func(o queuesched.Overrun) { as = append(as, o) })
		d = queuesched.New(func() {})
		ids = open(d)
		for _, o := range as {
			d.RestoreOverrun(o, 1_000_000)
		}
		next(d, ids[0], 1_000_000, 30, 1_150_000)
	}
	for n := range 5 {
		page(d, ids[1+n], 1_025_000)
	}
	next(d, ids[0], 1_025_000, 25, 1_150_000)
}
