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
	Network string     // the shared network that Addr is in, which has AddressPace then; "": none, Addr has AddressPace
	Site    string     // the site that a rule makes of several hosts; "": the host itself
	Blocked bool       // a rule blocks the host

	SitePace    Pace
	AddressPace Pace       // of Addr, or of Network
	NotBefore   int64      // no request to Addr before this time, in ms since 1970; 0: from now on
	Use         AddressUse // of Addr, or of Network; nil: nobody else uses it
	// Raises says that the address may be as fast as its sites if this is so of all its known
	// sites.
	Raises bool
}

// AddressUse is the right to give out URLs at an address, or on a shared network, which spiders and
// other daemons use, too. A store calls it while it holds locks: it returns at once.
type AddressUse interface {
	// Usable reports whether URLs may be given out now. By the call the store also says that it has
	// URLs to give out, of waiting queues. If the result is false, it asks again later.
	Usable(waiting int) bool
	// Holds reports whether URLs that were chosen may still be given out. Unlike Usable, it does not
	// say that the store has more.
	Holds() bool
	// Share returns the part of a pace that may be used.
	Share(of Pace) Pace
	// Gave counts a URL that was given out.
	Gave()
	// SetOpen sets the number of queues of which clients have URLs. When it is 0, nobody may request
	// the address before next, in ms since 1970, nor within the next gap ms.
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
