// Package crawlstats counts what crawls have, as their documents come and go, so that nobody has to look at documents to tell.
// It knows of a document only its crawl, its registered domain, its priority and where it is; the rest is the store's.
//
// Books are not safe for concurrent use.
package crawlstats

import (
	"strings"
	"time"

	"urlserver/internal/container/timeheap"

	"urlserver/docindex"
)

type appID struct{ spider, app string }

// Place is where a document of a crawl is.
type Place uint8

const (
	Ended     Place = iota // completed
	Lined                  // scheduled
	AtSlots                // in transit, taken by the slots
	AtClients              // in transit, taken by a call
	Places
)

func (p Place) pending() bool { return p == Lined || p == AtSlots }

// Books are those of all crawls. Use New.
type Books struct {
	byID     map[docindex.CrawlID]*Book
	numbered []*Book  // by number
	freed    []uint32 // numbers of books that are no more
	apps     map[appID]*app
	due      timeheap.Heap        // books by the time when they are to be ended; a Duration stands for seconds since 1970
	quiet    timeheap.Heap        // books by the time since when nothing was open, in ms
	surveys  uint64               // numbers surveys
	absent   []absence            // what the last one has used
	refused  int                  // books
	sum      docindex.CrawlCounts // of all that are no more; Pending and InTransit are not kept
}

// Book is what is kept of a crawl.
type Book struct {
	ID      docindex.CrawlID
	No      uint32 // from 1 on; given again after Release
	Count   [Places]uint64
	Purged  uint64 // of those that are Ended: because the crawl was refused
	Dropped uint64 // came after that
	Sent    uint64 // times that documents went to clients, and to spiders that have told how they ended; since the start
	Untold  int    // ended because it was refused, and nobody was told yet
	Answer  int    // of these, what was answered last to who asked
	Expires int64  // seconds since 1970; 0: never
	Refused bool
	Why     docindex.Kind // of the refusal
	Round   uint64        // counts the times that it got work when it had none
	Told    uint64        // the last round of whose end somebody was told
	ToldEnd bool          // somebody was told that it was refused, and how much ended because of that

	app     *app
	domains map[string]*Domain
	levels  Levels // pending documents
	loads   []load // of its domains that have something pending, in no order
	top     uint64 // none of loads is more; refreshed by surveys
	absent  mark
}

// Domain is what is kept of a crawl's registered domain.
type Domain struct {
	Name   string
	Book   *Book
	No     uint32 // free for the store's use
	docs   uint64 // members
	place  int    // in its book's loads, plus one; 0: nothing is pending
	levels Levels // pending documents
	absent mark
}

// load is what is pending of a domain; it is never 0. Loads stand side by side, for surveys to look at all of a book's.
type load struct {
	*Domain
	pending uint64
}

// app is what is kept of an application at a spider.
type app struct {
	books   map[string]*Book  // by crawl ID
	domains map[string]uint64 // pending documents of all crawls
	atSlots uint64            // documents of all crawls
}

// New returns empty books.
func New() *Books {
	return &Books{numbered: make([]*Book, 1), byID: map[docindex.CrawlID]*Book{}, apps: map[appID]*app{}}
}

// Len is how many books there are.
func (l *Books) Len() int { return len(l.byID) }

// Refused is how many crawls are refused.
func (l *Books) Refused() int { return l.refused }

// Find returns the book of a crawl, or nil.
func (l *Books) Find(id docindex.CrawlID) *Book { return l.byID[id] }

// At returns the book of a number; nil: there is none.
func (l *Books) At(no uint32) *Book {
	if int(no) >= len(l.numbered) {
		return nil
	}
	return l.numbered[no]
}

// Open returns the book of a crawl, and makes it where there is none.
func (l *Books) Open(id docindex.CrawlID) *Book {
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

// Restore makes a book with a number that no other has. When all are made, Restored has to follow.
func (l *Books) Restore(no uint32, id docindex.CrawlID) *Book {
	for int(no) >= len(l.numbered) {
		l.numbered = append(l.numbered, make([]*Book, max(64, len(l.numbered)/2))...)
	}
	return l.add(no, id)
}

// Restored makes what follows from the books: those that expire or are refused, and have something left to end or to tell,
// are due; those of whose end nobody was told are quiet from now on, in ms.
func (l *Books) Restored(now int64) {
	for no := 1; no < len(l.numbered); no++ {
		b := l.numbered[no]
		switch {
		case b == nil:
			l.freed = append(l.freed, uint32(no))
			continue
		case b.Refused:
			l.refused++
			b.Untold = int(b.Purged)
			if b.Count[Lined] > 0 || b.Why == docindex.Expired && !b.ToldEnd {
				l.due.Set(b.No, 0)
			}
		default:
			if b.Expires > 0 {
				l.due.Set(b.No, time.Duration(b.Expires))
			}
			if b.Open() == 0 && b.Told < b.Round {
				l.quiet.Set(b.No, time.Duration(now))
			}
		}
		b.Sent = 0 // what clients have went to them before
	}
}

func (l *Books) add(no uint32, id docindex.CrawlID) *Book {
	key := appID{strings.Clone(id.Spider), strings.Clone(id.App)}
	a := l.apps[key]
	if a == nil {
		a = &app{books: map[string]*Book{}, domains: map[string]uint64{}}
		l.apps[key] = a
	}
	b := &Book{ID: docindex.CrawlID{Spider: key.spider, App: key.app, Crawl: strings.Clone(id.Crawl)}, No: no, app: a, domains: map[string]*Domain{}}
	l.numbered[no] = b
	l.byID[b.ID], a.books[b.ID.Crawl] = b, b
	return b
}

// Release forgets a book that says nothing any more, and answers whether it did.
func (l *Books) Release(b *Book) bool {
	if b.Refused || b.size() > 0 {
		return false
	}
	l.due.Remove(b.No)
	l.quiet.Remove(b.No)
	l.sum.Dropped += b.Dropped
	l.sum.Sent += b.Sent
	delete(l.byID, b.ID)
	delete(b.app.books, b.ID.Crawl)
	if len(b.app.books) == 0 {
		delete(l.apps, appID{b.ID.Spider, b.ID.App})
	}
	l.numbered[b.No] = nil
	l.freed = append(l.freed, b.No)
	return true
}

// Pending is how many documents are scheduled, or at the slots.
func (b *Book) Pending() uint64 { return b.Count[Lined] + b.Count[AtSlots] }

// Open is how many documents are not completed.
func (b *Book) Open() uint64 { return b.Pending() + b.Count[AtClients] }

// Done is how many documents are completed, but for those purged.
func (b *Book) Done() uint64 { return b.Count[Ended] - b.Purged }

func (b *Book) size() uint64 { return b.Open() + b.Count[Ended] }

// Has reports whether a crawl has documents of a domain.
func (b *Book) Has(domain string) bool { return b.domains[domain] != nil }

// Enter counts so many documents, which are Ended so far, as members of a crawl's domain.
func (l *Books) Enter(b *Book, domain string, n uint64) *Domain {
	d := b.domains[domain]
	if d == nil {
		d = &Domain{Name: strings.Clone(domain), Book: b}
		b.domains[d.Name] = d
	}
	d.docs += n
	b.Count[Ended] += n
	return d
}

// Fill counts documents as members of a crawl's domain that are Lined since before the books were made, and how many.
func (l *Books) Fill(d *Domain, lined *Levels) (n uint64) {
	b := d.Book
	lined.Each(func(_ int32, some uint64) { n += some })
	d.docs += n
	b.Count[Lined] += n
	d.change(n)
	d.levels.AddAll(lined)
	b.levels.AddAll(lined)
	b.app.domains[d.Name] += n
	return n
}

// Leave ends the membership of so many documents that are Ended. gone says that the domain is none any more; the book may
// be to be released.
func (l *Books) Leave(d *Domain, n uint64) (gone bool) {
	d.Book.Count[Ended] -= n
	if d.docs -= n; d.docs > 0 {
		return false
	}
	delete(d.Book.domains, d.Name)
	return true
}

// Move counts so many documents of a priority that have changed their place. now is in ms.
func (l *Books) Move(d *Domain, priority int32, from, to Place, n uint64, now int64) {
	if from == to || n == 0 {
		return
	}
	b := d.Book
	was := b.Open()
	b.Count[from] -= n
	b.Count[to] += n
	if from == AtSlots {
		b.app.atSlots -= n
	} else if to == AtSlots {
		b.app.atSlots += n
	}
	if to == AtClients {
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
		b.Round++
		l.quiet.Remove(b.No)
	case was > 0 && is == 0 && !b.Refused:
		l.quiet.Set(b.No, time.Duration(now))
	}
}

// countPending counts so many documents more that are pending; fewer, where n is negative.
func (b *Book) countPending(d *Domain, priority int32, n uint64) {
	d.change(n)
	d.levels.Add(priority, n)
	b.levels.Add(priority, n)
	if sum := b.app.domains[d.Name] + n; sum != 0 {
		b.app.domains[d.Name] = sum
	} else {
		delete(b.app.domains, d.Name)
	}
}

// change counts what is pending of a domain.
func (d *Domain) change(by uint64) {
	b := d.Book
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

// pending is what is pending of a domain.
func (d *Domain) pending() uint64 {
	if d.place == 0 {
		return 0
	}
	return d.Book.loads[d.place-1].pending
}
