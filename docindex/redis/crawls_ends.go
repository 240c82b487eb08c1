package redis

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"urlserver/docindex"
)

// Sorted sets of crawls that may have to be ended, or whose end may have to be reported.
const (
	byExpiry = "ke"
	byQuiet  = "kf"
)

// candidate is an entry of such a set: a shard, a crawl, and its score there.
type candidate struct {
	shard int
	name  string
	score string
}

// candidates lists up to most crawls with a score of until or less, the lowest scores of all shards
// first.
func (s *Store) candidates(ctx context.Context, index, until string, most int) (all []candidate,
	names []string, err error) {
	answers, err := s.everywhere(ctx, endingScript, index, until, decimal(int64(most)))
	if err != nil {
		return nil, nil, err
	}
	for _, a := range answers {
		for m := list(a.value); len(m) >= 2; m = m[2:] {
			all = append(all, candidate{a.shard, text(m[0]), text(m[1])})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(scoreOf(a.score), scoreOf(b.score)) })
	known := map[string]bool{}
	for _, c := range all {
		if !known[c.name] && len(names) < most {
			known[c.name] = true
			names = append(names, c.name)
		}
	}
	return slices.DeleteFunc(all, func(c candidate) bool { return !known[c.name] }), names, nil
}

func scoreOf(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// CrawlsToEnd is [docindex.Crawls.CrawlsToEnd]. Each crawl is listed to one living daemon only.
func (s *Store) CrawlsToEnd(ctx context.Context, now time.Time, most int) (due []docindex.CrawlEnd, err error) {
	if err := s.learnTime(ctx); err != nil {
		return nil, err
	}
	now = s.byRedis(now)
	all, names, err := s.candidates(ctx, byExpiry, decimal(now.Unix()), most)
	if err != nil {
		return nil, err
	}
	rows, err := s.rowsOf(ctx, names, false)
	if err != nil {
		return nil, err
	}
	late := map[string]*row{}
	var mine []*row
	for i := range rows {
		if r := &rows[i]; r.why == "" && (r.till == 0 || r.till > now.Unix() || r.size() == 0) {
			late[r.name] = r
		} else {
			mine = append(mine, r)
		}
	}
	if err := s.settleExpiry(ctx, all, late); err != nil {
		return nil, err
	}
	mine, err = s.see(ctx, endRefused, mine)
	for _, r := range mine {
		if r.kind() == docindex.Stopped && s.isPurging(r.name) {
			continue
		}
		due = append(due, docindex.CrawlEnd{CrawlID: r.CrawlID, Expired: r.why == "" || r.kind() == docindex.Expired})
	}
	return due, err
}

// settleExpiry copies the latest expiry of each crawl to the shards that have an older one. Then it
// deletes the crawls from shards that have no documents of them.
func (s *Store) settleExpiry(ctx context.Context, all []candidate, late map[string]*row) error {
	var spread, standing [shards][]string
	for _, r := range late {
		for shard := range r.parts {
			if p := &r.parts[shard]; p.size() > 0 && p.said < r.said {
				spread[shard] = append(spread[shard], r.name, "", decimal(r.till), decimal(r.said))
			}
		}
	}
	if err := s.settle(ctx, byExpiry, spread); err != nil {
		return err
	}
	for _, c := range all {
		r := late[c.name]
		if r == nil {
			continue
		}
		till := ""
		if r.till > 0 {
			till = decimal(r.till)
		}
		standing[c.shard] = append(standing[c.shard], c.name, c.score, till, decimal(r.said))
	}
	return s.settle(ctx, byExpiry, standing)
}

func (s *Store) settle(ctx context.Context, index string, args [shards][]string) error {
	_, err := s.all(ctx, opsOf(settleScript, args[:], func(int) []string { return []string{index} }))
	return err
}

// see returns the crawls whose end this daemon is to report. No other living daemon gets them.
func (s *Store) see(ctx context.Context, what string, rows []*row) (mine []*row, err error) {
	var args [shards][]string
	var at [shards][]*row
	for _, r := range rows {
		round := "0"
		if what == endFinished {
			round = strconv.FormatUint(r.round(), 10)
		}
		home := homeOf(r.name)
		args[home], at[home] = append(args[home], what, r.name, round), append(at[home], r)
	}
	answers, err := s.all(ctx, opsOf(seeScript, args[:], nil))
	has := map[*row]bool{}
	for _, a := range answers {
		for i, m := range list(a.value) {
			has[at[a.shard][i]] = number(m) == 1
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r *row) bool { return !has[r] }), err
}

// FinishedCrawls is [docindex.Crawls.FinishedCrawls]. Each crawl is listed to one living daemon
// only.
//
// A shard adds a crawl to its index when the crawl's last open document there ends. So a crawl that
// is still open in another shard can be removed from the index of this one: the shard that ends
// last adds it again.
func (s *Store) FinishedCrawls(ctx context.Context, since time.Time,
	most int) (done []docindex.FinishedCrawl, err error) {
	if err := s.learnTime(ctx); err != nil {
		return nil, err
	}
	since = s.byRedis(since)
	_, names, err := s.candidates(ctx, byQuiet, decimal(since.UnixMilli()), most)
	if err != nil {
		return nil, err
	}
	rows, err := s.rowsOf(ctx, names, false)
	if err != nil {
		return nil, err
	}
	var ended, settled []*row
	for i := range rows {
		r := &rows[i]
		switch {
		case r.open() > 0 || r.why != "" || r.round() == 0:
			settled = append(settled, r)
		case r.quietSince() <= since.UnixMilli():
			ended = append(ended, r)
		}
	}
	mine, err := s.see(ctx, endFinished, ended)
	if err != nil {
		return nil, err
	}
	for _, r := range mine {
		if s.list(r) {
			done = append(done, docindex.FinishedCrawl{CrawlID: r.CrawlID, Done: r.done(), Epoch: r.round()})
		}
	}
	if err := s.settleQuiet(ctx, append(settled, ended...)); err != nil && len(done) == 0 {
		return nil, err
	}
	return done, nil // if settling failed, the next call settles them
}

// list records that this daemon reports a crawl's end. It returns false if that was recorded
// before.
func (s *Store) list(r *row) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed[r.name] == r.round() {
		return false
	}
	s.listed[r.name] = r.round()
	return true
}

func (s *Store) forgetListed(name string, round uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed[name] == round {
		delete(s.listed, name)
	}
}

// quietSince returns when the last open document of the crawl ended, in ms.
func (r *row) quietSince() (last int64) {
	for i := range r.parts {
		last = max(last, int64(scoreOf(r.parts[i].quiet)))
	}
	return last
}

func (s *Store) settleQuiet(ctx context.Context, rows []*row) error {
	var args [shards][]string
	for _, r := range rows {
		for shard := range r.parts {
			if quiet := r.parts[shard].quiet; quiet != "" {
				args[shard] = append(args[shard], r.name, quiet, "", "")
			}
		}
	}
	return s.settle(ctx, byQuiet, args)
}
