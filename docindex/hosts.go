package docindex

import (
	"errors"
	"time"

	"urlserver/docindex/internal/queuesched"
)

// HostLook is what a store knows of a host, by the queues that have its name for a key: URLs on it in queues of other names
// are told of only while they are out.
type HostLook struct {
	Counts
	Out     OutAt
	Blocked time.Time     // by an order, until then; zero: it is not
	Delay   time.Duration // by an order; 0: there is none
	AtSlots Turn          // of the queue that may be served first at the slots
	AtCalls Turn          // of that which may be served first by calls
	Partly  bool          // it has more queues than were looked at
}

// HostRule is what a rule says of a host.
type HostRule = queuesched.HostRule

// OutAt counts URLs on a host in transit: at slots, given to calls, lent to other daemons.
type OutAt struct{ Slots, Calls, Lent uint64 }

// Turn is when something may be given out.
type Turn struct {
	Open  bool      // now
	Not   time.Time // before; zero: not before something else happens, or it is open
	Why   string    // in words, by which rule; "": it is open
	Ruled bool      // by a rule that Obey was told of; Why has it as "a rule"
}

// Check tells whether there is such a setting for a host; it has nothing against others.
func (s *Setting) Check() error {
	if s.Host && (len(s.Key) == 0 || s.Which != SetDelay && s.Which != SetBlock) {
		return ErrNoHost
	}
	return nil
}

// ErrNoHost is returned by [Caller.Set] where what is to be set on a host cannot be.
var ErrNoHost = errors.New("a delay or a block can be set on a host that is named, nothing else")
