// Package docindex is the contract of doc indexes: where candidates come from and where outcomes go.
//
// [Index] is what the daemon needs of a doc index. [Store] is an index that lives with the daemon and
// takes URLs as well. Packages memory, disk and redis are stores. Package httpserver serves a Store by
// the HTTP contract that CONTRACT.md describes, and package httpclient is a client of that contract.
package docindex

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// ErrUnwanted is returned by [Index.Outcomes] of an index that does not want to
// hear how documents ended, now or later.
var ErrUnwanted = errors.New("the doc index does not want outcomes")

// ErrUnknown is returned by [Store.Document] for a DOC_ID that the store does not have.
var ErrUnknown = errors.New("no such document")

// ErrReserved is why a store refuses a DOC_ID that is for itself to give.
var ErrReserved = errors.New("it is for the index to give")

// ErrFull is in errors of a store that has no room for what it was asked; nothing of that was done, and when there is room again,
// the store goes on by itself.
var ErrFull = errors.New("full")

// ErrAway is in errors of a store that runs elsewhere and does not answer now. Nothing is known to have been
// done; when it answers again, calls succeed again.
var ErrAway = errors.New("does not answer")

// ErrTooLong is in errors of [Puts.Add] and [Puts.AddExact] for a URL, or crawl, key and metadata together,
// with more bytes than are kept.
var ErrTooLong = errors.New("longer than is kept")

// ErrTooMany is returned by [Caller.Set] where too many settings wait for queues that are not there.
var ErrTooMany = errors.New("a million settings wait for queues that have no URL; set them when the queues have one")

// Index is what the daemon needs of a doc index. Its methods may be called
// from several goroutines.
type Index interface {
	// Candidates adds up to max candidates to b, leaving out those on the hosts in
	// reject (as weburl's Host has them). None is not an error. What is in b was handed
	// out and is the caller's, also when an error comes with it.
	Candidates(ctx context.Context, max int, reject []string, b *Batch) error

	// Outcomes reports how documents ended. An error means that none of them was taken:
	// keep them and try again. With ErrUnwanted the index does not want outcomes at all.
	Outcomes(ctx context.Context, o *Outcomes) error
}

// Store is an Index that lives with the daemon and takes URLs. Each outcome completes its document, whatever the kind;
// one with Again schedules it for then in the same step, with the outcome's metadata and otherwise as it was. An outcome
// of a document that is unknown, completed or at another URL changes nothing.
type Store interface {
	Index
	Caller

	// Lease is Candidates for a taker that may vanish: what has no outcome when
	// lease has passed is due again. Leases count in whole seconds, rounded up.
	Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *Batch) error

	// Return takes back what was handed out by Candidates or Lease and has not been fetched: it is scheduled as
	// before. Of the outcomes only DocID and URL are looked at.
	Return(ctx context.Context, o *Outcomes) error

	// Put stores URLs in their order, and sets the Verdict of each. One that is not known is stored:
	// scheduled at its due time, or completed where that is Never. A URL is known once per crawl, key and
	// owner (see [OwnerOf]), for ever: known ones stay as they are, unless the Put says that it brings news
	// of a Known URL. News without an owner is of the document that [NewsRank] says. An error means that
	// those without a verdict were not stored; putting the same again does no harm.
	Put(ctx context.Context, p *Puts) (PutResult, error)

	// Document tells what is kept of a document, or ErrUnknown.
	Document(ctx context.Context, id []byte) (Document, error)

	// Notify has wake called after each Put that scheduled something. wake must not
	// block and must not call the store.
	Notify(wake func())

	// Recall has back called with documents that the slots have and are to Return, unless they have been sent: something
	// was set on their queue, or it was deleted. back may block, but must not call the store.
	Recall(back func(*Outcomes))

	// Pace tells the gap between two requests of the slots to a host. They keep it after calls, too.
	Pace(gap time.Duration)

	// Obey tells what rules say of hosts, by their names; nil: there are none. They hold for calls: what is barred is not given
	// to them, and a gap is kept after them, by all doors. of may be called with locks held, until Obey is called again.
	Obey(of func(host []byte) HostRule)
	// Stats counts what the store holds.
	Stats() StoreStats
}

// RemoteLease is the lease of what a store gives to other daemons over HTTP, by CONTRACT.md.
const RemoteLease = 10 * time.Minute

// PutResult says what became of the URLs of one Put.
type PutResult struct {
	New, Known int // Known: had before, whether there was news of them or not
	Dropped    int // of crawls that were stopped or have expired
	Refused    []Refusal
}

// Verdict says what became of one URL of a Put.
type Verdict uint8

const (
	Unsettled Verdict = iota // not stored
	New                      // stored, was not known
	Same                     // known, and as it was
	Changed                  // known, and brought up to date
	Refused                  // cannot be stored; a Refusal says why
	Dropped                  // its crawl was stopped or has expired; left as it was
)

// Refusal says why one URL of a Put was not stored.
type Refusal struct {
	Index int // its place in the Puts
	Err   error
}

// StoreStats counts what a store holds.
type StoreStats struct {
	Scheduled, InTransit, Completed int        // documents by state
	Hosts                           int        // queues; one for each host of each crawl where clients name no others
	HostsDue                        int        // of them: with something scheduled or in transit
	Outcomes                        [Kinds]int // by kind: of documents that are completed since, or fetched again
	Bytes                           int64      // memory or disk taken, without what the runtime adds
}

// State says where a stored document is.
type State uint8

const (
	Scheduled State = iota // to be handed out; left by Candidates and Lease
	InTransit              // handed out; left by its outcome, or by its lease running out
	Completed              // has its outcome; left by news that schedules it again
)

// String gives the state in words.
func (s State) String() string {
	return word(stateWords[:], int(s))
}

var stateWords = [...]string{Scheduled: "scheduled", InTransit: "in transit", Completed: "completed"}

// Document is what a store keeps of a URL. Put.Created is left out: Created says it.
type Document struct {
	Put
	State   State
	Created time.Time // when it was put first, in whole seconds
}

// Clone returns a copy of d that shares no memory with it but the crawl.
func (d Document) Clone() Document {
	d.URL, d.Key, d.Metadata = bytes.Clone(d.URL), bytes.Clone(d.Key), bytes.Clone(d.Metadata)
	return d
}

// Kind says how a document ended.
type Kind uint8

const (
	Done    Kind = iota // a spider fetched it, well or not
	Timeout             // every attempt ended without a DONE
	Robots              // robots.txt forbids it
	DNS                 // its host has no address that may be asked
	Invalid             // its URL or DOC_ID cannot be used
	Stopped             // its crawl was stopped
	Expired             // its crawl's time ran out

	Kinds = int(Expired) + 1 // how many there are
)

var kindWords = [Kinds]string{
	Done: "done", Timeout: "timeout", Robots: "robots", DNS: "dns",
	Invalid: "invalid", Stopped: "stopped", Expired: "expired",
}

// String gives the contract's word for k.
func (k Kind) String() string {
	return word(kindWords[:], int(k))
}

// OfTry reports whether k says how a try to fetch the document ended, rather than that none is wanted any more.
func (k Kind) OfTry() bool { return k == Done || k == Timeout || k == Robots || k == DNS }

// ParseKind is the reverse of [Kind.String].
func ParseKind(text []byte) (Kind, bool) {
	for k, w := range kindWords {
		if string(text) == w {
			return Kind(k), true
		}
	}
	return 0, false
}

func word(words []string, i int) string {
	if i >= len(words) {
		return "unknown"
	}
	return words[i]
}
