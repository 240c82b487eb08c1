package redis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/rounds"
	"urlserver/internal/weburl"
)

// budgets counts the pages that this daemon hands out, by crawl and registered domain, and says
// which domains wait for their next round. Each daemon on one Redis counts its own: a daemon that
// hands out half of all pages keeps half of each domain's share. Package rounds has the rules.
//
// Queues of a domain that waits are in rings of the domain's own in Redis, for all daemons, so
// that a daemon finds other queues without looking at them. A daemon for which the domain does
// not wait serves them by their places, as if they were in the ring of all.
type budgets struct {
	mu     sync.Mutex // guards all below
	pages  uint32     // of a round; 0: any number
	crawls map[string]*crawlShare

	ahead   docindex.Ahead
	atSlots map[string]held // by DOC_ID; documents that this daemon's slots have

	domains int // known, of all crawls
	sweepAt int // domains known when those that need not be known are forgotten
}

// crawlShare counts the pages that this daemon has handed out of a crawl.
type crawlShare struct {
	pages     uint64 // a costly one counts as several
	pageAt    int64  // ms; when the last one was handed out
	outOfTurn uint64 // pages that went out of turn since the last one in turn
	withWork  uint64 // domains that had work when that was asked for last
	domains   map[string]*domainShare
}

type domainShare struct {
	rounds.Domain
	over    rounds.Overrun
	atSlots int // documents that this daemon's slots have
}

// crawlDomain is a registered domain of a crawl.
type crawlDomain struct{ crawl, domain string }

const sweepDomains = 1 << 16

// domainOfKey returns the registered domain of a queue with a key.
func domainOfKey(key string) string { return cmp.Or(weburl.Domain(key), key) } // "." has none

// ofLocked returns the counts of a crawl and of a domain of it. Without a budget it notes nothing.
func (b *budgets) ofLocked(crawl, name string) (*crawlShare, *domainShare) {
	if c := b.crawls[crawl]; c != nil && c.domains[name] != nil {
		return c, c.domains[name]
	}
	if b.pages == 0 {
		return &crawlShare{}, &domainShare{}
	}
	if b.domains >= max(b.sweepAt, sweepDomains) {
		b.sweepLocked()
	}
	return b.addLocked(crawl, name)
}

// addLocked adds a domain of a crawl, with its first round.
func (b *budgets) addLocked(crawl, name string) (*crawlShare, *domainShare) {
	c := b.crawls[crawl]
	if c == nil {
		c = &crawlShare{domains: map[string]*domainShare{}}
		if b.crawls == nil {
			b.crawls = map[string]*crawlShare{}
		}
		b.crawls[crawl] = c
	}
	d := &domainShare{}
	d.Begin(c.pages)
	c.domains[name] = d
	b.domains++
	return c, d
}

// sweepLocked forgets domains that have not had half of their budget, overrun none and are not at
// the slots, and crawls of which nothing is left then.
func (b *budgets) sweepLocked() {
	b.domains = 0
	for crawl, c := range b.crawls {
		for name, d := range c.domains {
			if d.over.Round == 0 && d.over.Next == 0 && d.Used < (b.pages+1)/2 && d.atSlots == 0 {
				delete(c.domains, name)
			}
		}
		if len(c.domains) == 0 {
			delete(b.crawls, crawl)
		}
		b.domains += len(c.domains)
	}
	b.sweepAt = 2 * b.domains
}

// forget forgets a crawl that was deleted.
func (b *budgets) forget(crawl string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.crawls[crawl]; c != nil {
		b.domains -= len(c.domains)
		delete(b.crawls, crawl)
	}
}

// left returns how many pages a domain has to wait for; 0: it does not wait.
func (c *crawlShare) left(d *domainShare) uint64 { return max(d.over.Next, c.pages) - c.pages }

// known notes a domain of which a URL is put.
func (b *budgets) known(of crawlDomain) {
	b.mu.Lock()
	b.ofLocked(of.crawl, of.domain)
	b.mu.Unlock()
}

func (b *budgets) set(pages uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.pages
	if b.pages = pages; pages == 0 {
		b.crawls, b.atSlots, b.domains, b.sweepAt = nil, nil, 0, 0
	}
	if pages == was || was == 0 { // restored rounds go on
		return
	}
	for _, c := range b.crawls {
		for _, d := range c.domains {
			d.Begin(c.pages)
			d.over.Round, d.over.Next = 0, 0
		}
	}
}

// charge counts a page that was handed out. It reports whether its domain has had its budget.
func (b *budgets) charge(crawl, domain string, pages uint32, now int64) (had bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == 0 {
		return false
	}
	c, d := b.ofLocked(crawl, domain)
	waits := d.over.Next > 0
	if waits && d.over.IsOver(c.pages) {
		d.Begin(c.pages)
		waits = false
	}
	c.pages, c.pageAt = c.pages+uint64(pages), now
	d.Pages += uint64(pages)
	if waits {
		d.over.Next += uint64(pages)
		c.outOfTurn++
		return false
	}
	c.outOfTurn = 0
	d.Used += pages
	return d.Used >= b.pages
}

// end ends the round of a domain that has had its budget, unless another call has ended it
// meanwhile. It reports whether the domain is to be set aside, and whether Redis is to be told.
// If Redis does not hear it, setAside tells it, or the time ends for which the domain is set
// aside.
func (b *budgets) end(crawl, domain string, withWork uint64, now int64) (aside, tell bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, d := b.ofLocked(crawl, domain)
	if b.pages == 0 || d.over.Next > 0 || d.Used < b.pages {
		return false, false
	}
	c.withWork = withWork
	was := d.over.Round > 0
	wait := d.End(c.pages, uint64(b.pages), withWork, d.over.Round)
	if wait > 0 {
		d.over.Waits(c.pages, wait, now)
	} else {
		d.Begin(c.pages)
		d.over.Round -= min(d.over.Round, 1)
	}
	aside = d.over.Round > 0
	return aside, aside != was
}

// round returns how a domain stands, without Waited, when it overran, and whether it stands otherwise
// than others.
func (b *budgets) round(crawl, domain string) (as queuesched.Overrun, since int64, overran bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.crawls[crawl]
	if c == nil || c.domains[domain] == nil {
		return as, 0, false
	}
	d := c.domains[domain]
	as = queuesched.Overrun{Crawl: crawl, Domain: domain, Round: d.over.Round, Left: c.left(d), Wait: d.over.Wait}
	return as, d.over.Since, as.Round > 0 || as.Left > 0
}

// rounds returns the domains that stand otherwise than others.
func (b *budgets) rounds() (all []docindex.Round) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for crawl, c := range b.crawls {
		for name, d := range c.domains {
			if left := c.left(d); d.over.Round > 0 || left > 0 {
				all = append(all, docindex.Round{Crawl: crawl, Domain: name, Round: d.over.Round, Left: left,
					Wait: d.over.Wait, Waited: d.over.Waited(c.pages, c.pageAt)})
			}
		}
	}
	return all
}

// restore restores the states that rounds returned, except those of domains that overran their budgets since.
func (b *budgets) restore(all []docindex.Round, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range all {
		var c *crawlShare
		var d *domainShare
		if c = b.crawls[r.Crawl]; c != nil {
			d = c.domains[r.Domain]
		}
		if d == nil {
			c, d = b.addLocked(r.Crawl, r.Domain)
		}
		if d.over.Round > 0 || d.over.Next > 0 {
			continue
		}
		d.over = rounds.Overrun{Round: r.Round, Wait: max(1, r.Wait), Since: now - r.Waited}
		c.pageAt = now
		if d.Begin(c.pages); r.Left > 0 {
			d.over.Next = c.pages + min(r.Left, d.over.Wait)
		}
	}
}

// plan decides how many documents the slots are given of each queue that may be served, limit in
// all.
func (s *Store) plan(list []entry, limit int, t *taking) (plan []entry) {
	plan, room := s.budgets.may(list, limit, t)
	s.turns.deal(plan, limit, func(e *entry) bool {
		of := e.crawlDomain()
		if e.most >= max(1, e.can) || room[of] <= 0 {
			return false
		}
		e.most++
		room[of]--
		return true
	})
	return slices.DeleteFunc(plan, func(e entry) bool { return e.most == 0 })
}

// may returns the queues of which the slots may be given something, and how much of each domain:
// none of a domain that waits, and of others no more than their budget. If nothing of a crawl is
// in turn in this answer, its domains that wait go on out of turn, page by page, the one whose
// round is nearest first. Of a domain of which this daemon's slots have enough, only other
// daemons are given something.
func (b *budgets) may(list []entry, limit int, t *taking) (plan []entry, room map[crawlDomain]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := map[string][]entry{} // by crawl
	room = make(map[crawlDomain]int, len(list))
	for i := range list {
		e := &list[i]
		c, d := b.ofLocked(e.crawl, e.domain)
		switch ahead := b.aheadOfLocked(c, d, t); {
		case c.left(d) > 0:
			waiting[e.crawl] = append(waiting[e.crawl], *e)
		case ahead > 0:
			t.inTurn[e.crawl] = true
			plan = append(plan, *e)
			room[e.crawlDomain()] = min(b.roomLocked(d), ahead)
		}
	}
	for crawl, queues := range waiting {
		if t.inTurn[crawl] || t.more[crawl] {
			continue
		}
		for _, e := range b.nearestLocked(queues, limit, t) {
			plan = append(plan, e)
			room[e.crawlDomain()]++
		}
	}
	return plan, room
}

// sort puts the queues of domains that wait behind all others, the one whose round is nearest
// first.
func (b *budgets) sort(list []entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortStableFunc(list, func(x, y entry) int {
		if x.begun || y.begun {
			return boolean(y.begun) - boolean(x.begun)
		}
		c, d := b.ofLocked(x.crawl, x.domain)
		c2, d2 := b.ofLocked(y.crawl, y.domain)
		return cmp.Compare(c.left(d), c2.left(d2))
	})
}

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}

// portion returns of how many of the first queues a client may be given something at once: not of
// one whose domain may have to wait then.
func (b *budgets) portion(list []entry) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	rooms := map[crawlDomain]int{}
	for i := range list {
		of := list[i].crawlDomain()
		c, d := b.ofLocked(of.crawl, of.domain)
		room, known := rooms[of]
		if !known {
			room = b.roomLocked(d)
		}
		if i > 0 && (room <= 0 || c.left(d) > 0) {
			return i
		}
		rooms[of] = room - list[i].can
	}
	return len(list)
}

// notSetAside returns the queues of domains that wait, or of which the slots have enough, that
// are in the ring of all, and one of each domain in a shard that stays aside and is so for less
// than half of the time.
func (b *budgets) notSetAside(list []entry) (some []entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	type ofShard struct {
		crawlDomain
		shard int
	}
	renewed := map[ofShard]bool{}
	for i := range list {
		e := &list[i]
		c, d := b.ofLocked(e.crawl, e.domain)
		in := ofShard{e.crawlDomain(), e.shard}
		switch {
		case e.aside == asideEnds && d.over.Round > 0 && !renewed[in]:
			renewed[in] = true
		case e.aside == notAside && (c.left(d) > 0 || b.roomAheadLocked(c, d) <= 0):
		default:
			continue
		}
		some = append(some, *e)
	}
	return some
}

// crawlsInTurn returns the crawls of queues whose domains do not wait, and of which the slots may
// have more.
func (b *budgets) crawlsInTurn(list []entry, t *taking) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	crawls := map[string]bool{}
	for i := range list {
		if c, d := b.ofLocked(list[i].crawl, list[i].domain); c.left(d) == 0 && b.aheadOfLocked(c, d, t) > 0 {
			crawls[list[i].crawl] = true
		}
	}
	return crawls
}

// roomLocked returns how many pages a domain has before its round ends, at least one.
func (b *budgets) roomLocked(d *domainShare) int {
	switch {
	case b.pages == 0:
		return takeBatch
	case d.over.Next > 0 || d.Used >= b.pages: // its next round begins
		return int(b.pages)
	}
	return int(b.pages - d.Used)
}

// waitingDomain is a domain that waits, with its queues that may be served.
type waitingDomain struct {
	c      *crawlShare
	d      *domainShare
	queues []entry
	had    uint64 // pages that are planned
	ahead  int    // pages that the slots may have more
}

// nearestLocked returns the queues of a crawl's domains that wait that go on out of turn, a page
// of each. It ends where it is the turn of a domain of which it knows no other queue, or where
// one waits no more.
func (b *budgets) nearestLocked(waiting []entry, limit int, t *taking) (plan []entry) {
	var all []*waitingDomain
	of := map[*domainShare]*waitingDomain{}
	for _, e := range waiting {
		c, d := b.ofLocked(e.crawl, e.domain)
		w := of[d]
		if w == nil {
			w = &waitingDomain{c: c, d: d, ahead: b.aheadOfLocked(c, d, t)}
			of[d], all = w, append(all, w)
		}
		w.queues = append(w.queues, e)
	}
	for had := uint64(0); len(plan) < limit; {
		var next *waitingDomain
		least, nearest := int64(math.MaxInt64), int64(math.MaxInt64)
		for _, w := range all {
			left := int64(w.c.left(w.d) + w.had - had)
			if nearest = min(nearest, left); w.ahead > 0 && left < least {
				next, least = w, left
			}
		}
		if nearest <= 0 || next == nil || len(next.queues) == 0 {
			break
		}
		e := next.queues[0]
		next.queues = next.queues[1:]
		next.ahead--
		next.had++
		had++
		work := next.c.withWork
		e.can, e.rests = 1, next.c.outOfTurn+had <= work && work != 1
		plan = append(plan, e)
	}
	return plan
}

// handed is a page that was handed out.
type handed struct {
	crawl, domain string
	pages         uint32 // that it counts as
}

// charge counts pages that were handed out, in their order. They are out, so an error is only
// logged: a round that could not be ended goes on until the domain's next page.
func (s *Store) charge(ctx context.Context, side int, pages []handed) {
	s.turns.charge(side, pages)
	var err error
	for _, p := range pages {
		if s.budgets.charge(p.crawl, p.domain, p.pages, s.nowMS()) && err == nil {
			err = s.endRound(ctx, p.crawl, p.domain)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn().Err(err).Msg("the round of a domain that has had its budget goes on")
	}
}

func (s *Store) endRound(ctx context.Context, crawl, domain string) error {
	n, err := s.domainsWithWork(ctx, crawl)
	if err != nil {
		return err
	}
	if aside, tell := s.budgets.end(crawl, domain, n, s.nowMS()); tell {
		_, err = s.everywhere(ctx, asideScript, flag(aside), crawl, domain)
	}
	return err
}

// setAside sets queues aside whose domains wait here, and are set aside no more, or not for long:
// another daemon has ended that, or they are from before there were budgets. It reports whether
// it has moved some.
func (s *Store) setAside(ctx context.Context, list []entry) (moved bool, err error) {
	var ops []op
	for _, e := range s.budgets.notSetAside(list) {
		ops = append(ops, op{e.shard, asideScript, []string{flag(true), e.crawl, e.domain, e.queue}})
		moved = moved || e.aside == notAside
	}
	if len(ops) > 0 {
		_, err = s.unbroken(ctx, ops)
	}
	return moved, err
}

// domainsWithWork returns how many registered domains of a crawl have documents scheduled or in
// transit. It counts a domain once whose queues are in several shards; of many domains it looks at
// some.
func (s *Store) domainsWithWork(ctx context.Context, crawl string) (uint64, error) {
	answers, err := s.unbroken(ctx, everyShard(domainsScript, crawl))
	if err != nil {
		return 0, err
	}
	sum, seen, all := uint64(0), map[string]uint64{}, true
	for _, a := range answers {
		parts := list(a.value)
		if len(parts) != 2 {
			continue
		}
		names := texts(parts[1])
		sum += uint64(number(parts[0]))
		all = all && int64(len(names)) == number(parts[0])
		for _, name := range names {
			seen[name]++
		}
	}
	if all || sum == 0 {
		return uint64(len(seen)), nil
	}
	return s.estimate(ctx, crawl, sum, seen)
}

// estimate returns how many domains there are, if the shards have sum of them together: it looks
// how many shards have each of some.
func (s *Store) estimate(ctx context.Context, crawl string, sum uint64, some map[string]uint64) (uint64, error) {
	args := []string{crawl}
	for name := range some {
		args = append(args, name)
	}
	answers, err := s.unbroken(ctx, everyShard(domainsScript, args...))
	if err != nil {
		return 0, err
	}
	once, entries := 0.0, 0.0 // domains, and their entries in shards, that were drawn
	in := make([]uint64, len(some))
	for _, a := range answers {
		for i, m := range list(a.value) {
			in[i] += uint64(number(m))
		}
	}
	for i, name := range args[1:] {
		n := float64(some[name])
		entries += n
		once += n / float64(max(1, in[i]))
	}
	return max(1, uint64(float64(sum)*once/entries)), nil
}
