package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/internal/weburl"
)

var _ docindex.Crawls = (*Store)(nil)

// Each shard counts the documents that it has of a crawl, and records whether the crawl was
// stopped.

// whoOf returns the prefix of the names of all crawls of one application at one spider.
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

// homeOf returns the shard that decides what must happen only once to a crawl: which daemon reports
// its end.
func homeOf(name string) int { return shardOf(name) }

// membershipOf returns the arguments by which scripts know a document's crawl: spider and
// application, registered domain, expiry in seconds. The crawl ID is that of the queue. If the URL
// has no host, the domain is "", and the script takes it from the queue.
func membershipOf(metadata, url []byte) []string {
	id, expires, ok := docindex.CrawlOf(&docindex.Put{Metadata: metadata})
	if !ok {
		return []string{"", "", "0"}
	}
	domain := ""
	if host := docindex.HostOf(url); len(host) > 0 {
		domain = weburl.Domain(string(host))
	}
	return []string{whoOf(id.Spider, id.App), domain, decimal(min(expires, maxSeconds))}
}

// StopCrawl is [docindex.Crawls.StopCrawl].
func (s *Store) StopCrawl(ctx context.Context, id docindex.CrawlID, why docindex.Kind) error {
	name := nameOfCrawl(id)
	s.setPurging(name, true) // the caller purges the crawl next
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

// The ends of a crawl that a daemon reports.
const (
	endRefused  = "x" // stopped or expired
	endFinished = "f" // nothing is scheduled or in transit
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

// atHome runs a script on all shards. what gets "1" for the home shard of the crawl's name, and "0"
// for the others.
func (s *Store) atHome(ctx context.Context, name string, what func(home string) op) ([]answer, error) {
	ops := make([]op, shards)
	for shard := range ops {
		ops[shard] = what(flag(shard == homeOf(name)))
		ops[shard].shard = shard
	}
	return s.all(ctx, ops)
}

// OnDelete is [docindex.Crawls.OnDelete]. tell gets the documents in this daemon's own slots, also
// if another daemon deletes them.
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
	s.released(o)
}
