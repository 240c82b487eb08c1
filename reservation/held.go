package reservation

import (
	"context"
	"time"
)

// Holding is the number of documents of a host that a crawler holds.
type Holding struct {
	Host      string
	Documents int
	Crawls    []CrawlPart // documents that are not of the crawl DEFAULT, each crawl once
}

// CrawlPart is the number of a host's documents that belong to one crawl.
type CrawlPart struct {
	Crawl     string
	Documents int
}

// MaxCrawlsPerHost limits the crawls that a store counts separately for a host and a holder.
const MaxCrawlsPerHost = 1000

// Counter is a Store that also counts the documents that crawlers hold. It is safe for concurrent
// use.
type Counter interface {
	// ReportHoldings reports how many documents of some hosts a crawler holds. holder names the
	// crawler. What the crawler reported of other hosts stays. A host with documents is known, as
	// after AddHost. It leaves when it has no documents and no lease.
	//
	// The store forgets a crawler's report after ttl without another call. After that, and for a
	// new holder, first must be true. Otherwise the call counts nothing and known is false.
	//
	// Documents count as of the crawl DEFAULT if their crawl's ID is longer than 255 bytes or has a
	// control character, or if the host has more than MaxCrawlsPerHost crawls.
	ReportHoldings(ctx context.Context, holder string, first bool, ttl time.Duration,
		held []Holding) (known bool, err error)
}
