// Package hostslots decides which document may be sent now: host slots, their
// active ranges, pacing and timeouts.
//
// It holds every document that the daemon has taken and not yet ended. Documents
// queue by origin, origins belong to a host, hosts take turns within their
// host group (the hosts that share an IP), and a group works while it holds a
// slot. The documents of a slotted group beyond the slot's length, and those of
// groups without a slot, are the leftover (package leftover keeps count of
// them and the line for slots); they do not move when a place frees.
//
// That a group is never asked too often or too much at once is a matter of
// structure: a group stands in the heap of due groups only while it may be
// asked, keyed by the moment from which it may, and every request, the daemon's
// own for robots.txt too, takes it out of there.
//
// Pure: no goroutine, lock, clock, log or I/O. Time is an argument: a duration
// since the daemon's start on a monotonic clock, which never goes back. Not safe
// for concurrent use. After the structures have grown to their working size no
// call allocates.
package hostslots
