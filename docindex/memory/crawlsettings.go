package memory

import "context"

// SetCrawlSettings is [docindex.CrawlKeeper.SetCrawlSettings].
func (m *Store) SetCrawlSettings(_ context.Context, crawl string, text []byte) error {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	err := m.base.CheckCrawlSettingsLocked(crawl, text)
	if err == nil {
		m.base.SetCrawlSettingsLocked(crawl, text)
	}
	return err
}
