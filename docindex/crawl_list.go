package docindex

import (
	"context"

	"urlserver/docindex/internal/crawlstats"
)

// CrawlLister is the part of [Crawls] by which people look through them.
type CrawlLister interface {
	// ListCrawls lists crawls, at most so many, those with most open documents first, and counts all. With a text only
	// those count whose application, crawl or spider has it in its name. It looks at each crawl there is, in portions.
	ListCrawls(ctx context.Context, text string, max int) (some []CrawlState, all int, err error)
}

// CrawlState is how a crawl stands; its Why is a [Kind].
type CrawlState = crawlstats.CrawlState
