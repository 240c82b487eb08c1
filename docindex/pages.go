package docindex

import "context"

// PageCounter counts the documents of crawls with a limited number of them, for all daemons that share
// a store. A daemon takes places for documents, puts these, and settles the places. Places that nobody
// settles, because their daemon died, end by themselves after a while; then the documents are to be
// counted anew.
//
// Nobody takes places of a crawl that is to be counted until all places that were taken before are
// settled or have ended: so a count meets no document that is on its way.
type PageCounter interface {
	// TakePages takes a place for each of some documents of a crawl, of which it is given the
	// registered domains ("": that of the document is not limited): as long as there are fewer than
	// most in the crawl and mostOfDomain in the domain; 0: any number.
	TakePages(ctx context.Context, crawl string, domains []string, most, mostOfDomain int64) (PlacesTaken, error)

	// SettlePages says which of the places that one TakePages has taken are free again, since their
	// documents were not put, or were known. The documents of the others are stored. Each document
	// is told by its registered domain. Who does not know which are stored calls ForgetPages first.
	SettlePages(ctx context.Context, crawl, taken string, free, stored []string) error

	// CountPages says how many documents a crawl has, and domains of it (nil: they are not limited).
	// epoch is that of the TakePages that asked for the count.
	CountPages(ctx context.Context, crawl, epoch string, pages int64, domains map[string]int64) error

	// ForgetPages has the documents of a crawl be counted anew.
	ForgetPages(ctx context.Context, crawl string) error
}

// PlacesTaken is what TakePages did.
type PlacesTaken struct {
	ID        string      // names the places that were taken; "": none was
	Limits    []PageLimit // of each document
	Uncounted bool        // none was taken, since CountPages has to come first; Limits is nil
	Epoch     string      // for CountPages
}

// PageLimit says why a document found no place.
type PageLimit uint8

// What a place may lack.
const (
	Placed     PageLimit = iota // it found one
	CrawlFull                   // the crawl has as many documents as it may have
	DomainFull                  // its domain has
	PlacesBusy                  // places that are not settled yet may become free; try again soon
)
