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
// In Redis, the queues of a domain that waits are in rings of the domain's own, so that a daemon
// finds other queues without passing these. A daemon for which the domain does not wait serves them
// by their places, as if they were in the ring of all.
type budgets struct {
	mu     sync.Mutex // guards all below
	pages  uint32     // of a round; 0: any number
	crawls map[string]*crawlShare

	ahead   docindex.Ahead
	atSlots map[string]held // by DOC_ID; documents that this daemon's slots have

	domains int // known, of all crawls
	sweepAt int // number of known domains from which on sweepLocked runs
}

// crawlShare counts the pages that this daemon has handed out of a crawl.
type crawlShare struct {
	pages     uint64 // a costly one counts as several
	pageAt    int64  // ms; when the last one was handed out
	outOfTurn uint64 // pages that went out of turn since the last one in turn
	withWork  uint64 // domains with work, as Redis said last
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

// ofLocked returns the counts of a crawl and of a domain of it. Without a budget it records
// nothing, and returns empty counts.
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

// sweepLocked forgets the domains that have used less than half of their budget, have overrun none,
// and have no documents at the slots. Then it forgets crawls without domains.
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

// left returns how many pages of its crawl go out before a domain's next round; 0: the domain does
// not wait.
func (c *crawlShare) left(d *domainShare) uint64 { return max(d.over.Next, c.pages) - c.pages }

// known records a domain of which a URL is put.
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
	if pages == was || was == 0 { // restored rounds continue
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
// meanwhile. aside reports whether the domain is to be set aside, and tell whether that has changed,
// so that the caller must tell Redis. If Redis does not get the message, setAside repeats it, or the
// time passes for which the domain is set aside.
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

// round returns the state of a domain's round, without Waited, and when the domain overran its
// budget. overran reports whether the state differs from that of a new domain.
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

// rounds returns the domains whose state differs from that of a new domain.
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

// plan decides how many documents of each queue the slots get, limit in all.
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

// may returns the queues of which the slots may get documents, and how many of each domain: none of
// a domain that waits, and of others no more than their budget. If no domain of a crawl is in turn
// in this answer, its domains that wait give pages out of turn, page by page, the one whose round
// is nearest first. If this daemon's slots have enough of a domain, only other daemons get
// documents of it.
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

// portion returns how many of the first queues may give a client URLs in one portion. It stops
// before a queue whose domain may have to wait by then.
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

// notSetAside returns the queues for which setAside has to call Redis. These are queues in the ring
// of all whose domain waits, or of whose domain the slots have enough. Of each domain that stays
// set aside in a shard for less than half of the time, it returns one queue.
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
	ahead  int    // how many more pages the slots may have
}

// nearestLocked returns the queues of a crawl's waiting domains that give pages out of turn, a page
// each time. It stops when the next turn is that of a domain without a further queue, or of one
// that no longer waits.
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

// setAside sets aside the queues of domains that wait at this daemon and are not set aside, or only
// for a short time more: another daemon has ended it, or the queues are older than budgets. moved
// reports whether it has moved queues out of the ring of all.
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

// estimate returns about how many domains there are. sum is the sum of the shards' numbers of
// domains, and some a sample of domains: estimate asks in how many shards each of the sample is.
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
