package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/embedded"
)

var _ docindex.Crawls = (*Store)(nil)

// Each shard counts what it has of a crawl, and knows whether that is refused.

// whoOf is what the names of all crawls of an application at a spider begin with.
func whoOf(spider, app string) string {
	return fmt.Sprintf("%d:%d:%s%s", len(spider), len(app), spider, app)
}

func nameOfCrawl(id docindex.CrawlID) string { return whoOf(id.Spider, id.App) + id.Crawl }

func crawlOfName(name string) (id docindex.CrawlID, ok bool) {
	head, rest, _ := strings.Cut(name, ":")
	spider, err := strconv.ParseUint(head, 10, 16)
	head, rest, _ = strings.Cut(rest, ":")
	app, err2 := strconv.ParseUint(head, 10, 16)
	if err != nil || err2 != nil || spider+app > uint64(len(rest)) {
		return id, false
	}
	return docindex.CrawlID{Spider: rest[:spider], App: rest[spider : spider+app], Crawl: rest[spider+app:]}, true
}

// homeOf is the shard where it is settled what happens once to a crawl.
func homeOf(name string) int { return shardOf(name) }

// membershipOf says of which crawl a document is, as scripts take it; its crawl ID is its queue's. Of a URL without a host, its queue
// says the domain.
func membershipOf(metadata, url []byte) []string {
	id, expires, ok := docindex.CrawlOf(&docindex.Put{Metadata: metadata})
	if !ok {
		return []string{"", "", "0"}
	}
	domain := ""
	if host := docindex.HostOf(url); len(host) > 0 {
		domain = crawlstats.Registered(string(host))
	}
	return []string{whoOf(id.Spider, id.App), domain, decimal(min(expires, maxSeconds))}
}

// StopCrawl is [docindex.Crawls.StopCrawl].
func (s *Store) StopCrawl(ctx context.Context, id docindex.CrawlID, why docindex.Kind) error {
	name := nameOfCrawl(id)
	s.setPurging(name, true) // which is to follow
	if err := s.refuse(ctx, name, why); err != nil {
		s.setPurging(name, false)
		return err
	}
	return nil
}

func (s *Store) refuse(ctx context.Context, name string, why docindex.Kind) error {
	home := homeOf(name)
	a, err := s.one(ctx, home, refuseScript, name, decimal(int64(why)), decimal(embedded.MaxStopped))
	if err != nil {
		return err
	}
	parts := list(a.value)
	switch {
	case len(parts) != 1:
		return errStrange
	case number(parts[0]) < 0:
		return docindex.ErrTooManyStopped
	}
	var ops []op
	for shard := range shards {
		if shard != home {
			ops = append(ops, op{shard, refuseScript, []string{name, text(parts[0]), ""}})
		}
	}
	_, err = s.all(ctx, ops)
	return err
}

// What the end of a crawl is, to those who tell of it.
const (
	endRefused  = "x" // or expired
	endFinished = "f"
)

// AckCrawlEnd is [docindex.Crawls.AckCrawlEnd].
func (s *Store) AckCrawlEnd(ctx context.Context, id docindex.CrawlID, round uint64) error {
	name, what := nameOfCrawl(id), endFinished
	if round == 0 {
		what = endRefused
	} else {
		defer s.forgetListed(name, round)
	}
	_, err := s.atHome(ctx, name, func(home string) op {
		return op{script: ackScript, args: []string{what, name, strconv.FormatUint(round, 10), home}}
	})
	return err
}

// atHome runs a script on all shards. Its argument says to that of the crawl's name that this is it.
func (s *Store) atHome(ctx context.Context, name string, what func(home string) op) ([]answer, error) {
	ops := make([]op, shards)
	for shard := range ops {
		ops[shard] = what(flag(shard == homeOf(name)))
		ops[shard].shard = shard
	}
	return s.all(ctx, ops)
}

// OnDelete is [docindex.Crawls.OnDelete]. It is told of what this daemon's own slots have, also when another daemon deletes that.
func (s *Store) OnDelete(tell func(*docindex.Outcomes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onDelete = tell
}

func (s *Store) tellDeleted(o *docindex.Outcomes) {
	s.mu.Lock()
	tell := s.onDelete
	s.mu.Unlock()
	if tell != nil && o.Len() > 0 {
		tell(o)
	}
}
