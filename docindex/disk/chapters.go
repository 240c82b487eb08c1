package disk

import (
	"bytes"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
)

// chapter is what a crawl has of a registered domain in a queue. Documents name their chapter, so that the books of crawls
// can be brought up to date without a look at others, also when a queue is deleted as a whole.
type chapter struct {
	domain        *crawlstats.Domain
	queue         uint32            // number in doors
	next, prev    uint32            // of the queue
	open          crawlstats.Levels // documents that are not completed, by priority
	docs          uint64            // all
	away          crawlstats.Levels // of open, those in transit
	ended, purged uint64            // completed; of these because the crawl was refused

	// over says that the crawl is refused, and that what is scheduled of the chapter has ended by that, but for strays. The rows
	// of these documents are as before until the chapter is cleared, see clearing: so a crawl ends at once, however many it has.
	over   bool
	scan   uint64            // the first scan that clears the chapter; 0: it does not wait for one
	strays map[name]struct{} // scheduled documents that came back since from where they were in transit
}

// crawls is what a store keeps of crawls. Its rows are written with the documents' that change it.
type crawls struct {
	books    *crawlstats.Books
	chapters []*chapter // by number, which is the same on disk
	free     []uint32   // numbers of chapters that are no more
	of       map[chapterKey]uint32
	strayed  map[uint32]struct{} // chapters with strays
	onDelete func(*docindex.Outcomes)

	dirtyBooks    map[uint32]struct{} // changed by the txn, as are these
	dirtyChapters map[uint32]struct{}
	dirtyLevels   map[levelKey]struct{}
}

type chapterKey struct {
	queue  uint32
	domain *crawlstats.Domain
}

// levelKey is some priorities of a chapter, which share a row.
type levelKey struct {
	chapter uint32
	range_  int32
}

const rangeBits = 7 // priorities that share a row differ in so many bits at most

func newCrawls() crawls {
	return crawls{
		books: crawlstats.New(), chapters: make([]*chapter, 1), of: map[chapterKey]uint32{}, strayed: map[uint32]struct{}{},
		dirtyBooks: map[uint32]struct{}{}, dirtyChapters: map[uint32]struct{}{}, dirtyLevels: map[levelKey]struct{}{},
	}
}

// enterCrawlLocked makes a document, which counts as completed so far, a member of the crawl that p names. It returns the
// number of its chapter; 0: p names none.
func (s *Store) enterCrawlLocked(queue uint32, p *docindex.Put) uint32 {
	id, _, ok := docindex.CrawlOf(p)
	if !ok {
		return 0
	}
	b := s.crawls.books.Find(id)
	if b == nil {
		b = s.crawls.books.Open(id)
		s.crawls.dirtyBooks[b.No] = struct{}{}
	}
	host := docindex.HostOf(p.URL)
	if len(host) == 0 {
		host = s.doors.Key(queue)
	}
	d := s.crawls.books.Enter(b, crawlstats.Registered(string(host)), 1)
	no := s.crawls.of[chapterKey{queue, d}]
	if no == 0 {
		no = s.newChapter(queue, d)
	}
	c := s.crawls.chapters[no]
	c.docs++
	c.ended++
	s.crawls.dirtyChapters[no] = struct{}{}
	return no
}

// sayEndLocked notes when the crawl of a document expires, if that was put with it.
func (s *Store) sayEndLocked(d *doc, p *docindex.Put) {
	id, expires, ok := docindex.ExpiryOf(p)
	if !ok || d.member == 0 {
		return
	}
	if b := s.crawls.chapters[d.member].domain.Book; b.ID == id && s.crawls.books.ExpireAt(b, expires) {
		s.crawls.dirtyBooks[b.No] = struct{}{}
	}
}

func (s *Store) newChapter(queue uint32, d *crawlstats.Domain) uint32 {
	no := uint32(len(s.crawls.chapters))
	if n := len(s.crawls.free); n > 0 {
		no, s.crawls.free = s.crawls.free[n-1], s.crawls.free[:n-1]
	} else {
		s.crawls.chapters = append(s.crawls.chapters, nil)
	}
	s.addChapter(no, &chapter{domain: d, queue: queue})
	return no
}

func (s *Store) addChapter(no uint32, c *chapter) {
	s.crawls.chapters[no] = c
	s.crawls.of[chapterKey{c.queue, c.domain}] = no
	q := &s.queues[c.queue]
	if c.next = q.chapters; c.next != 0 {
		s.crawls.chapters[c.next].prev = no
	}
	q.chapters = no
}

// shiftLocked counts a document that has changed its place.
func (s *Store) shiftLocked(no uint32, priority int32, from, to crawlstats.Place, now int64) {
	if no != 0 && from != to {
		s.shiftSomeLocked(no, priority, from, to, 1, now)
	}
}

func (s *Store) shiftSomeLocked(no uint32, priority int32, from, to crawlstats.Place, n uint64, now int64) {
	c := s.crawls.chapters[no]
	b := c.domain.Book
	round := b.Round
	s.crawls.books.Move(c.domain, priority, from, to, n, now)
	if b.Round != round {
		s.crawls.dirtyBooks[b.No] = struct{}{}
	}
	if inTransit(from) {
		c.away.Add(priority, -n)
	}
	if inTransit(to) {
		c.away.Add(priority, n)
	}
	if from != crawlstats.Ended && to != crawlstats.Ended {
		return // on disk that is the same
	}
	if to == crawlstats.Ended {
		n = -n
	}
	c.open.Add(priority, n)
	c.ended -= n
	s.crawls.dirtyChapters[no] = struct{}{}
	s.crawls.dirtyLevels[levelKey{no, priority >> rangeBits}] = struct{}{}
	s.clearLaterLocked(no)
}

func inTransit(p crawlstats.Place) bool { return p == crawlstats.AtSlots || p == crawlstats.AtClients }

// purgedLocked counts one that ended because its crawl was refused; or no longer, where by is negative.
func (s *Store) purgedLocked(no uint32, kind uint8, by uint64) {
	if no == 0 || kind != uint8(docindex.Stopped) && kind != uint8(docindex.Expired) {
		return
	}
	c := s.crawls.chapters[no]
	c.purged += by
	c.domain.Book.Purged += by
	s.crawls.dirtyChapters[no] = struct{}{}
}

// leaveCrawlLocked ends the membership of a document that counts as completed; kind is how it is.
func (s *Store) leaveCrawlLocked(no uint32, kind uint8) {
	if no == 0 {
		return
	}
	s.purgedLocked(no, kind, ^uint64(0))
	c := s.crawls.chapters[no]
	c.docs--
	c.ended--
	s.crawls.dirtyChapters[no] = struct{}{}
	s.crawls.books.Leave(c.domain, 1)
	if c.docs == 0 {
		s.closeChapter(no)
	}
}

// closeChapter forgets a chapter without documents, and its crawl where that says nothing any more.
func (s *Store) closeChapter(no uint32) {
	c := s.crawls.chapters[no]
	if c.prev == 0 {
		s.queues[c.queue].chapters = c.next
	} else {
		s.crawls.chapters[c.prev].next = c.next
	}
	if c.next != 0 {
		s.crawls.chapters[c.next].prev = c.prev
	}
	delete(s.crawls.of, chapterKey{c.queue, c.domain})
	if c.over {
		s.txn.b.Delete(numberKey(overRow, no), nil)
		delete(s.crawls.strayed, no)
	}
	s.crawls.chapters[no] = nil
	s.crawls.free = append(s.crawls.free, no)
	if b := c.domain.Book; s.crawls.books.Release(b) {
		s.crawls.dirtyBooks[b.No] = struct{}{}
	}
}

// dropChaptersLocked forgets what crawls have in a queue that is gone, of which nothing is in transit any more.
func (s *Store) dropChaptersLocked(queue uint32, now int64) {
	for no := s.queues[queue].chapters; no != 0; no = s.queues[queue].chapters {
		c := s.crawls.chapters[no]
		c.open.Each(func(priority int32, n uint64) {
			s.crawls.books.Move(c.domain, priority, crawlstats.Lined, crawlstats.Ended, n, now)
			s.crawls.dirtyLevels[levelKey{no, priority >> rangeBits}] = struct{}{}
		})
		s.crawls.dirtyChapters[no] = struct{}{}
		c.domain.Book.Purged -= c.purged
		s.crawls.books.Leave(c.domain, c.docs)
		s.closeChapter(no)
	}
}

// refusedLocked reports whether nothing of a chapter's crawl is wanted any more.
func (s *Store) refusedLocked(no uint32) bool {
	return no != 0 && s.crawls.books.Refused() > 0 && s.crawls.chapters[no].domain.Book.Refused
}

// droppedLocked reports whether a URL is of a crawl that is refused. If it is known and its crawl wants it again, it ends.
func (s *Store) droppedLocked(queue uint32, n *name, d *doc, p *docindex.Put, now int64) (bool, error) {
	if s.crawls.books.Refused() == 0 || d != nil && p.Update && p.Due == docindex.Never {
		return false, nil
	}
	id, _, ok := docindex.CrawlOf(p)
	b := s.crawls.books.Find(id)
	if !ok || b == nil || !b.Refused {
		return false, nil
	}
	b.Dropped++
	s.crawls.dirtyBooks[b.No] = struct{}{}
	if d != nil && p.Update && !d.completed {
		return true, s.completeLocked(queue, *n, d, bytes.Clone(p.URL), noKind, now)
	}
	return true, nil
}

// rejoinLocked makes a document, of which there is news, a member of the crawl that these name. It counts as completed
// until it is scheduled.
func (s *Store) rejoinLocked(queue uint32, d *doc, p *docindex.Put, now int64) {
	was, kind := d.member, d.kind
	if !d.completed {
		s.shiftLocked(was, d.at.priority(), crawlstats.Lined, crawlstats.Ended, now)
		kind = noKind
	}
	d.member = s.enterCrawlLocked(queue, p) // before it leaves, so that a crawl of one document stays
	s.leaveCrawlLocked(was, kind)
}
