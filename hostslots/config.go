package hostslots

import "time"

// Config is what the slots are told of the settings. All fields are needed
// unless said otherwise.
type Config struct {
	Count         int           // slots; fixed for the life of a Slots
	Len           int           // documents a slot holds, those at a spider among them
	Concurrent    int           // open requests a group
	MaxConcurrent int           // open requests a group, where Limits allow more; less than Concurrent: as Concurrent
	Gap           time.Duration // between two requests to a group; 0: none
	StatusTimeout time.Duration // without a status a transaction is overdue
	MaxFetch      time.Duration // a transaction is overdue after that, whatever its statuses; 0: never
	MaxAttempts   int           // attempts that a document may have, at most 1023; Back says which sends are attempts
	DelayFactor   float64       // times the last fetch's time; 0: off
	MaxDelay      time.Duration // the most that DelayFactor asks for
	Patience      time.Duration // a group that may not be asked for longer gives its slot up where others wait
	RejectOver    int           // documents on one group before its hosts are rejected
	Remember      int           // hosts without documents to keep in memory once they have cooled down
	Leases        bool          // groups may be asked only while they are claimed; fixed for the life of a Slots
	CountDocs     bool          // the caller takes Recounted, Documents and Crawls; fixed, too
	Generation    uint32        // first generation of transactions; differs from one start of the daemon to the next
}

const (
	maxAttempts   = 1<<10 - 1      // what a document can count
	maxBackoff    = 64             // times the ordinary gap: what doubling leads to
	maxRetryAfter = time.Hour      // the most that a Retry-After asks for
	backoffMemory = 24 * time.Hour // how long a quiet group's backing off is remembered
)

// Trans names a transaction: one sending of a document to a spider.
type TransID struct{ Slot, Active, Generation uint32 }

// Verdict says what a transaction's name stands for.
type TransState uint8

const (
	Unknown TransState = iota // no transaction ever had this name
	Stale                     // it has ended: by a status, a timeout, or its spider's end
	Live                      // it goes on
)
