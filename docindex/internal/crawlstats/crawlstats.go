// Package crawlstats counts the documents of crawls as they come and go, so that a report need not
// look at documents. It knows of a document only its crawl, its registered domain, its priority
// and its state.
//
// Stats are not safe for concurrent use.
package crawlstats

import (
	"strings"
	"time"

	"urlserver/internal/container/timeheap"

	"urlserver/docindex"
)

type appID struct{ spider, app string }

// State is the state of a document of a crawl.
type State uint8

const (
	Completed State = iota // completed
	Scheduled              // scheduled
	InSlots                // in transit, with the slots
	InClients              // in transit, with URL Frontier clients
	States
)

func (p State) pending() bool { return p == Scheduled || p == InSlots }

// Stats has the counts of all crawls. Use New.
type Stats struct {
	byID      map[docindex.CrawlID]*CrawlStats
	numbered  []*CrawlStats // by number
	freed     []uint32      // unused numbers
	apps      map[appID]*app
	due       timeheap.Heap        // crawls by when they are to be ended; a Duration is seconds since 1970
	idleSince timeheap.Heap        // crawls by when they had no open document any more, ms
	reports   uint64               // the number of the last report
	inFlight  []inFlightCount      // memory of the last report
	stopped   int                  // crawls
	sum       docindex.CrawlCounts // of all released crawls, without Pending and InTransit
}

// CrawlStats has the counts of a crawl.
type CrawlStats struct {
	ID            docindex.CrawlID
	No            uint32 // from 1 on; reused after Release
	Count         [States]uint64
	Purged        uint64 // of those completed: because the crawl was stopped
	Dropped       uint64 // put after that
	Sent          uint64 // hand-outs to clients and reported attempts of spiders, since the start
	Unreported    int    // ended because of the stop, not acknowledged yet
	Reported      int    // of these, those that ReportPurged last counted
	Expires       int64  // seconds since 1970; 0: never
	Stopped       bool
	Why           docindex.Kind // of the stop
	Epoch         uint64        // counts how often it got work when it had none
	ReportedEpoch uint64        // the last epoch whose end was acknowledged
	EndReported   bool          // the end of the stop was acknowledged

	app      *app
	domains  map[string]*Domain
	levels   PriorityCounts // pending documents
	loads    []load         // of its domains with pending documents, in no order
	top      uint64         // no load is larger; refreshed by reports
	inFlight reportMark
}

// Domain has the counts of a registered domain in a crawl.
type Domain struct {
	Name     string
	Crawl    *CrawlStats
	No       uint32         // for the store
	docs     uint64         // documents
	place    int            // index in its crawl's loads plus one; 0: nothing is pending
	levels   PriorityCounts // pending documents
	inFlight reportMark
}

// load is how many documents of a domain are pending; never 0. The loads of a crawl are in one
// slice, so that reports read it in one go.
type load struct {
	*Domain
	pending uint64
}

// app has the counts of an application at a spider.
type app struct {
	crawls  map[string]*CrawlStats // by crawl ID
	domains map[string]uint64      // pending documents of all crawls
	atSlots uint64                 // documents of all crawls
}

// New returns Stats without crawls.
func New() *Stats {
	return &Stats{numbered: make([]*CrawlStats, 1), byID: map[docindex.CrawlID]*CrawlStats{}, apps: map[appID]*app{}}
}

// Len returns the number of crawls.
func (l *Stats) Len() int { return len(l.byID) }

// Stopped returns the number of stopped crawls.
func (l *Stats) Stopped() int { return l.stopped }

// Find returns a crawl, or nil.
func (l *Stats) Find(id docindex.CrawlID) *CrawlStats { return l.byID[id] }

// At returns the crawl with a number, or nil.
func (l *Stats) At(no uint32) *CrawlStats {
	if int(no) >= len(l.numbered) {
		return nil
	}
	return l.numbered[no]
}

// Open returns a crawl, and adds it if there is none.
func (l *Stats) Open(id docindex.CrawlID) *CrawlStats {
	if b := l.byID[id]; b != nil {
		return b
	}
	no := uint32(len(l.numbered))
	if n := len(l.freed); n > 0 {
		no, l.freed = l.freed[n-1], l.freed[:n-1]
	} else {
		l.numbered = append(l.numbered, nil)
	}
	return l.add(no, id)
}

// Restore adds a crawl with a number that no other has. Restored has to follow once all are added.
func (l *Stats) Restore(no uint32, id docindex.CrawlID) *CrawlStats {
	for int(no) >= len(l.numbered) {
		l.numbered = append(l.numbered, make([]*CrawlStats, max(64, len(l.numbered)/2))...)
	}
	return l.add(no, id)
}

// Restored completes the crawls that Restore added. Crawls that expire or are stopped, and have
// documents to end or an end to report, are due. Crawls whose end is unreported count as idle from
// now on, in ms.
func (l *Stats) Restored(now int64) {
	for no := 1; no < len(l.numbered); no++ {
		b := l.numbered[no]
		switch {
		case b == nil:
			l.freed = append(l.freed, uint32(no))
			continue
		case b.Stopped:
			l.stopped++
			b.Unreported = int(b.Purged)
			if b.Count[Scheduled] > 0 || b.Why == docindex.Expired && !b.EndReported {
				l.due.Set(b.No, 0)
			}
		default:
			if b.Expires > 0 {
				l.due.Set(b.No, time.Duration(b.Expires))
			}
			if b.Open() == 0 && b.ReportedEpoch < b.Epoch {
				l.idleSince.Set(b.No, time.Duration(now))
			}
		}
		b.Sent = 0 // what clients have was sent before the start
	}
}

func (l *Stats) add(no uint32, id docindex.CrawlID) *CrawlStats {
	key := appID{strings.Clone(id.Spider), strings.Clone(id.App)}
	a := l.apps[key]
	if a == nil {
		a = &app{crawls: map[string]*CrawlStats{}, domains: map[string]uint64{}}
		l.apps[key] = a
	}
	b := &CrawlStats{ID: docindex.CrawlID{Spider: key.spider, App: key.app, Crawl: strings.Clone(id.Crawl)},
		No: no, app: a, domains: map[string]*Domain{}}
	l.numbered[no] = b
	l.byID[b.ID], a.crawls[b.ID.Crawl] = b, b
	return b
}

// Release removes a crawl that has nothing to tell any more, and returns whether it did.
func (l *Stats) Release(b *CrawlStats) bool {
	if b.Stopped || b.size() > 0 {
		return false
	}
	l.due.Remove(b.No)
	l.idleSince.Remove(b.No)
	l.sum.Dropped += b.Dropped
	l.sum.Sent += b.Sent
	delete(l.byID, b.ID)
	delete(b.app.crawls, b.ID.Crawl)
	if len(b.app.crawls) == 0 {
		delete(l.apps, appID{b.ID.Spider, b.ID.App})
	}
	l.numbered[b.No] = nil
	l.freed = append(l.freed, b.No)
	return true
}

// Pending returns how many documents are scheduled or with the slots.
func (b *CrawlStats) Pending() uint64 { return b.Count[Scheduled] + b.Count[InSlots] }

// Open returns how many documents are not completed.
func (b *CrawlStats) Open() uint64 { return b.Pending() + b.Count[InClients] }

// Done returns how many documents are completed, but for those purged.
func (b *CrawlStats) Done() uint64 { return b.Count[Completed] - b.Purged }

func (b *CrawlStats) size() uint64 { return b.Open() + b.Count[Completed] }

// Has reports whether a crawl has documents of a domain.
func (b *CrawlStats) Has(domain string) bool { return b.domains[domain] != nil }

// Enter adds n completed documents to a domain of a crawl.
func (l *Stats) Enter(b *CrawlStats, domain string, n uint64) *Domain {
	d := b.domains[domain]
	if d == nil {
		d = &Domain{Name: strings.Clone(domain), Crawl: b}
		b.domains[d.Name] = d
	}
	d.docs += n
	b.Count[Completed] += n
	return d
}

// Fill adds scheduled documents to a domain, by priority, and returns their number.
func (l *Stats) Fill(d *Domain, lined *PriorityCounts) (n uint64) {
	b := d.Crawl
	lined.Each(func(_ int32, some uint64) { n += some })
	d.docs += n
	b.Count[Scheduled] += n
	d.change(n)
	d.levels.AddAll(lined)
	b.levels.AddAll(lined)
	b.app.domains[d.Name] += n
	return n
}

// Leave removes n completed documents. gone: the domain has none left and was removed; the crawl
// may then be released.
func (l *Stats) Leave(d *Domain, n uint64) (gone bool) {
	d.Crawl.Count[Completed] -= n
	if d.docs -= n; d.docs > 0 {
		return false
	}
	delete(d.Crawl.domains, d.Name)
	return true
}

// Move counts n documents of a priority that changed their state. now is in ms.
func (l *Stats) Move(d *Domain, priority int32, from, to State, n uint64, now int64) {
	if from == to || n == 0 {
		return
	}
	b := d.Crawl
	was := b.Open()
	b.Count[from] -= n
	b.Count[to] += n
	if from == InSlots {
		b.app.atSlots -= n
	} else if to == InSlots {
		b.app.atSlots += n
	}
	if to == InClients {
		b.Sent += n
	}
	switch {
	case to.pending() && !from.pending():
		b.countPending(d, priority, n)
	case from.pending() && !to.pending():
		b.countPending(d, priority, -n)
	}
	switch is := b.Open(); {
	case was == 0 && is > 0:
		b.Epoch++
		l.idleSince.Remove(b.No)
	case was > 0 && is == 0 && !b.Stopped:
		l.idleSince.Set(b.No, time.Duration(now))
	}
}

// countPending adds n to the pending documents; n may be negative, as two's complement.
func (b *CrawlStats) countPending(d *Domain, priority int32, n uint64) {
	d.change(n)
	d.levels.Add(priority, n)
	b.levels.Add(priority, n)
	if sum := b.app.domains[d.Name] + n; sum != 0 {
		b.app.domains[d.Name] = sum
	} else {
		delete(b.app.domains, d.Name)
	}
}

// change adds to the pending documents of a domain.
func (d *Domain) change(by uint64) {
	b := d.Crawl
	if d.place == 0 {
		b.loads = append(b.loads, load{Domain: d})
		d.place = len(b.loads)
	}
	one := &b.loads[d.place-1]
	if one.pending += by; one.pending > 0 {
		b.top = max(b.top, one.pending)
		return
	}
	last := b.loads[len(b.loads)-1]
	b.loads[d.place-1] = last
	last.place = d.place
	b.loads = b.loads[:len(b.loads)-1]
	d.place = 0
}

// pending returns the pending documents of a domain.
func (d *Domain) pending() uint64 {
	if d.place == 0 {
		return 0
	}
	return d.Crawl.loads[d.place-1].pending
}
