package queuesched

import (
	"math"
	"time"

	"urlserver/docindex/internal/rounds"
	"urlserver/internal/container/timeheap"
)

// Package rounds says when a domain overruns its budget, and how long it waits then. Within its budget a
// domain takes turns as if there were no budgets: each of its queues has a turn.
//
// A costly page, whose shape brings only URLs of the same shape, counts as several pages, both of the
// domain and of the crawl. So the count of the crawl less that of a domain is that of the others.
//
// A crawl never stands still because of budgets: if all queues that it may serve are of domains
// that wait, the domain whose next round is nearest gives pages out of turn, one by one. That
// brings its round no nearer. An answer to the slots has no such page beside others, since these
// may be enough for the slots. After a costly page out of turn its queue rests, so that it gets one
// page in the time of several.

// overrun is a domain that has overrun its budget, or of which the slots have enough. Its queues are
// in rings of their own, so that it costs O(log n) to let all of them wait, or go.
type overrun struct {
	domain uint32    // 0: unused
	rings  [2]uint32 // by consumer
	queues [2]int    // in them
	rounds.Overrun
}

// overruns has the domains of a crawl that have overrun their budget, or of which the slots have
// enough.
type overruns struct {
	list     []overrun // by number, from 1 on
	unused   []uint32
	turns    [2]timeheap.Heap // those with queues in their ring and a round, by pages of the crawl at their turn
	waits    [2]timeheap.Heap // likewise those that wait, by pages of the crawl at their next round
	supplied timeheap.Heap    // those of which the slots have enough, by pages at their next round, or Never
	queues   [2]int           // in all the rings
}

// SetBudget sets how many pages a domain has in a round; 0: any number. With another budget than
// before, rounds begin anew.
func (d *Scheduler) SetBudget(pages uint32) {
	was := d.budget
	d.budget = pages
	if pages == was || pages > 0 && was == 0 { // restored rounds continue
		return
	}
	for id := uint32(1); int(id) < d.domains.list.Cap(); id++ {
		one := d.domains.at(id)
		if one.nameLen == 0 {
			continue // free
		}
		c := &d.crawls[one.crawl]
		if one.Begin(c.pages); one.own != 0 {
			o := &c.overruns.list[one.own]
			o.Round, o.Next = 0, 0
			d.orderOverrun(c, one.own)
		}
	}
}

// charge counts a page that is handed out to a consumer. Of the budget it counts as the given
// number of pages.
func (d *Scheduler) charge(q *queue, consumer Consumer, pages uint32, now int64) {
	c, one := &d.crawls[q.crawl], d.domains.at(q.domain)
	d.turns[consumer].charge(q.crawl, &c.pass[consumer], c.stride)
	waits := one.own != 0 && !c.beginOverrun(one)
	c.pages, c.pageAt = c.pages+uint64(pages), now
	one.Pages += uint64(pages)
	if waits {
		c.overruns.list[one.own].Next += uint64(pages)
		c.outOfTurn++
		d.rest(q, pages, now)
	} else {
		c.inTurn, c.outOfTurn = d.hosts.round, 0
		one.Used += pages
	}
	if !waits && one.Used >= d.budget && d.budget > 0 {
		d.endRound(q, now)
	}
	d.orderDomain(q.domain)
}

// rest makes a queue rest after a costly page that went out of turn, unless the last pages of the
// crawl all went out of turn: then no other domain has a page to hand out.
func (d *Scheduler) rest(q *queue, pages uint32, now int64) {
	c := &d.crawls[q.crawl]
	if all := c.domainsWithWork(); pages == 1 || uint64(c.outOfTurn) > all || all == 1 {
		return
	}
	gap := d.hosts.wantedGap(d.hosts.at(q.host))
	if gap == 0 {
		gap = d.hosts.slotGap
	}
	q.skipUntil = max(q.skipUntil, now) + int64(pages)*gap
	q.flags |= resting
}

// beginOverrun begins the next round of a domain that waits for it, if its time has come. It
// returns false if the domain still waits: a page of it then goes out of turn.
func (c *crawl) beginOverrun(one *domain) bool {
	o := &c.overruns.list[one.own]
	switch {
	case o.Next == 0:
		return true
	case !o.IsOver(c.pages):
		return false
	}
	one.Begin(c.pages)
	return true
}

// endRound ends the round of the domain of a queue, which has had its budget.
func (d *Scheduler) endRound(q *queue, now int64) {
	c, one := &d.crawls[q.crawl], d.domains.at(q.domain)
	round := uint32(0)
	if one.own != 0 {
		round = c.overruns.list[one.own].Round
	}
	stretch := round
	if faulty(FaultStretch) {
		stretch = 0
	}
	wait := one.End(c.pages, uint64(d.budget), c.domainsWithWork(), stretch)
	if wait == 0 || faulty(FaultBudget) {
		one.Begin(c.pages)
		if round > 0 {
			c.overruns.list[one.own].Round--
		}
		return
	}
	if one.own == 0 {
		one.own = c.newOverrun(q.domain)
	}
	o := &c.overruns.list[one.own]
	if o.Waits(c.pages, wait, now); faulty(FaultEarly) {
		o.Next -= o.Wait / 2
	}
}

func (c *crawl) newOverrun(domain uint32) (no uint32) {
	if c.overruns == nil {
		c.overruns = &overruns{list: make([]overrun, 1)}
	}
	all := c.overruns
	if n := len(all.unused); n > 0 {
		no, all.unused = all.unused[n-1], all.unused[:n-1]
	} else {
		no = uint32(len(all.list))
		all.list = append(all.list, overrun{})
	}
	all.list[no] = overrun{domain: domain}
	return no
}

// endOverrun removes the overrun of a domain that no longer overruns its budget and whose rings are
// empty. Then the domain's queues take turns with all others.
func (d *Scheduler) endOverrun(c *crawl, no uint32) {
	one := d.domains.at(c.overruns.list[no].domain)
	one.own = 0
	c.overruns.list[no] = overrun{}
	c.overruns.unused = append(c.overruns.unused, no)
}

// dropOverruns forgets the domains of a crawl without queues.
func (d *Scheduler) dropOverruns(c *crawl) {
	if c.overruns == nil {
		return
	}
	for i := range c.overruns.list {
		if id := c.overruns.list[i].domain; id != 0 {
			d.domains.free(id)
		}
	}
	c.overruns = nil
}

// orderDomain puts a domain into the heap for its next turn.
func (d *Scheduler) orderDomain(id uint32) {
	one := d.domains.at(id)
	c := &d.crawls[one.crawl]
	if one.own == 0 {
		if !d.enough(c, one) {
			return
		}
		one.own = c.newOverrun(id)
	}
	d.orderOverrun(c, one.own)
}

// orderOverrun puts a domain into the heap where it belongs: waits until its next round, then turns. Both
// are ordered by the crawl's count of pages. A domain with n queues has a turn, for one of them, each time
// the crawl's m other queues have had m/n pages, so each queue has as many turns as any other.
func (d *Scheduler) orderOverrun(c *crawl, no uint32) {
	all := c.overruns
	o := &all.list[no]
	for consumer := range o.rings {
		turns, waits := &all.turns[consumer], &all.waits[consumer]
		to, turn := turns, o.Next
		if o.Next > 0 {
			to = waits
		} else if n := o.queues[consumer]; n > 0 {
			turn = c.pages + uint64((c.rings[consumer].count-all.queues[consumer])/n)
		}
		switch {
		case o.queues[consumer] == 0:
			to = nil
		case Consumer(consumer) == SlotConsumer && d.enough(c, d.domains.at(o.domain)):
			if to = &all.supplied; o.Next <= c.pages {
				turn = Never
			}
		}
		for _, other := range []*timeheap.Heap{turns, waits, &all.supplied} {
			if other != to && (other != &all.supplied || Consumer(consumer) == SlotConsumer) {
				other.Remove(no)
			}
		}
		if to != nil {
			to.Set(no, time.Duration(turn))
		}
	}
}

// orderSupplied reorders the domains of which the slots have enough and whose wait for the next
// round has ended.
func (d *Scheduler) orderSupplied(c *crawl) {
	for c.overruns != nil {
		no, next, ok := c.overruns.supplied.Min()
		if !ok || uint64(next) > c.pages {
			return
		}
		d.orderOverrun(c, no)
	}
}

// firstSupplied returns the first queue of the domain whose turn is next among those of which the slots
// have enough; 0: there is none.
func (c *crawl) firstSupplied() uint32 {
	if c.overruns == nil {
		return 0
	}
	no, _, ok := c.overruns.supplied.Min()
	if !ok {
		return 0
	}
	return c.overruns.list[no].rings[SlotConsumer]
}

// ownRing returns the number in overruns of the domain whose ring a queue joins next; 0: the queue
// joins the ready ring of its crawl.
func (d *Scheduler) ownRing(q *queue) uint32 {
	one := d.domains.at(q.domain)
	if d.isPlain(&d.crawls[q.crawl], one) {
		return 0
	}
	return one.own
}

// isPlain reports whether the queues of a domain take turns with all others. A domain with empty
// rings that overruns no more, and of which the slots may have more, is like all others again.
func (d *Scheduler) isPlain(c *crawl, one *domain) bool {
	if one.own == 0 {
		return true
	}
	if o := &c.overruns.list[one.own]; o.Round > 0 || o.Next > 0 || o.queues != [2]int{} || d.enough(c, one) {
		return false
	}
	d.endOverrun(c, one.own)
	return true
}

// setAside moves a queue from the ready ring to the ring of its domain, if the domain has one. It
// reports whether the queue is in the ring of its domain then.
func (d *Scheduler) setAside(id uint32, consumer Consumer) bool {
	if d.domains.at(d.queues.At(id).domain).own == 0 {
		return false
	}
	d.unlink(id, consumer)
	d.insert(id, consumer, ready)
	return d.queues.At(id).link[consumer].level == own
}

// maxSetAside bounds how many queues one search sets aside. After that it takes the next queue,
// although the queue's domain has overrun its budget. Each queue is set aside once after it joined
// the ready ring.
const maxSetAside = 4096

// firstOverrun returns the first queue of the domain whose turn is next among those that overran,
// and the heap that the domain is in; 0: there is none. If due is true, it returns a queue only if
// the domain's turn has come. Otherwise domains that have a round go before those that wait.
func (c *crawl) firstOverrun(consumer Consumer, due bool) (id uint32, in *timeheap.Heap) {
	if c.overruns == nil {
		return 0, nil
	}
	turns, waits := &c.overruns.turns[consumer], &c.overruns.waits[consumer]
	no, turn, ok := turns.Min()
	in = turns
	first, next, waiting := waits.Min()
	isOver := waiting && uint64(next) <= c.pages
	if !ok && (isOver || !due) || isOver && next < turn {
		no, turn, ok, in = first, next, waiting, waits
	}
	if !ok || due && uint64(turn) > c.pages {
		return 0, nil
	}
	return c.overruns.list[no].rings[consumer], in
}

// Overrun is the state of a domain that has overrun its budget, as EachOverrun of an earlier Scheduler gave it.
type Overrun struct {
	Crawl, Domain string
	Round         uint32
	Left, Wait    uint64 // pages of the crawl before its next round, now and when it overran
	Waited        int64  // how long it had waited at the crawl's last page, ms
}

// EachOverrun visits all domains that have overrun their budgets.
func (d *Scheduler) EachOverrun(visit func(Overrun)) {
	for _, c := range d.crawlNo {
		one := &d.crawls[c]
		if one.overruns == nil {
			continue
		}
		for _, o := range one.overruns.list {
			if o.domain == 0 || o.Round == 0 && o.Next <= one.pages {
				continue
			}
			visit(Overrun{Crawl: one.name, Domain: d.domains.name(d.domains.at(o.domain)), Round: o.Round,
				Left: max(o.Next, one.pages) - one.pages, Wait: o.Wait, Waited: o.Waited(one.pages, one.pageAt)})
		}
	}
}

// RestoreOverrun restores the state of a domain, if its crawl has a queue and the domain has not
// overrun its budget since.
func (d *Scheduler) RestoreOverrun(as Overrun, now int64) {
	no, ok := d.crawlNo[as.Crawl]
	if !ok || as.Domain == "" || len(as.Domain) > math.MaxUint16 {
		return
	}
	c, id := &d.crawls[no], d.openDomain(no, as.Domain)
	one := d.domains.at(id)
	if one.own != 0 {
		return
	}
	one.own = c.newOverrun(id)
	o := &c.overruns.list[one.own]
	o.Round, o.Wait, o.Since, c.pageAt = as.Round, max(1, as.Wait), now-as.Waited, now
	if as.Left > 0 {
		o.Next = c.pages + min(as.Left, o.Wait)
		return
	}
	one.Begin(c.pages)
}

// Budget is the state of a domain of a crawl and its budget.
type Budget struct {
	Domain string
	Round  uint32 // from 1 on
	Left   uint64 // pages that the crawl hands out before the next round; 0: it is within its budget
	Next   int64  // ms; when that will be, at the pace since it overran; Never: not known
}

// BudgetOf returns the Budget of the domain of a queue. It costs O(1).
func (d *Scheduler) BudgetOf(id uint32, now int64) Budget {
	q := d.queues.At(id)
	c, one := &d.crawls[q.crawl], d.domains.at(q.domain)
	b := Budget{Domain: d.domains.name(one), Round: 1}
	if one.own == 0 {
		return b
	}
	o := &c.overruns.list[one.own]
	if b.Round = 1 + o.Round; o.Next <= c.pages {
		return b
	}
	b.Left, b.Next = o.Next-c.pages, Never
	if had := o.Wait - b.Left; had > 0 {
		b.Next = now + int64(float64(now-o.Since)*float64(b.Left)/float64(had))
	}
	return b
}
