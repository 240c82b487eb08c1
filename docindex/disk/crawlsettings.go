package disk

import (
	"context"

	"github.com/cockroachdb/pebble/v2"
)

// SetCrawlSettings is [docindex.CrawlKeeper.SetCrawlSettings].
func (s *Store) SetCrawlSettings(ctx context.Context, crawl string, text []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, no, err := s.setCrawlSettings(crawl, text)
	if err != nil {
		return err
	}
	return s.db.waitSync(b, no)
}

func (s *Store) setCrawlSettings(crawl string, text []byte) (b *pebble.Batch, no uint64, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.base.CheckCrawlSettingsLocked(crawl, text); err != nil {
		return nil, 0, err
	}
	if err := s.txn.begin(); err != nil {
		return nil, 0, err
	}
	t := &s.txn
	t.key, t.value = append(append(t.key[:0], crawlSettingsRow), crawl...), append(t.value[:0], text...)
	if len(text) > 0 {
		t.set()
	} else {
		t.b.Delete(t.key, nil)
	}
	if b, err = s.txn.commit(); err == nil {
		s.base.SetCrawlSettingsLocked(crawl, text)
	}
	return b, s.queues.journal.no, err
}

// crawlSettings reads the row of a crawl's settings.
func (l *loading) crawlSettings(key, value []byte) error {
	l.s.base.SetCrawlSettingsLocked(string(key[1:]), value)
	return nil
}
