package reservation

import (
	"context"
	"time"
)

// Held is how many documents a crawler holds for a host.
type Held struct {
	Host      string
	Documents int
	Crawls    []CrawlPart // which of them are of other crawls than DEFAULT, each crawl once
}

// CrawlPart is how many of a host's documents are of a crawl.
type CrawlPart struct {
	Crawl     string
	Documents int
}

// MaxHeldCrawls is how many crawls of a host are told apart of what a crawler holds.
const MaxHeldCrawls = 1000

// Counter is a Store that counts the documents that crawlers hold. It is safe for concurrent use.
type Counter interface {
	// Hold tells what a crawler, named by holder, holds for some hosts; what it told of others before stays. A host that
	// documents are held for is known, as after AddHost, and leaves when there are none and nobody has it reserved. All that
	// the crawler has told is forgotten after ttl without another Hold; then, and under a new name, first has to be set.
	// known is false, and nothing is counted, where it was not and there is nothing of this holder. What is of a crawl whose
	// ID has more than 255 bytes or a control character, or of one beyond MaxHeldCrawls of a host, counts as of DEFAULT.
	Hold(ctx context.Context, holder string, first bool, ttl time.Duration, held []Held) (known bool, err error)
}
