package sim

import (
	"net/netip"
	"strconv"
	"time"
)

// service is what an oracle keeps that wants hosts without trouble to be served whatever others do.
//
// Its clock runs while such a host could be served: sending is not paused, choked or stopped, name servers answer, and a
// spider whose process is well has room and is not busy with documents that may have killed one. From when a document of
// such a host comes due until it ends, the clock may run for patience, and for paces times as long as the requests to its
// group that left meanwhile take at the group's own pace. So a document may wait behind others of its own group, and not
// behind anything else.
type service struct {
	clock time.Duration
	debts []debt // by document
}

// debt is what is owed to a document since it came due.
type debt struct {
	group *group // nil: nothing
	due   bool
	since time.Duration
	clock time.Duration // of the service
	work  time.Duration // of the group
}

const (
	paces    = 3               // times the pace of its group that serving may take
	ordinary = 2 * time.Second // more than a request to a host without trouble takes
	toKnow   = 3 * time.Minute // for look-up and robots.txt, with what remains of pauses after an outage
)

// patience is how long a document may wait besides the time that its group's pace takes: the index is asked, the host's
// name and its robots.txt are, and spiders may be lost with it as often as it may be sent, and twice more.
func (o *oracle) patience() time.Duration {
	return o.set.askRetry + toKnow + time.Duration(o.set.attempts+2)*o.set.statusTimeout
}

// owe has documents be owed service that are of a host at an address.
func (o *oracle) owe(docs []uint32, addr netip.Addr) {
	g := o.group(addr.String())
	for _, n := range docs {
		o.service.debts[n].group = g
	}
}

// pass lets time pass, in which hosts without trouble can be served, or not.
func (o *oracle) pass(d time.Duration, can bool) {
	for _, from := range o.muteSince {
		can = can && from < 0
	}
	if can {
		o.service.clock += d
	}
}

// due hears that a document has come due.
func (o *oracle) due(n uint32) {
	if o.service == nil {
		return
	}
	if d := &o.service.debts[n]; d.group != nil && !d.due { // it may have been due before, and been given back
		d.due, d.since, d.clock, d.work = true, o.now, o.service.clock, d.group.work
	}
}

// servedBy checks that a document which ends now has not waited for too long.
func (o *oracle) servedBy(id string, d *document) {
	if o.service == nil {
		return
	}
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return // the oracle has complained
	}
	owed := &o.service.debts[n]
	if owed.group == nil {
		return
	}
	most := o.patience()
	if d.lost { // it may wait for others that were lost, each of which has a spider to itself
		most += time.Duration(o.set.attempts) * o.set.maxFetch
	}
	waited, work := o.service.clock-owed.clock, owed.group.work-owed.work
	if most += paces * work; waited > most {
		o.wrong(RuleServed, "document %s of %s ends %v after it came due, %v of which it could have been served in; %v of requests to its group have left meanwhile; it may take %v",
			id, d.origin.host.name, o.now-owed.since, waited, work, most)
	}
	o.figures.Owed++
	o.figures.Longest = max(o.figures.Longest, waited-paces*work)
}
