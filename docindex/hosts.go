package docindex

import (
	"errors"
	"time"
)

// HostStatus is what a store knows of a host, by the queues that have the host's name as key. URLs
// on the host in queues with other keys count only in Transit.
type HostStatus struct {
	Counts
	Transit    TransitCounts
	Blocked    time.Time     // by the operator, until then; zero: not blocked
	Delay      time.Duration // set by the operator; 0: none
	AtSlots    Availability  // of the queue from which the slots may be served first
	AtFrontier Availability  // of the queue from which URL Frontier clients may be served first
	Truncated  bool          // the host has more queues than were looked at

	// Site and Address are the paces that URL Frontier clients keep to the host's site, and to its
	// address or shared network. Address.Name is "" if the address is not known; see [Hooks.SetAddresses].
	Site, Address LevelStatus
}

// LevelStatus is the pace of a site, an address or a shared network for URL Frontier clients.
type LevelStatus struct {
	Level    WaitLevel
	Name     string
	Gap      time.Duration // in force
	Backoff  time.Duration // the gap while it backs off; 0: it does not
	Sites    string        // the sites that made an address back off
	Open     int           // queues of which clients have URLs
	MostOpen int           // how many may be open; 0: any number
	Last     time.Time     // when a URL was given to a client; zero: not since the start
	Next     time.Time     // no URL is given to a client before this time
}

// HostRule is what the daemon's rules say of a host. The slots apply the rules themselves; in the
// store the rules hold for URL Frontier clients, and for the slots after these.
type HostRule struct {
	Gap    int64 // between two requests, ms; 0: no rule sets it
	Barred bool  // URL Frontier clients are given nothing of it
}

// TransitCounts counts URLs on a host in transit by taker: the daemon's slots, URL Frontier
// clients, other daemons over HTTP.
type TransitCounts struct{ Slots, Frontier, Remote uint64 }

// Availability says when something may be handed out.
type Availability struct {
	Open      bool      // now
	NotBefore time.Time // zero: Open, or an event has to come first
	Wait      Wait      // the reason; NoWait if Open
}

// Check returns ErrNoHost if there is no such setting for a host. It accepts all other settings.
func (s *Setting) Check() error {
	if s.Host && (len(s.Key) == 0 || s.Kind != SetDelay && s.Kind != SetBlock) {
		return ErrNoHost
	}
	return nil
}

// ErrNoHost is returned by [Frontier.Set] for a setting that a host cannot have.
var ErrNoHost = errors.New("a delay or a block can be set on a host that is named, nothing else")
