package docindex

import "context"

// PageCounter is a store of several daemons that counts the documents of crawls with a limited number
// of them, for all daemons together. A daemon takes a place for each document before it puts it.
type PageCounter interface {
	// TakePages takes a place for each of some documents of a crawl, of which it is given the
	// registered domains ("": that of the document is not limited): as long as there are fewer than
	// most in the crawl and mostOfDomain in the domain; 0: any number. counted is false if it took
	// none, since CountPages has to come first.
	TakePages(ctx context.Context, crawl string, domains []string, most, mostOfDomain int64) (
		limits []PageLimit, counted bool, err error)

	// FreePages frees places of documents that were not put, or were known.
	FreePages(ctx context.Context, crawl string, domains []string) error

	// CountPages says how many documents a crawl has, and domains of it, unless they are counted.
	CountPages(ctx context.Context, crawl string, pages int64, domains map[string]int64) error

	// ForgetPages has the documents of a crawl be counted anew.
	ForgetPages(ctx context.Context, crawl string) error
}

// PageLimit says why a document found no place.
type PageLimit uint8

// What a place may lack.
const (
	Placed     PageLimit = iota // it found one
	CrawlFull                   // the crawl has as many documents as it may have
	DomainFull                  // its domain has
)
