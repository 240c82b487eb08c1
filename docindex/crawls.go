package docindex

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"urlserver/docindex/internal/crawlstats"
)

// ErrTooManyRefused is returned by [Crawls.Refuse] where a million crawls are refused already.
var ErrTooManyRefused = errors.New("a million crawls are refused already; delete what is old")

// CrawlID names a crawl: which spider fetches it (Spider), for which application (App), and which of that one's it is
// (Crawl). A document belongs to the crawl that its crawl ID and the metadata appid and spiderid name; without an appid to
// none.
type CrawlID = crawlstats.CrawlID

// DefaultSpider is the spider of documents that name an application and no spider.
const DefaultSpider = "link"

// CrawlOf is the crawl that a document belongs to, and when that expires by it, in seconds since 1970; 0: it does
// not say. ok is false where it belongs to none.
func CrawlOf(p *Put) (id CrawlID, expires int64, ok bool) {
	if !bytes.Contains(p.Metadata, []byte(`"appid"`)) {
		return CrawlID{}, 0, false
	}
	m := DecodeMetadata(p.Metadata)
	id = CrawlID{
		Spider: cmp.Or(first(m["spiderid"]), DefaultSpider),
		App:    first(m["appid"]),
		Crawl:  cmp.Or(string(p.Crawl), defaultCrawl),
	}
	return id, seconds(first(m["expires"])), id.App != ""
}

// EndOf is what a Put says of when its crawl expires, in seconds since 1970; 0: never. What was put last holds, for a URL that is known, too:
// but nothing is said by what is fetched again, with the metadata that it had. ok is false where it says nothing.
func EndOf(p *Put) (id CrawlID, expires int64, ok bool) {
	if p.Due == Never || !p.Endless && !bytes.Contains(p.Metadata, []byte(`"expires"`)) {
		return CrawlID{}, 0, false
	}
	id, expires, ok = CrawlOf(p)
	return id, expires, ok && (expires > 0 || p.Endless)
}

// SpiderOf is the spiderid that metadata names, as [EncodeMetadata] wrote it; "": it names none.
func SpiderOf(metadata []byte) string {
	if !bytes.Contains(metadata, []byte(`"spiderid"`)) && !bytes.Contains(metadata, []byte(`"appid"`)) {
		return ""
	}
	m := DecodeMetadata(metadata)
	if id := first(m["spiderid"]); id != "" || first(m["appid"]) == "" {
		return id
	}
	return DefaultSpider
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// seconds reads a count of seconds; what is none is 0.
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

// Crawls is what a Store does that keeps crawls. What is pending of one is scheduled, or out at the slots and not
// yet at a spider, which the store does not know: those that are have to be told.
type Crawls interface {
	CrawlLister

	// Survey counts what is pending of a crawl, or, without a Crawl, of all crawls of an application at a spider. At
	// most so many domains are listed in all, the largest. away are documents at spiders: they are not pending. It
	// costs nothing for each document but for these.
	Survey(ctx context.Context, id CrawlID, domains int, away *Outcomes) (Survey, error)

	// Refuse has what is put for a crawl from now on dropped: its verdict is Dropped. Nothing of it is handed out any more.
	Refuse(ctx context.Context, id CrawlID, why Kind) error

	// PurgeCrawl ends what is scheduled of a refused crawl, with the outcome it was refused for, and tells in
	// batches, to atSlots, what is out at the slots, by DocID and Kind; a batch is good until that returns, and it answers how many
	// the slots have ended. Purged counts all that ended because of the refusal, and of which nobody was Told; also by earlier
	// calls that failed. After a restart nobody counts as told.
	PurgeCrawl(ctx context.Context, id CrawlID, atSlots func(*Outcomes) (ended int, err error)) (purged int, err error)

	// Overdue lists crawls, at most so many, that are to be refused and purged: those that have expired, and those refused, until
	// they are purged; and after a restart those of whose expiry nobody was Told.
	Overdue(ctx context.Context, now time.Time, max int) ([]CrawlEnd, error)

	// Finished lists crawls, at most so many, of which nothing was scheduled or in transit since a time; each once, and
	// again if it got more work in between, or after a restart if nobody was Told. Refused ones are not among them.
	Finished(ctx context.Context, since time.Time, max int) ([]FinishedCrawl, error)

	// Told says that somebody was told how a crawl has ended: by being refused where round is 0, with what PurgeCrawl answered last,
	// or else by having finished in that round. So a store that is durable does not list that again.
	Told(ctx context.Context, id CrawlID, round uint64) error

	// OnDelete has tell called, by Delete, with documents that are out at the slots and are to be forgotten. Their DOC_IDs
	// are not given again before it returns.
	OnDelete(tell func(*Outcomes))

	// CrawlCounts counts documents of crawls: of some crawls, at most so many, and of all others together, without a name,
	// which come last. Sent counts since the store was opened, or, where several share one, made.
	CrawlCounts(max int) []CrawlCounts
}

// What a survey answers: Survey sums up; each CrawlPending is what is pending of a crawl, and DomainPending of a registered
// domain or IP address of it. Pending counts documents, and has the lowest and the highest priority of them.
type (
	Survey        = crawlstats.Survey
	CrawlPending  = crawlstats.CrawlPending
	DomainPending = crawlstats.DomainPending
	Pending       = crawlstats.Pending
)

// MaxSurveyed is how many crawls a survey lists.
const MaxSurveyed = crawlstats.MaxSurveyed

// CrawlEnd is a crawl that is to be ended: because its time is over, or because it was stopped.
type CrawlEnd = crawlstats.CrawlEnd

// FinishedCrawl is a crawl that nothing is left of, and how many documents of it are done.
type FinishedCrawl = crawlstats.FinishedCrawl

// CrawlCounts count a crawl's documents by what has become of them.
type CrawlCounts = crawlstats.CrawlCounts
