package docindex

import "context"

// PageCounter counts the documents of crawls with a limited number of them, for all daemons that share
// a store. A daemon takes places for documents, puts these, and settles the places. Places that nobody
// settles, because their daemon died, end by themselves after a while; then the documents are to be
// counted anew.
//
// While a crawl is to be counted, TakePages takes no place in it, and lets the caller count only when
// all places taken before are settled or have ended. So no document is being put during the count.
type PageCounter interface {
	// TakePages takes a place in a crawl for each of some documents, while the crawl has fewer than
	// most documents and the document's domain fewer than mostOfDomain; 0: any number. domains has
	// the registered domain of each document; "": its domain is not limited.
	TakePages(ctx context.Context, crawl string, domains []string, most, mostOfDomain int64) (PlacesTaken, error)

	// SettlePages ends the places that one TakePages has taken. Those of free are free again, since
	// their documents were not put, or were known. The documents of stored are stored. Both have the
	// documents' registered domains. A caller that does not know which are stored calls ForgetPages
	// first.
	SettlePages(ctx context.Context, crawl, taken string, free, stored []string) error

	// CountPages sets how many documents a crawl has, and its domains have (nil: they are not limited).
	// epoch is PlacesTaken.Epoch of the TakePages that asked for the count.
	CountPages(ctx context.Context, crawl, epoch string, pages int64, domains map[string]int64) error

	// ForgetPages drops the counts of a crawl, so that TakePages asks for a new count.
	ForgetPages(ctx context.Context, crawl string) error
}

// PlacesTaken is the result of TakePages.
type PlacesTaken struct {
	ID        string      // names the places that were taken; "": none was
	Limits    []PageLimit // of each document
	Uncounted bool        // none was taken, since CountPages has to come first; Limits is nil
	Epoch     string      // for CountPages
}

// PageLimit says why a document found no place.
type PageLimit uint8

// Values of PageLimit.
const (
	Placed     PageLimit = iota // it found one
	CrawlFull                   // the crawl has as many documents as it may have
	DomainFull                  // its domain has
	PlacesBusy                  // places that are not settled yet may become free; try again soon
)
