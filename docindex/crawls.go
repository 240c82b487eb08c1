package docindex

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
)

// ErrTooManyStopped is returned by [Crawls.StopCrawl] when a million crawls are stopped already.
var ErrTooManyStopped = errors.New("a million crawls are stopped already, and the index keeps each for good, also " +
	"when it is deleted; begin a new index for more")

// CrawlID names a crawl. A document belongs to the crawl that its crawl ID and the metadata appid
// and spiderid name; a document without an appid belongs to none.
type CrawlID struct {
	Spider string // fetches it
	App    string // the application that wants it
	Crawl  string // the application's name for it
}

// Has reports whether text is part of one of the names.
func (id CrawlID) Has(text string) bool {
	return strings.Contains(id.App, text) || strings.Contains(id.Crawl, text) || strings.Contains(id.Spider, text)
}

// DefaultSpider is the spider of documents that name an application and no spider.
const DefaultSpider = "link"

// CrawlOf returns the crawl of a document, and when the crawl expires according to the document, in
// seconds since 1970; 0: the document does not say. ok is false if the document belongs to no
// crawl.
func CrawlOf(p *Put) (id CrawlID, expires int64, ok bool) {
	if !bytes.Contains(p.Metadata, []byte(`"appid"`)) {
		return CrawlID{}, 0, false
	}
	n := namingOf(p.Metadata)
	id = CrawlID{
		Spider: cmp.Or(string(n.spider), DefaultSpider),
		App:    string(n.app),
		Crawl:  cmp.Or(string(p.Crawl), DefaultCrawl),
	}
	return id, seconds(string(n.expires)), id.App != ""
}

// ExpiryOf returns when a Put says that its crawl expires, in seconds since 1970; 0: never. The
// last Put counts, also one of a known URL. ok is false if the Put does not say, as when a URL
// comes back with the metadata that it had.
func ExpiryOf(p *Put) (id CrawlID, expires int64, ok bool) {
	if p.Due == Never || !p.NoExpiry && !bytes.Contains(p.Metadata, []byte(`"expires"`)) {
		return CrawlID{}, 0, false
	}
	id, expires, ok = CrawlOf(p)
	return id, expires, ok && (expires > 0 || p.NoExpiry)
}

// SpiderOf returns the spiderid in metadata that [EncodeMetadata] wrote; "": there is none.
func SpiderOf(metadata []byte) string {
	if !bytes.Contains(metadata, []byte(`"spiderid"`)) && !bytes.Contains(metadata, []byte(`"appid"`)) {
		return ""
	}
	return namingOf(metadata).spiderOf()
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// seconds parses a number of seconds; 0 if text is not one.
func seconds(text string) int64 {
	n, ok := number64(text)
	if !ok || n >= Never {
		return 0
	}
	return int64(n)
}

func number64(text string) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// Crawls counts, stops and expires crawls.
//
// A document is pending while it is scheduled, or with the slots and not yet at a spider. The store
// does not know which of the slots' documents are at spiders, so the caller has to say.
type Crawls interface {
	CrawlLister

	// ReportPending counts the pending documents of a crawl, or, if id.Crawl is empty, of all
	// crawls of an application at a spider. It lists no more than domains domains in all, the largest.
	// inFlight are documents with the slots that are not pending: they are at spiders, or ended by the
	// atSlots of PurgeCrawl. The cost does not depend on the number of documents, except inFlight.
	ReportPending(ctx context.Context, id CrawlID, domains int, inFlight *Outcomes) (PendingReport, error)

	// StopCrawl makes the store drop URLs that are put for a crawl from now on, with the verdict
	// Dropped, and hand out no document of the crawl any more. why is the outcome of its documents.
	StopCrawl(ctx context.Context, id CrawlID, why Kind) error

	// PurgeCrawl ends the scheduled documents of a stopped crawl with the outcome that StopCrawl
	// named. It calls atSlots with batches of the documents that the slots have, by DocID and Kind;
	// atSlots returns how many of them the slots have ended. A batch is valid until atSlots
	// returns.
	//
	// purged counts all documents that ended because of the stop and that were not acknowledged by
	// AckCrawlEnd, including those of earlier calls that failed. A restart forgets
	// acknowledgements.
	PurgeCrawl(ctx context.Context, id CrawlID, atSlots func(*Outcomes) (ended int, err error)) (purged int, err error)

	// CrawlsToEnd lists up to max crawls that are to be stopped and purged: expired ones, and
	// stopped ones until they are purged. After a restart it also lists expired crawls whose end
	// was not acknowledged.
	CrawlsToEnd(ctx context.Context, now time.Time, max int) ([]CrawlEnd, error)

	// FinishedCrawls lists up to max crawls of which nothing was scheduled or in transit since a
	// time. It lists each once, again if the crawl got more work in between, and again after a
	// restart if the end was not acknowledged. It does not list stopped crawls.
	FinishedCrawls(ctx context.Context, since time.Time, max int) ([]FinishedCrawl, error)

	// AckCrawlEnd acknowledges that the end of a crawl was reported: of a stopped crawl if epoch is
	// 0, with the count that PurgeCrawl last returned; else of a crawl that finished in that epoch.
	// A durable store does not list that end again.
	AckCrawlEnd(ctx context.Context, id CrawlID, epoch uint64) error

	// OnDelete registers forget, which Delete calls with the documents it removes that are with the
	// slots. Their DOC_IDs are not given to other documents before forget returns.
	OnDelete(forget func(*Outcomes))

	// CrawlCounts returns the counts of up to max crawls, and last, without a name, those of all
	// other crawls together. Sent counts since the store was opened, or, if daemons share it, made.
	CrawlCounts(ctx context.Context, max int) ([]CrawlCounts, error)
}

// CrawlLister lists crawls for operators.
type CrawlLister interface {
	// ListCrawls lists up to max crawls, those with most open documents first, and counts all. With
	// a text it considers only crawls with text in their names, and those whose crawl ID is the text
	// are among the listed ones. It looks at every crawl, in portions.
	ListCrawls(ctx context.Context, text string, max int) (some []CrawlState, all int, err error)
}

// CrawlState is the state of a crawl.
type CrawlState struct {
	CrawlID
	Scheduled uint64
	AtSlots   uint64 // handed out to the slots; some of them are at spiders
	AtClients uint64 // handed out to URL Frontier clients
	Done      uint64 // completed, but for those purged
	Purged    uint64
	Dropped   uint64 // put after the crawl was stopped
	Expires   int64  // seconds since 1970; 0: never
	Stopped   bool
	Why       Kind // of Stopped
}

// Pending counts pending documents and has their lowest and highest priority.
type Pending struct {
	Total     uint64
	Low, High int32
}

// PendingReport counts the pending documents of crawls. A report on one crawl has exactly that
// crawl, also if nothing of it is pending.
type PendingReport struct {
	Total   uint64         // documents
	Domains int            // different ones, over all crawls
	Count   int            // crawls with something pending
	Crawls  []CrawlPending // of these the largest, at most MaxReportedCrawls
}

// MaxReportedCrawls is how many crawls a PendingReport lists.
const MaxReportedCrawls = 5000

// CrawlPending counts the pending documents of a crawl.
type CrawlPending struct {
	Crawl string
	Pending
	Expires  int64 // seconds since 1970; 0: never
	Distinct int   // domains with something pending
	Domains  []DomainPending
}

// DomainPending counts the pending documents of a crawl on a registered domain or IP address.
type DomainPending struct {
	Domain string
	Pending
}

// CrawlEnd is a crawl that is to be ended.
type CrawlEnd struct {
	CrawlID
	Expired bool // its time is over; else it was stopped
}

// FinishedCrawl is a crawl of which nothing is scheduled or in transit.
type FinishedCrawl struct {
	CrawlID
	Done  uint64 // completed documents, but for those stopped and expired
	Epoch uint64 // for AckCrawlEnd; never 0, and another one each time that the crawl finishes again
}

// CrawlCounts counts a crawl's documents by what became of them.
type CrawlCounts struct {
	CrawlID
	Pending   uint64 // scheduled or with the slots, also those at spiders
	InTransit uint64 // with URL Frontier clients
	Done      uint64 // completed, but for those purged
	Sent      uint64 // attempts of spiders that are reported, and hand-outs to clients
	Purged    uint64 // stopped or expired
	Expired   uint64 // of Purged: expired
	Dropped   uint64 // put after the crawl was stopped or had expired
}
