package disk

import (
	"bytes"

	"urlserver/docindex"
	"urlserver/docindex/internal/books"
)

// chapter is what a crawl has of a registered domain in a queue. Documents name their chapter, so that the books of crawls
// can be brought up to date without a look at others, also when a queue is deleted as a whole.
type chapter struct {
	domain        *books.Domain
	queue         uint32       // number in doors
	next, prev    uint32       // of the queue
	open          books.Levels // documents that are not completed, by priority
	docs          uint64       // all
	ended, purged uint64       // completed; of these because the crawl was refused
	lined         uint64       // scheduled and not in transit
}

// crawls is what a store keeps of crawls. Its rows are written with the documents' that change it.
type crawls struct {
	books    *books.Books
	chapters []*chapter // by number, which is the same on disk
	free     []uint32   // numbers of chapters that are no more
	of       map[chapterKey]uint32
	strays   []name // came back from where they were in transit when their crawl was refused
	onDelete func(*docindex.Outcomes)

	dirtyBooks    map[uint32]struct{} // changed by the txn, as are these
	dirtyChapters map[uint32]struct{}
	dirtyLevels   map[levelKey]struct{}
}

type chapterKey struct {
	queue  uint32
	domain *books.Domain
}

// levelKey is some priorities of a chapter, which share a row.
type levelKey struct {
	chapter uint32
	range_  int32
}

const rangeBits = 7 // priorities that share a row differ in so many bits at most

func newCrawls() crawls {
	return crawls{
		books: books.New(), chapters: make([]*chapter, 1), of: map[chapterKey]uint32{},
		dirtyBooks: map[uint32]struct{}{}, dirtyChapters: map[uint32]struct{}{}, dirtyLevels: map[levelKey]struct{}{},
	}
}

// enterCrawlLocked makes a document, which counts as completed so far, a member of the crawl that p names. It returns the
// number of its chapter; 0: p names none.
func (s *Store) enterCrawlLocked(queue uint32, p *docindex.Put) uint32 {
	id, expires, ok := docindex.CrawlOf(p)
	if !ok {
		return 0
	}
	b := s.crawls.books.Find(id)
	if b == nil {
		b = s.crawls.books.Open(id)
		s.crawls.dirtyBooks[b.No] = struct{}{}
	}
	if s.crawls.books.ExpireAt(b, expires) {
		s.crawls.dirtyBooks[b.No] = struct{}{}
	}
	host := docindex.HostOf(p.URL)
	if len(host) == 0 {
		host = s.doors.Key(queue)
	}
	d := s.crawls.books.Enter(b, books.Registered(string(host)), 1)
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

func (s *Store) newChapter(queue uint32, d *books.Domain) uint32 {
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
func (s *Store) shiftLocked(no uint32, priority int32, from, to books.Place, now int64) {
	if no == 0 || from == to {
		return
	}
	c := s.crawls.chapters[no]
	b := c.domain.Book
	round := b.Round
	s.crawls.books.Move(c.domain, priority, from, to, 1, now)
	if b.Round != round {
		s.crawls.dirtyBooks[b.No] = struct{}{}
	}
	if from == books.Lined {
		c.lined--
	}
	if to == books.Lined {
		c.lined++
	}
	if from != books.Ended && to != books.Ended {
		return // on disk that is the same
	}
	by := uint64(1)
	if to == books.Ended {
		by = ^uint64(0)
	}
	c.open.Add(priority, by)
	c.ended -= by
	s.crawls.dirtyChapters[no] = struct{}{}
	s.crawls.dirtyLevels[levelKey{no, priority >> rangeBits}] = struct{}{}
}

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
			s.crawls.books.Move(c.domain, priority, books.Lined, books.Ended, n, now)
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
func (s *Store) droppedLocked(queue uint32, n *name, d *doc, p *docindex.Put, now int64) bool {
	if s.crawls.books.Refused() == 0 || d != nil && p.Known && p.Due == docindex.Never {
		return false
	}
	id, _, ok := docindex.CrawlOf(p)
	b := s.crawls.books.Find(id)
	if !ok || b == nil || !b.Refused {
		return false
	}
	b.Dropped++
	s.crawls.dirtyBooks[b.No] = struct{}{}
	if d != nil && p.Known && !d.completed {
		s.completeLocked(queue, *n, d, bytes.Clone(p.URL), noKind, now)
	}
	return true
}

// rejoinLocked makes a document, of which there is news, a member of the crawl that these name. It counts as completed
// until it is scheduled.
func (s *Store) rejoinLocked(queue uint32, d *doc, p *docindex.Put, now int64) {
	was, kind := d.member, d.kind
	if !d.completed {
		s.shiftLocked(was, d.at.priority(), books.Lined, books.Ended, now)
		kind = noKind
	}
	d.member = s.enterCrawlLocked(queue, p) // before it leaves, so that a crawl of one document stays
	s.leaveCrawlLocked(was, kind)
}
