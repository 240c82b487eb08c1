package docindex

import (
	"context"
	"time"
)

// Scope is a queue, or a crawl where Key is empty. An empty Crawl is DEFAULT.
type Scope struct{ Crawl, Key []byte }

// Request is what a client of the URL Frontier asks for at once.
type Request struct {
	Scope                   // with a Key: that queue alone
	AnyCrawl  bool          // Crawl is not looked at
	PerQueue  uint32        // URLs in transit that a queue has at most afterwards; 0: any number
	MaxQueues uint32        // 0: any number
	Lease     time.Duration // how long URLs are in transit without news of them
}

// Setting is one thing to set: Which says what, Value how.
type Setting struct {
	Which Which
	Scope        // of a queue; not looked at for SetActive, nor for SetDelay where Key is empty: that is for all queues
	Host  bool   // SetDelay, SetBlock: of all that is on the host that Key names, beside what is set on queues
	Value uint64 // as Which has it
}

// Which says what a Setting sets.
type Which uint8

const (
	SetDelay  Which = iota // between two servings of the queue; seconds
	SetBlock               // nothing of the queue is given out up to this second since 1970, it included; 0: unblocked
	SetLimit               // nothing of the queue is given out once so many are completed; 0: no limit
	SetActive              // 1: calls are served, 0: not
)

// Counts counts the URLs of a queue, of a crawl or of all crawls.
type Counts struct {
	Scheduled, InTransit, Completed uint64
	Queues                          uint64 // in it
	Active                          uint64 // of these: with something scheduled or in transit
}

// Caller is the door for clients of the URL Frontier. Crawls go by their ID, where the empty one is DEFAULT.
type Caller interface {
	// Serve gives out URLs that are due, of queues that may be served, with a lease. They come in portions: give gets
	// each, which is good until it returns; when it errs, what it got counts as given out. Queues take turns;
	// none comes twice in a call; of one, the earliest due go first, then the higher priority, then who came first.
	// Where nothing is due, or may be served, it returns at once. Where that is only because queues have PerQueue URLs in
	// transit, or another call is at them and no delay follows, it waits for 50 ms at most until that changes.
	Serve(ctx context.Context, r Request, give func(*Handout) error) error

	// Find tells what is kept of a URL in a queue, or ErrUnknown. Of those of several owners it is the first
	// by [NewsRank].
	Find(ctx context.Context, queue Scope, url []byte) (Document, error)

	// List visits the documents of a queue or crawl, in the order of queues; within one in an order of the store's own,
	// the same each time. What comes or goes meanwhile may be seen or not; what stays is seen, or there is an error. It
	// ends when visit answers false. The
	// Document is good during visit only.
	List(ctx context.Context, s Scope, visit func(*Document) bool) error

	// Queues visits the queues of a crawl in the order of their first URLs; idle says that nothing of one is scheduled
	// or in transit, or that it is blocked. It ends when visit answers false. key is good during visit only.
	Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error

	// Crawls lists the crawls that have a queue.
	Crawls(ctx context.Context) ([]string, error)

	// Count counts a queue or crawl; what is unknown has nothing. All crawls: nil. It costs O(1).
	Count(ctx context.Context, s *Scope) (Counts, error)

	// LookAtHost tells what is known of a host, and why nothing on it is given out now. It costs O(queues of that name), of
	// which it looks at a thousand at most.
	LookAtHost(ctx context.Context, host []byte) (HostLook, error)
	// Delete forgets a queue or crawl with its URLs, and returns their number.
	Delete(ctx context.Context, s Scope) (int, error)

	// Purge forgets the URLs of a queue or crawl that were first seen before, and returns their number. Queues stay.
	Purge(ctx context.Context, s Scope, before time.Time) (int, error)

	// Set sets something. A queue that has no URL yet has it set when the first one comes. A host's delay is between
	// two givings at any doors; slots have one URL of it at a time. 0 is none.
	Set(ctx context.Context, s Setting) error

	// Settings visits all that is set and in force, as Set takes it, in an order of its own: first what is for all queues,
	// then what is for hosts.
	// What is not set is left out. It ends when visit answers false. The Setting is good during visit only.
	Settings(ctx context.Context, visit func(*Setting) bool) error

	// Active reports whether calls are served.
	Active() bool
}

// Handout is URLs that go out to a client, in one growing buffer. The zero value is ready. It is not safe for
// concurrent use.
type Handout struct {
	buf   []byte
	parts []part
}

type part struct {
	at                        int
	url, key, crawl, metadata uint16
}

// Reset empties h and keeps its memory.
func (h *Handout) Reset() { h.buf, h.parts = h.buf[:0], h.parts[:0] }

// Len is how many URLs are in it.
func (h *Handout) Len() int { return len(h.parts) }

// Size is how many bytes the URLs take with all that belongs to them.
func (h *Handout) Size() int { return len(h.buf) }

// At returns URL i: URL, Key, Crawl and Metadata, which alias h. The key is always there.
func (h *Handout) At(i int) (p Put) {
	it := h.parts[i]
	rest := h.buf[it.at:]
	cut := func(n uint16) []byte {
		piece := rest[:n:n]
		rest = rest[n:]
		return piece
	}
	p.URL, p.Key, p.Crawl, p.Metadata = cut(it.url), cut(it.key), cut(it.crawl), cut(it.metadata)
	return p
}

// Add appends a copy of a URL.
func (h *Handout) Add(url, key []byte, crawl string, metadata []byte) {
	h.parts = append(h.parts, part{
		at: len(h.buf), url: uint16(len(url)), key: uint16(len(key)), crawl: uint16(len(crawl)), metadata: uint16(len(metadata)),
	})
	h.buf = append(append(append(append(h.buf, url...), key...), crawl...), metadata...)
}
