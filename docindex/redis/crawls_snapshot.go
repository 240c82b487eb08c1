package redis

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
)

const (
	maxSnapshots = 16        // applications; one more drops the snapshot that was used least recently
	snapshotLife = time.Hour // after the last use; the scripts list changes for as long
)

// snapshot holds the pending counts of all crawls of one application at one spider, as the shards
// last sent them. A refresh reads only what has changed since.
type snapshot struct {
	turn   chan struct{} // a lock of what follows; it holds a value while unlocked
	prefix string        // of the crawls' names
	stats  *crawlstats.Stats
	crawls map[string]*crawlSnapshot // by name
	shards [shards]shardSnapshot

	asked time.Time // guarded by the store's mu
}

// shardSnapshot is how far a shard was read.
type shardSnapshot struct {
	run     string // the Redis process that answered; "": nothing was read
	version string
	names   map[string]string // of crawls, by number
}

// crawlSnapshot is one crawl of a snapshot.
type crawlSnapshot struct {
	stats *crawlstats.CrawlStats
	parts [shards]crawlPart
}

// crawlPart is one shard's part of a crawl.
type crawlPart struct {
	number     string // of the crawl in the shard; "": the shard has none of it
	till, said int64
	levels     map[string]uint64
}

// reportApp reports the pending documents of all crawls of one application at one spider.
func (s *Store) reportApp(ctx context.Context, id docindex.CrawlID, domains int,
	away *docindex.Outcomes) (v docindex.PendingReport, err error) {
	m := s.snapshotOf(nameOfCrawl(id))
	select {
	case <-m.turn:
		defer func() { m.turn <- struct{}{} }()
	case <-ctx.Done():
		return v, ctx.Err()
	}
	if err := m.refresh(ctx, s); err != nil {
		return v, err
	}
	missing, err := s.away(ctx, id, away)
	if err != nil {
		return v, err
	}
	return m.report(id, domains, missing), nil
}

func (s *Store) snapshotOf(prefix string) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.snapshots[prefix]
	if m == nil {
		if len(s.snapshots) >= maxSnapshots {
			s.dropOldestLocked()
		}
		m = &snapshot{turn: make(chan struct{}, 1), prefix: prefix, stats: crawlstats.New(),
			crawls: map[string]*crawlSnapshot{}}
		m.turn <- struct{}{}
		s.snapshots[prefix] = m
	}
	m.asked = time.Now()
	return m
}

// dropSnapshots deletes snapshots that were not used for snapshotLife.
func (s *Store) dropSnapshots(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for prefix, m := range s.snapshots {
		if now.Sub(m.asked) > snapshotLife {
			delete(s.snapshots, prefix)
		}
	}
}

// dropOldestLocked deletes the snapshot that was used least recently.
func (s *Store) dropOldestLocked() {
	var oldest *snapshot
	for _, m := range s.snapshots {
		if oldest == nil || m.asked.Before(oldest.asked) {
			oldest = m
		}
	}
	delete(s.snapshots, oldest.prefix)
}

// refresh reads what has changed in the shards since the last refresh.
func (m *snapshot) refresh(ctx context.Context, s *Store) error {
	ops := make([]op, shards)
	for i := range ops {
		ops[i] = op{i, changesScript, []string{m.shards[i].run, m.shards[i].version}}
	}
	answers, err := s.all(ctx, ops)
	if err != nil {
		return err
	}
	for _, a := range answers {
		parts := list(a.value)
		if len(parts) != 5 {
			return errStrange
		}
		now := shardSnapshot{run: text(parts[0]), version: text(parts[1]), names: m.shards[a.shard].names}
		if number(parts[2]) == 0 {
			if now.names, err = m.reread(ctx, s, a.shard); err != nil {
				m.shards[a.shard] = shardSnapshot{}
				return err
			}
		} else {
			m.change(a.shard, now.names, list(parts[3]), list(parts[4]))
		}
		m.shards[a.shard] = now
	}
	return nil
}

// change applies a shard's changes.
func (m *snapshot) change(shard int, names map[string]string, crawls, levels []rueidis.RedisMessage) {
	var gone []string
	for ; len(crawls) >= 4; crawls = crawls[4:] {
		no, name := text(crawls[0]), text(crawls[1])
		switch {
		case strings.HasPrefix(name, m.prefix):
			if names[no] == "" {
				names[strings.Clone(no)] = strings.Clone(name)
			}
			m.place(shard, name, no, number(crawls[2]), number(crawls[3]))
		case names[no] != "":
			gone = append(gone, no)
		}
	}
	for ; len(levels) >= 3; levels = levels[3:] {
		if c := m.crawls[names[text(levels[0])]]; c != nil && c.parts[shard].number == text(levels[0]) {
			m.set(c, shard, text(levels[1]), uint64(max(0, number(levels[2]))))
		}
	}
	for _, no := range gone {
		if name := names[no]; m.crawls[name] != nil && m.crawls[name].parts[shard].number == no {
			m.leave(shard, name)
		}
		delete(names, no)
	}
}

// reread reads all crawls of the application in a shard. It returns their names by number.
func (m *snapshot) reread(ctx context.Context, s *Store, shard int) (names map[string]string, err error) {
	names = map[string]string{}
	seen := map[string]bool{}
	for behind := ""; ; {
		a, err := s.one(ctx, shard, rowsScript, "1", "0", behind, m.prefix, decimal(pendingPage))
		if err != nil {
			return nil, err
		}
		page, err := pageOf(&a)
		if err != nil {
			return nil, err
		}
		for _, told := range page {
			var r row
			r.add(shard, list(told))
			behind = strings.Clone(nameIn(told))
			p := &r.parts[shard]
			names[strings.Clone(p.number)] = behind
			seen[behind] = true
			m.fill(shard, behind, p)
		}
		if len(page) < pendingPage {
			break
		}
	}
	for name := range m.crawls {
		if !seen[name] {
			m.leave(shard, name)
		}
	}
	return names, nil
}

// fill replaces a shard's part of a crawl.
func (m *snapshot) fill(shard int, name string, p *part) {
	m.leaveLevels(shard, name)
	c := m.place(shard, name, p.number, p.till, p.said)
	for pairs := p.levels; len(pairs) >= 2; pairs = pairs[2:] {
		m.set(c, shard, text(pairs[0]), uint64(max(0, number(pairs[1]))))
	}
}

// place records that a shard has a part of a crawl, and the expiry that the shard has.
func (m *snapshot) place(shard int, name, no string, till, said int64) *crawlSnapshot {
	c := m.crawls[name]
	if c == nil {
		id, _ := crawlOfName(name)
		c = &crawlSnapshot{stats: m.stats.Open(id)}
		m.crawls[strings.Clone(name)] = c
	}
	p := &c.parts[shard]
	if p.number != no { // another crawl of the same name; the shard has sent all its levels
		m.leaveLevels(shard, name)
		p.number = strings.Clone(no)
	}
	p.till, p.said = till, said
	m.expire(c)
	return c
}

func (m *snapshot) expire(c *crawlSnapshot) {
	var last crawlPart
	for i := range c.parts {
		if c.parts[i].said > last.said {
			last = c.parts[i]
		}
	}
	m.stats.ExpireAt(c.stats, last.till)
}

// leave removes a shard's part of a crawl.
func (m *snapshot) leave(shard int, name string) {
	m.leaveLevels(shard, name)
	c := m.crawls[name]
	c.parts[shard] = crawlPart{}
	for i := range c.parts {
		if c.parts[i].number != "" {
			return
		}
	}
	m.stats.Release(c.stats)
	delete(m.crawls, name)
}

func (m *snapshot) leaveLevels(shard int, name string) {
	if c := m.crawls[name]; c != nil {
		for level := range c.parts[shard].levels {
			m.set(c, shard, level, 0)
		}
	}
}

// set sets how many documents of a level (priority and domain) of a crawl are pending in a shard.
func (m *snapshot) set(c *crawlSnapshot, shard int, level string, n uint64) {
	p := &c.parts[shard]
	was := p.levels[level]
	if n == was {
		return
	}
	priority, domain := levelOf(level)
	switch {
	case n > was:
		d := m.stats.Enter(c.stats, domain, n-was)
		m.stats.Move(d, priority, crawlstats.Completed, crawlstats.Scheduled, n-was, 0)
	default:
		d := m.stats.Enter(c.stats, domain, 0)
		m.stats.Move(d, priority, crawlstats.Scheduled, crawlstats.Completed, was-n, 0)
		m.stats.Leave(d, was-n)
	}
	switch {
	case n == 0:
		delete(p.levels, level)
	case was > 0:
		p.levels[level] = n
	default:
		if p.levels == nil {
			p.levels = map[string]uint64{}
		}
		p.levels[strings.Clone(level)] = n
	}
}

func levelOf(level string) (priority int32, domain string) {
	first, domain, _ := strings.Cut(level, " ")
	return priorityOf(first), domain
}

// report makes the report. A document counts as in flight only if the snapshot counts it as
// pending.
func (m *snapshot) report(id docindex.CrawlID, domains int, away []absent) docindex.PendingReport {
	v := m.stats.BeginReport(id, domains)
	counted := map[absent]uint64{}
	for _, a := range away {
		c := m.crawls[a.crawl]
		if c == nil {
			continue
		}
		level, pending := decimal(int64(a.priority))+" "+a.domain, uint64(0)
		for i := range c.parts {
			pending += c.parts[i].levels[level]
		}
		if counted[a] < pending {
			counted[a]++
			v.InFlight(m.stats.Enter(c.stats, a.domain, 0), a.priority)
		}
	}
	return v.End()
}
