package redis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// Settings of crawls are in one hash, by crawl ID with a letter before it. versionField counts the
// changes of the others.
const (
	settingsKey  = ":settings"
	versionField = "version"
	crawlField   = "c" // before a crawl ID
)

// SetCrawlSettings is [docindex.CrawlKeeper.SetCrawlSettings].
func (s *Store) SetCrawlSettings(ctx context.Context, crawl string, text []byte) error {
	return s.setCrawlSettings(ctx, crawl, text, docindex.MaxCrawlSettings)
}

// setCrawlSettings is SetCrawlSettings with how many crawls may have settings. One script changes the text and
// the version: a daemon that has not seen the change has an older version.
func (s *Store) setCrawlSettings(ctx context.Context, crawl string, text []byte, most int64) error {
	a, err := s.one(ctx, 0, crawlSettingsScript, crawlField+crawl, string(text), decimal(most))
	if err != nil {
		return err
	}
	if parts := list(a.value); len(parts) != 1 {
		return errStrange
	} else if number(parts[0]) == 0 {
		return docindex.ErrTooManyCrawls
	}
	s.turns.setWeight(crawl, text)
	return nil
}

// CrawlSettings is [docindex.CrawlKeeper.CrawlSettings].
func (s *Store) CrawlSettings(
	ctx context.Context, since uint64, visit func(crawl string, text []byte),
) (version uint64, err error) {
	if err := s.learnTime(ctx); err != nil {
		return 0, err
	}
	c, err := s.connected(ctx)
	if err != nil {
		return 0, err
	}
	key := s.bases[0] + settingsKey
	text, err := c.Do(ctx, c.B().Hget().Key(key).Field(versionField).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return 0, s.wrap(err)
	}
	n, _ := strconv.ParseUint(text, 10, 64)
	if version = n + 1; version == since {
		return version, nil
	}
	texts := map[string][]byte{}
	for cursor := uint64(0); ; {
		page, err := c.Do(ctx, c.B().Hscan().Key(key).Cursor(cursor).Count(1000).Build()).AsScanEntry()
		if err != nil {
			return 0, s.wrap(err)
		}
		for i := 0; i+1 < len(page.Elements); i += 2 {
			if field := page.Elements[i]; len(field) > 0 && field[:1] == crawlField {
				texts[field[1:]] = []byte(page.Elements[i+1])
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			break
		}
	}
	s.turns.setWeights(texts)
	for crawl, text := range texts {
		visit(crawl, text)
	}
	return version, nil
}
