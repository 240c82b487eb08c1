package sim

import (
	"net/netip"
	"time"

	"urlserver/hostslots"
)

// restarted records that the daemon died and another one has started, which knows what its index
// keeps: noted reports whether there is a note of an origin's robots.txt, backoffs are those of
// addresses.
//
// Everything counts as asked at the start. What a document's end said of its site holds on: until
// when it is to be left alone by then. An address backs off as it did.
func (o *oracle) restarted(noted func(origin string) bool, backoffs map[netip.Addr]hostslots.AddressBackoff) {
	for _, sp := range o.spiders {
		for _, tx := range sp.all {
			if !tx.finished {
				o.finish(tx)
			}
		}
	}
	clear(o.spiders)
	clear(o.open)
	clear(o.used) // names begin anew
	o.silences, o.ages, o.movers = nil, nil, nil
	for _, t := range o.fetches {
		if t.asks() {
			o.closed(t.host, t.to)
		}
		t.origin.host.fetching--
	}
	clear(o.fetches)
	clear(o.ended)
	clear(o.blockedFetches)
	o.asking, o.judging, o.judgesAt = false, false, 0
	o.disabledSince = [3]time.Duration{-1, -1, -1}
	o.forgetDocuments()
	for key, from := range o.origins {
		is := from.state
		keeps := noted(key) && from.noted && (is == read || is == absent || is == stale)
		if from.lastFetch, from.questionAt = 0, 0; !keeps {
			from.robotsState = robotsState{}
		}
		from.used, from.misses = false, 0
		from.unread, from.delay = max(from.unread, from.delay), 0
	}
	for _, h := range o.hosts {
		h.restart(o.now)
		h.backoff = 0
		h.delay, h.delayAt, h.going = 0, o.now, netip.Addr{}
		h.floor, h.told = h.told, 0
		o.release(h)
	}
	for _, g := range o.groups {
		g.restart(o.now)
		g.slow, g.failed, g.success = nil, nil, o.now
		if b := backoffs[g.addr]; g.kind != ofAddress || b.Gap < g.backoff {
			g.backoff = b.Gap
		}
	}
}

// restart forgets what the daemon has forgotten of a level.
func (l *level) restart(now time.Duration) {
	l.asked, l.last, l.took, l.tookAt = false, now, 0, 0
}

// forgetDocuments takes all documents from the daemon.
func (o *oracle) forgetDocuments() {
	for i := range o.docs {
		d := &o.docs[i]
		if d.held && !d.invalid {
			o.count(d.origin.host, -1)
		}
		*d = document{ever: d.ever, ended: d.ended}
	}
	o.held, o.answered, o.suspected = 0, 0, 0
	clear(o.overLimit)
}

// notedDelay records that the daemon has read the note of an origin, with its Crawl-delay.
func (o *oracle) notedDelay(key string) {
	from := o.origin(key + "/")
	from.delay, from.unread = max(from.delay, from.unread), 0
	if from.delay > from.host.delay {
		from.host.delay, from.host.delayAt = from.delay, o.now
		from.host.slow()
	}
}
