package docindex

import "net/netip"

// Addresses finds where requests to a host go and how fast they may. A store calls it while it
// holds locks: it returns at once. host is in the form of a URL.
type Addresses func(host []byte) HostAddress

// HostAddress is what [Addresses] knows of a host. The fields behind Retry belong to AddressKnown.
type HostAddress struct {
	State   AddressState
	Retry   int64      // of AddressAwaited: ask again after so many ms
	Addr    netip.Addr // where requests to the host go
	Network string     // what has AddressPace, if Addr has not: the shared network that Addr is in; "": Addr
	Site    string     // the site that a rule makes of several hosts; "": the host itself
	Blocked bool       // a rule blocks the host

	SitePace    Pace
	AddressPace Pace       // of Addr, or of Network
	NotBefore   int64      // nobody asks Addr before, in ms since 1970; 0: now
	Use         AddressUse // of Addr, or of Network; nil: nobody else uses it
	// Raises says that the address may be as fast as its sites if this is so of all its known
	// sites.
	Raises bool
}

// AddressUse is the right to give out URLs at an address, or on a shared network, which spiders and
// other daemons use, too. A store calls it while it holds locks: it returns at once.
type AddressUse interface {
	// Usable reports whether URLs may be given out now, and says that some are to be: waiting
	// queues wait for it. If not, ask again later.
	Usable(waiting int) bool
	// Holds reports whether URLs that were chosen may still be given out. It asks for nothing.
	Holds() bool
	// Share returns the part of a pace that may be used.
	Share(of Pace) Pace
	// Gave counts a URL that was given out.
	Gave()
	// SetOpen says of how many queues clients have URLs. When there are none, nobody is to be asked
	// before next, in ms since 1970, nor within gap ms.
	SetOpen(queues int, next, gap int64)
}

// Pace is how fast requests may go to a site, an address or a network.
type Pace struct {
	Gap  int64 // between two requests, ms
	Open int   // requests that may be open at once
}

// AddressState is how far a look-up is.
type AddressState uint8

// The states.
const (
	AddressKnown   AddressState = iota
	AddressAwaited              // it is being looked up, or a failed look-up is repeated later
	AddressBusy                 // too many look-ups are under way to begin this one
)
