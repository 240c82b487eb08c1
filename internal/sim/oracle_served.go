package sim

import (
	"net/netip"
	"strconv"
	"time"
)

// service is the state of an oracle that also checks that troubles of some hosts do not delay the
// others.
//
// Its clock runs while a host without trouble could be served: sending is not disabled, name
// servers answer, and a spider whose process is well has room and no suspects. From the moment at
// which a document of such a host comes due until the document ends, the clock may run for
// patience, plus paces times the time that the requests sent to its site and to its address
// meanwhile take at the pace of each. So a document may wait for others there, and for nothing
// else.
type service struct {
	clock time.Duration
	debts []debt // by document
}

// debt is the state of the service, the site and the address when a document came due.
type debt struct {
	site  *level // nil: nothing
	above *level
	due   bool
	since time.Duration
	clock time.Duration // of the service
	work  time.Duration // of site and address
}

const (
	paces    = 3               // times the pace of its site and its address that serving may take
	ordinary = 2 * time.Second // more than a request to a host without trouble takes
	toKnow   = 3 * time.Minute // for look-up and robots.txt, with what remains of pauses after an outage
)

// patience returns how long a document may wait in addition to the time that the pace of its site
// and its address takes. The daemon asks the index, looks up the host and fetches its robots.txt.
// Spiders may be lost with the document as often as it may be sent, and twice more.
func (o *oracle) patience() time.Duration {
	return o.set.askRetry + toKnow + time.Duration(o.set.attempts+2)*o.set.statusTimeout
}

// owe begins to check the documents of a host at an address.
func (o *oracle) owe(docs []uint32, name string, addr netip.Addr) {
	for _, n := range docs {
		o.service.debts[n].site, o.service.debts[n].above = &o.host(name).level, &o.address(addr).level
	}
}

// allWork returns the time that all requests take that a document may have waited for.
func (d *debt) allWork() time.Duration { return d.site.work + d.above.work }

// pass advances the clock of the service, if hosts without trouble could be served in that time.
func (o *oracle) pass(d time.Duration, can bool) {
	for _, from := range o.disabledSince {
		can = can && from < 0
	}
	if can {
		o.service.clock += d
	}
}

// due records that a document has come due.
func (o *oracle) due(n uint32) {
	if o.service == nil {
		return
	}
	if d := &o.service.debts[n]; d.site != nil && !d.due { // it may have been due before, and been given back
		d.due, d.since, d.clock, d.work = true, o.now, o.service.clock, d.allWork()
	}
}

// servedBy checks that a document that ends now has not waited too long.
func (o *oracle) servedBy(id string, d *document) {
	if o.service == nil {
		return
	}
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return // the oracle has complained
	}
	owed := &o.service.debts[n]
	if owed.site == nil {
		return
	}
	most := o.patience()
	if d.lost { // it may wait for others that were lost, each of which has a spider to itself
		most += time.Duration(o.set.attempts) * o.set.maxFetch
	}
	waited, work := o.service.clock-owed.clock, owed.allWork()-owed.work
	if most += paces * work; waited > most {
		o.wrong(RuleServed, "document %s of %s ends %v after it came due, %v of which it could have "+
			"been served in; requests that take %v have left to its site and "+
			"address meanwhile; it may take %v",
			id, d.origin.host.name, o.now-owed.since, waited, work, most)
	}
	o.report.Served++
	o.report.LongestWait = max(o.report.LongestWait, waited-paces*work)
}
