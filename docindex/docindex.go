// Package docindex is the contract of doc indexes: where candidates come from and where outcomes
// go. It has values and interfaces, and no store.
//
// [Source] is what the daemon needs of a doc index. [Store] is an embedded index, which takes URLs
// as well. Packages memory, disk and redis are stores. Package httpserver serves a
// Store by the HTTP contract that CONTRACT.md describes, and package httpclient is a client of that
// contract.
package docindex

import (
	"bytes"
	"context"
	"errors"
	"time"

	"urlserver/internal/scope"
)

// ErrUnwanted is returned by [Source.Outcomes] of an index that does not want outcomes, now or
// later.
var ErrUnwanted = errors.New("the doc index does not want outcomes")

// ErrUnknown is returned by [Putter.Document] and [Frontier.Find] for a document that the store does not have.
var ErrUnknown = errors.New("no such document")

// ErrReserved says why a store refuses a DOC_ID: it has the form of those that the store gives
// itself.
var ErrReserved = errors.New("it is for the index to give")

// ErrFull is in errors of a store that has no room for what it was asked to store. Nothing was
// stored. When there is room again, calls succeed again.
var ErrFull = errors.New("full")

// ErrUnavailable is in errors of a store that runs elsewhere and does not answer now. Whether the
// call took effect is not known. When the store answers again, calls succeed again.
var ErrUnavailable = errors.New("does not answer")

// ErrListAgain is returned by [Frontier.List] of a store in memory when URLs of a queue were purged
// while it was listed.
var ErrListAgain = errors.New("URLs of a queue were purged while it was listed; list again")

// ErrTooLong is in errors of [Puts.Add] and [Puts.AddExact]: the URL, or crawl, key and metadata
// together, have more bytes than a store keeps.
var ErrTooLong = errors.New("longer than is kept")

// ErrTooMany is returned by [Frontier.Set] when too many settings wait for queues that have no URL
// yet.
var ErrTooMany = errors.New("a million settings wait for queues that have no URL; set them when the queues have one")

// Source offers documents and takes their outcomes. It is all that the daemon needs of a doc index.
// Its methods may be called from several goroutines.
type Source interface {
	// Candidates appends up to max candidates to b. It leaves out those on the hosts in reject,
	// which are written as weburl's Host writes them. No candidate is not an error. The index has
	// handed out the candidates in b, also when it returns an error: the caller must report their
	// outcomes, or return them.
	Candidates(ctx context.Context, max int, reject []string, b *Batch) error

	// Outcomes reports how documents ended. An error means that none of them was taken: keep them
	// and try again. ErrUnwanted means that the index does not want outcomes, now or later.
	Outcomes(ctx context.Context, o *Outcomes) error
}

// Store is an embedded index: a Source that also takes URLs. Callers take the role that they use.
//
// Each outcome completes its document, whatever its kind. An outcome with Again schedules the
// document for that time in the same step, with the outcome's metadata and otherwise as it was. An
// outcome whose document is unknown, completed or at another URL changes nothing.
//
// All methods may be called from several goroutines.
type Store interface {
	Source
	Leaser
	Returner
	Pauser
	Putter
	Frontier
	Crawls
	CrawlKeeper
	Notes
	Hooks
	Inspector
}

// Leaser hands out documents to takers that may vanish, such as other daemons.
type Leaser interface {
	// Lease is [Source.Candidates] with a lease: a document without an outcome is due again when
	// its lease has passed. Leases count in whole seconds, rounded up.
	Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *Batch) error
}

// Returner takes documents back.
type Returner interface {
	// Return takes back documents that Candidates or Lease handed out and that were not fetched:
	// they are scheduled as before. It reads DocID and URL of the outcomes, nothing else.
	Return(ctx context.Context, o *Outcomes) error
}

// Pauser takes what is learned of hosts by requests for robots.txt, and by redirects before their outcomes come.
type Pauser interface {
	// Pause notes how long hosts are to be left alone, and their gaps, as outcomes do. It reads
	// URL, Pause and Gap of the outcomes, nothing else. After a restart the pauses bind the slots, too.
	Pause(ctx context.Context, o *Outcomes) error

	// EachPause calls visit with each host that has a pause from before the store was opened, and
	// with the rest of the pause. A store may leave out pauses of no more than the slots' gap. A store
	// that forgets pauses when it is closed visits none. host is valid during the call only.
	EachPause(ctx context.Context, visit func(host []byte, left time.Duration)) error
}

// Putter stores documents and reads them.
type Putter interface {
	// Put stores URLs in their order and sets the Verdict of each. A new URL is scheduled at its
	// due time, or completed where that is Never. A URL is known once per crawl, key and owner (see
	// [OwnerOf]), for ever. A known URL stays as it is, unless the Put is an Update; [UpdateRank]
	// says which document an Update without an owner changes. An error means that the URLs without
	// a verdict were not stored. To put the same again does no harm.
	Put(ctx context.Context, p *Puts) (PutResult, error)

	// Document returns a stored document, or ErrUnknown.
	Document(ctx context.Context, id []byte) (Document, error)
}

// Hooks connects a store with the daemon whose host slots it feeds.
type Hooks interface {
	// OnWake registers wake, which is called after each Put that scheduled something. wake must not
	// block and must not call the store.
	OnWake(wake func())

	// OnRecall registers recall. It is called with documents that the slots have when their queue
	// was changed by Set, or deleted: the daemon is to Return those that it has not sent yet.
	// recall may block but must not call the store.
	OnRecall(recall func(*Outcomes))

	// SetSlotGap sets the least time between two requests of the slots to a host. The slots keep
	// this gap after a URL Frontier client was given the host, too.
	SetSlotGap(gap time.Duration)

	// SetHostRules sets the rules of hosts by name; nil removes them. The store gives URL Frontier
	// clients no URL of a barred host. After it has given them a URL of a host, it keeps the rule's
	// gap, whoever asks next. It may call rules while it holds locks, until the next SetHostRules.
	SetHostRules(rules func(host []byte) HostRule)

	// SetBudget sets how many pages of a registered domain a crawl hands out in a round before
	// other domains of the crawl go first; 0: any number. With docindex/redis each daemon counts
	// only the pages that it hands out itself.
	SetBudget(pages int)

	// Rounds returns the domains that are over their budget, and those that have to wait longer for
	// their next round because they were.
	Rounds() []Round

	// RestoreRounds restores what Rounds returned in an earlier process. The caller calls it before
	// the store hands out a document. The store ignores domains of crawls without queues.
	RestoreRounds(rounds []Round)

	// SetAhead bounds the documents that the slots have of each queue or domain that takes turns. In
	// docindex/redis the bounds hold for domains alone, and while there is a budget.
	SetAhead(to Ahead)

	// SetAddresses makes URL Frontier clients keep the pace of sites and addresses, in queues whose
	// key is the host; nil: they do not. The store gives out a queue when its site and its address may
	// be requested. The queue counts as an open request there while clients have URLs of it. Each URL
	// that the store gives out puts off the next one by the gap. No call waits for a look-up.
	SetAddresses(of Addresses)
}

// Ahead bounds the documents that the daemon's slots have of a queue or domain that takes turns; 0: any number.
type Ahead struct {
	Queue   int // of a queue whose links take turns by their shapes
	Domain  int // of a registered domain of a crawl
	Waiting int // of a domain that is over its budget
}

// Round is the state of a registered domain of a crawl that has overrun its budget.
type Round struct {
	Crawl  string `json:"-"` // as stores name it: "" is DEFAULT
	Domain string `json:"domain"`
	Round  uint32 `json:"round"`               // how often it overran, less the rounds in which it did not
	Left   uint64 `json:"left"`                // pages of the crawl before its next round; 0: it has a round
	Wait   uint64 `json:"wait"`                // Left at the moment when it overran
	Waited int64  `json:"waited_ms,omitempty"` // how long it had waited at the crawl's last page
}

// Inspector counts, explains and lists settings.
type Inspector interface {
	// Stats counts what the store holds.
	Stats() StoreStats

	// HostStatus returns what is known of a host and why nothing of it is handed out now. It costs
	// O(queues with that host as key), of which it looks at a thousand at most.
	HostStatus(ctx context.Context, host []byte) (HostStatus, error)

	// Settings visits all settings in force, as Set takes them, until visit returns false: first
	// those of all queues, then those of hosts, then the others. The Setting is valid during visit
	// only.
	Settings(ctx context.Context, visit func(*Setting) bool) error
}

// RemoteLease is the lease of documents that a store gives to other daemons over HTTP, by
// CONTRACT.md.
const RemoteLease = 10 * time.Minute

// PutResult counts the URLs of one Put by verdict.
type PutResult struct {
	New, Known int // Known: stored before, updated or not
	Dropped    int // their crawls were stopped or have expired
	Refused    []Refusal
	OutOfScope int                  // not in the scopes of their crawls
	Rules      [scope.RuleCount]int // these by rule
}

// Verdict is what a store did with one URL of a Put.
type Verdict uint8

const (
	Unsettled Verdict = iota // not stored
	New                      // stored; was not known
	Same                     // known; unchanged
	Changed                  // known; updated
	Refused                  // not stored; a Refusal says why
	Dropped                  // not stored or updated: its crawl was stopped or has expired
	Outside                  // not stored: it is not in the scope of its crawl
)

// Refusal says why one URL of a Put was not stored.
type Refusal struct {
	Index int // in the Puts
	Err   error
}

// StoreStats counts what a store holds.
type StoreStats struct {
	Scheduled, InTransit, Completed int        // documents by state
	Hosts                           int        // queues; where clients give no keys, one per host and crawl
	Outcomes                        [Kinds]int // outcomes taken, by kind
	Bytes                           int64      // memory or disk used, without the runtime's overhead
}

// State is the state of a stored document.
type State uint8

const (
	Scheduled State = iota // to be handed out; left by Candidates, Lease and Serve
	InTransit              // handed out; left by its outcome, its return, or the end of its lease
	Completed              // has its outcome; left by an update that schedules it again
)

// String returns the state in words.
func (s State) String() string {
	return word(stateWords[:], int(s))
}

var stateWords = [...]string{Scheduled: "scheduled", InTransit: "in transit", Completed: "completed"}

// Document is a stored URL. Created replaces Put.Created, which is not set.
type Document struct {
	Put
	State   State
	Created time.Time // when it was first put, in whole seconds
	Last    LastOutcome
}

// Clone returns a copy of d that shares no memory with d, except Crawl.
func (d Document) Clone() Document {
	d.URL, d.Key, d.Metadata = bytes.Clone(d.URL), bytes.Clone(d.Key), bytes.Clone(d.Metadata)
	d.Unique, d.Payload = bytes.Clone(d.Unique), bytes.Clone(d.Payload)
	return d
}

// Kind is how a document ended.
type Kind uint8

const (
	Done       Kind = iota // a spider fetched it, well or not
	Timeout                // every attempt ended without a DONE
	Robots                 // robots.txt forbids it
	DNS                    // its host has no address that may be used
	Invalid                // its URL or DOC_ID cannot be used
	Stopped                // its crawl was stopped
	Expired                // its crawl has expired
	OutOfScope             // the scope of its crawl has changed, and refuses it

	Kinds = int(OutOfScope) + 1 // number of kinds
)

var kindWords = [Kinds]string{
	Done: "done", Timeout: "timeout", Robots: "robots", DNS: "dns",
	Invalid: "invalid", Stopped: "stopped", Expired: "expired", OutOfScope: "out_of_scope",
}

// String returns the contract's word for k.
func (k Kind) String() string {
	return word(kindWords[:], int(k))
}

// OfAttempt reports whether k is the end of an attempt to fetch the document. The other kinds say
// that the document is not to be fetched.
func (k Kind) OfAttempt() bool { return k == Done || k == Timeout || k == Robots || k == DNS }

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
