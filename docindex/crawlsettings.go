package docindex

import (
	"context"
	"errors"
)

// CrawlKeeper keeps a text for each crawl ID, as durably as the documents: the settings of the
// crawl, such as its scope. A store that hands out documents by weight reads the weight in the
// text, and nothing else.
type CrawlKeeper interface {
	// SetCrawlSettings sets the text of a crawl ID; an empty text removes it. It fails with
	// ErrTooManyCrawls, changing nothing.
	SetCrawlSettings(ctx context.Context, crawl string, text []byte) error

	// CrawlSettings visits the texts of all crawl IDs and returns their version, which is not 0 and
	// grows by one with each SetCrawlSettings. If the version is since, it visits nothing.
	CrawlSettings(ctx context.Context, since uint64, visit func(crawl string, text []byte)) (version uint64, err error)
}

// MaxCrawlSettings is how many crawl IDs may have settings.
const MaxCrawlSettings = 1_000_000

// ErrTooManyCrawls is returned by [CrawlKeeper.SetCrawlSettings].
var ErrTooManyCrawls = errors.New("a million crawls have settings already; delete one that was not stopped " +
	"(DeleteCrawl over gRPC): the settings of one that was stopped stay")
