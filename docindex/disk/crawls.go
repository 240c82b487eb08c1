package disk

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/embedded"
)

var _ docindex.Crawls = (*Store)(nil)

// ReportPending is [docindex.Crawls.ReportPending].
func (s *Store) ReportPending(
	ctx context.Context, id docindex.CrawlID, domains int, away *docindex.Outcomes,
) (docindex.PendingReport, error) {
	if err := ctx.Err(); err != nil {
		return docindex.PendingReport{}, err
	}
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return docindex.PendingReport{}, err
	}
	s.base.CatchUpLocked(s.base.Now())
	v := s.crawls.stats.BeginReport(id, domains)
	for i := 0; away != nil && i < away.Len() && v.MayHaveInFlight(); i++ {
		o := away.At(i)
		t, err := s.docs.inSlots(o.DocID)
		if err != nil {
			return docindex.PendingReport{}, s.db.fail(err)
		}
		if t == nil || t.member == 0 {
			continue
		}
		if d := s.crawls.partitions[t.member].domain; v.Wants(d) {
			v.InFlight(d, t.at.priority())
		}
	}
	return v.End(), nil
}

// StopCrawl is [docindex.Crawls.StopCrawl].
func (s *Store) StopCrawl(ctx context.Context, id docindex.CrawlID, why docindex.Kind) error {
	return s.changeCrawl(ctx, id, true, func(l *crawlstats.Stats, b *crawlstats.CrawlStats) error {
		switch {
		case b.Stopped:
			return nil
		case l.Stopped() >= embedded.MaxStopped:
			return docindex.ErrTooManyStopped
		}
		l.Stop(b, why)
		return nil
	})
}

// AckCrawlEnd is [docindex.Crawls.AckCrawlEnd].
func (s *Store) AckCrawlEnd(ctx context.Context, id docindex.CrawlID, round uint64) error {
	return s.changeCrawl(ctx, id, false, func(_ *crawlstats.Stats, b *crawlstats.CrawlStats) error {
		b.AckEnd(round)
		return nil
	})
}

// changeCrawl changes a crawl, and returns when the change is on disk. If the crawl does not exist
// and open is true, changeCrawl adds it.
func (s *Store) changeCrawl(
	ctx context.Context, id docindex.CrawlID, open bool, change func(*crawlstats.Stats, *crawlstats.CrawlStats) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, no, err := s.commitCrawl(id, open, change)
	if err != nil {
		return err
	}
	return s.db.waitSync(b, no)
}

func (s *Store) commitCrawl(
	id docindex.CrawlID, open bool, change func(*crawlstats.Stats, *crawlstats.CrawlStats) error,
) (b *pebble.Batch, no uint64, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	c := s.crawls.stats.Find(id)
	if c == nil && !open {
		return nil, s.queues.journal.no, s.db.usable()
	}
	if err := s.txn.begin(); err != nil {
		return nil, 0, err
	}
	if c == nil {
		c = s.crawls.stats.Open(id)
	}
	if err := change(s.crawls.stats, c); err != nil {
		s.crawls.stats.Release(c)
		s.txn.b.Close()
		s.txn.clear()
		return nil, 0, err
	}
	s.crawls.dirtyCrawls[c.No] = struct{}{}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, err
}

// CrawlsToEnd is [docindex.Crawls.CrawlsToEnd].
func (s *Store) CrawlsToEnd(ctx context.Context, now time.Time, max int) ([]docindex.CrawlEnd, error) {
	if err := s.purgeReturned(); err != nil {
		return nil, err
	}
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return nil, err
	}
	return s.crawls.stats.ToEnd(now, max), ctx.Err()
}
