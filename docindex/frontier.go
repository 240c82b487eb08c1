package docindex

import (
	"context"
	"time"
)

// Scope is a queue, or a crawl where Key is empty. An empty Crawl is DEFAULT.
type Scope struct{ Crawl, Key []byte }

// Request is one request of a URL Frontier client for URLs.
type Request struct {
	Scope                   // with a Key: of that queue alone
	AnyCrawl  bool          // ignore Crawl
	PerQueue  uint32        // URLs in transit that a queue has at most afterwards; 0: any number
	MaxQueues uint32        // 0: any number
	Lease     time.Duration // how long URLs are in transit without an outcome
}

// HostAnswer is what a host answered to a client.
type HostAnswer struct {
	Host       []byte // as [HostOf] returns it
	Status     int    // HTTP
	RetryAfter time.Duration
}

// Setting is one setting: Kind names it, and Value is its value.
type Setting struct {
	Kind  SettingKind
	Scope        // the queue. SetActive ignores it; SetDelay with an empty Key is for all queues
	Host  bool   // SetDelay, SetBlock: for all on the host that Key names, beside the queues' own settings
	Value uint64 // by Kind
}

// SettingKind says what a Setting sets.
type SettingKind uint8

const (
	SetDelay  SettingKind = iota // between two servings of the queue; seconds
	SetBlock                     // the queue serves nothing up to and including this second since 1970; 0: unblocked
	SetLimit                     // the queue serves nothing once so many of its URLs are completed; 0: no limit
	SetActive                    // 1: clients are served, 0: they are not
)

// Counts counts the URLs of a queue, of a crawl or of all crawls.
type Counts struct {
	Scheduled, InTransit, Completed uint64
	Later                           uint64 // of Scheduled: not due yet; not counted for a queue
	Queues                          uint64
	Active                          uint64 // queues with something scheduled or in transit
}

// Frontier is the side of a store that URL Frontier clients use. A crawl goes by its crawl ID; the
// empty one is DEFAULT.
type Frontier interface {
	// Serve hands out URLs that are due, with a lease, from queues that may be served. It calls
	// give with one portion after the other; a portion is valid until give returns. If give fails,
	// its portion counts as handed out. Queues take turns, and no queue comes twice in a call.
	// Within a queue the earliest due URL goes first, then the higher priority, then the older one.
	// Stores may let links (see Put.Page) without due time, priority and key take turns by their shapes.
	//
	// Serve returns at once if nothing is due or may be served. If the only reason is that queues
	// have PerQueue URLs in transit, or that another call serves them and no delay follows, Serve
	// waits up to 50 ms for that to change.
	Serve(ctx context.Context, r Request, give func(*Served) error) error

	// Answered records what hosts answered to clients. After 429 and 503 a host is left alone for
	// longer, by slots as well: its gap doubles, up to 64-fold, and is at least Retry-After, up to
	// an hour. Each success halves it. Clients report answers before they report their URLs.
	Answered(ctx context.Context, all []HostAnswer) error

	// Find returns the document of a URL in a queue, or ErrUnknown. If several owners have the URL,
	// it returns the first by [UpdateRank].
	Find(ctx context.Context, queue Scope, url []byte) (Document, error)

	// List visits the documents of a queue or crawl until visit returns false. Queues come in their
	// order, documents within a queue in an order of the store's own that is the same each time.
	// Documents that come or go meanwhile may be visited or not; all others are visited, or List
	// returns an error, which may be ErrListAgain. The Document is valid during visit only.
	List(ctx context.Context, s Scope, visit func(*Document) bool) error

	// Queues visits the queues of a crawl in the order of their first URLs, until visit returns
	// false. A queue is idle if nothing of it is scheduled or in transit, or if it is blocked. key
	// is valid during visit only.
	Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error

	// Crawls lists the crawls that have a queue.
	Crawls(ctx context.Context) ([]string, error)

	// Count counts a queue or crawl, or all crawls where s is nil. An unknown one has nothing. It
	// costs O(1).
	Count(ctx context.Context, s *Scope) (Counts, error)

	// Delete removes a queue or crawl with its URLs and returns how many URLs there were.
	Delete(ctx context.Context, s Scope) (int, error)

	// Purge removes the URLs of a queue or crawl that were first put before a time, and returns how
	// many there were. The queues stay.
	Purge(ctx context.Context, s Scope, before time.Time) (int, error)

	// Set changes a setting. For a queue that has no URL yet, the setting takes effect with its
	// first URL. A host's delay is between two of its URLs, whoever gets them; the slots have one
	// URL of such a host at a time. 0 removes a setting.
	Set(ctx context.Context, s Setting) error

	// Active reports whether clients are served.
	Active(ctx context.Context) (bool, error)
}

// Served holds the URLs that go out to a client, in one growing buffer. The zero value is ready. It
// is not safe for concurrent use.
type Served struct {
	buf   []byte
	parts []part
}

type part struct {
	at                        int
	url, key, crawl, metadata uint16
	unique, depth             uint16
}

// Reset empties h and keeps its memory.
func (h *Served) Reset() { h.buf, h.parts = h.buf[:0], h.parts[:0] }

// Len returns the number of URLs.
func (h *Served) Len() int { return len(h.parts) }

// Size returns the number of bytes in h.
func (h *Served) Size() int { return len(h.buf) }

// At returns URL i with URL, Key, Crawl, Metadata, Unique and Depth set; they alias h. The key is
// never empty.
func (h *Served) At(i int) (p Put) {
	it := h.parts[i]
	rest := h.buf[it.at:]
	cut := func(n uint16) []byte {
		piece := rest[:n:n]
		rest = rest[n:]
		return piece
	}
	p.URL, p.Key, p.Crawl, p.Metadata = cut(it.url), cut(it.key), cut(it.crawl), cut(it.metadata)
	p.Unique, p.Depth = cut(it.unique), it.depth
	return p
}

// Add appends a copy of a URL without its payload.
func (h *Served) Add(url, key []byte, crawl string, packed Packed) {
	p := packed.parts()
	h.parts = append(h.parts, part{
		at: len(h.buf), url: uint16(len(url)), key: uint16(len(key)), crawl: uint16(len(crawl)),
		metadata: uint16(len(p.Metadata)), unique: uint16(len(p.Unique)), depth: p.Depth,
	})
	h.buf = append(append(append(append(h.buf, url...), key...), crawl...), p.Metadata...)
	h.buf = append(h.buf, p.Unique...)
}

// Keep removes the URLs for which stays is false.
func (h *Served) Keep(stays func(p *Put) bool) {
	kept := h.parts[:0]
	for i, it := range h.parts {
		if p := h.At(i); stays(&p) {
			kept = append(kept, it)
		}
	}
	h.parts = kept
}

// AddFrom appends a copy of URL i of another Served.
func (h *Served) AddFrom(from *Served, i int) {
	it := from.parts[i]
	piece := from.buf[it.at:][:int(it.url)+int(it.key)+int(it.crawl)+int(it.metadata)+int(it.unique)]
	it.at = len(h.buf)
	h.parts, h.buf = append(h.parts, it), append(h.buf, piece...)
}
