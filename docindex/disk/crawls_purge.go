package disk

import (
	"context"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/queuesched"
)

const (
	purgeHold = 200       // chapters that a portion of a purge ends, which takes about 1 ms
	lookHold  = 10 * hold // chapters or transits that it looks at
	tellHold  = 500       // documents that it tells of
)

// PurgeCrawl is [docindex.Crawls.PurgeCrawl]. It is on disk once it returns, its portions now and then before.
func (s *Store) PurgeCrawl(ctx context.Context, id docindex.CrawlID, tell func(*docindex.Outcomes) (int, error)) (purged int, err error) {
	s.mu.Lock()
	b := s.crawls.books.Find(id)
	s.mu.Unlock()
	if b == nil || !b.Refused { // which it stays
		return 0, ctx.Err()
	}
	if err := s.endChapters(ctx, b); err != nil {
		return 0, err
	}
	if err := s.tellAtSlots(ctx, b, tell); err != nil {
		return 0, err
	}
	if err := s.sweep(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crawls.books.Purged(b), s.usableLocked()
}

// endedAtSlots counts documents of a refused crawl whose outcomes come later. They are not on disk as such: after a restart they count by
// these, or by what became of them without.
func (s *Store) endedAtSlots(b *crawlstats.Book, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Untold += n
}

// endChapters ends what is scheduled of a crawl.
func (s *Store) endChapters(ctx context.Context, b *crawlstats.Book) error {
	last := uint64(0)
	for next := uint32(1); next != 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if last, next, err = s.endSomeChapters(b, next); err != nil {
			return err
		}
		runtime.Gosched() // others wait for no more than a portion, also for the processor
	}
	return s.settle(nil, last)
}

// endSomeChapters does some of that, from a chapter on, in a commit that is not waited for. It returns that one's number, and
// the chapter to go on with, or 0.
func (s *Store) endSomeChapters(b *crawlstats.Book, from uint32) (last uint64, next uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.beginLocked(); err != nil {
		return 0, 0, err
	}
	now, left := s.now(), purgeHold
	for no := from; int(no) < len(s.crawls.chapters); no++ {
		if left == 0 || no == from+lookHold {
			next = no
			break
		}
		if c := s.crawls.chapters[no]; c != nil && c.domain.Book == b && c.docs > c.ended {
			s.endChapterLocked(no, now)
			left--
		}
	}
	err = s.commitLazilyLocked()
	return s.journal.no, next, err
}

// endChapterLocked ends what is scheduled of a chapter whose crawl is refused. What is in transit goes on.
func (s *Store) endChapterLocked(no uint32, now int64) {
	c := s.crawls.chapters[no]
	if !c.over {
		c.over = true
		s.txn.b.Set(numberKey(overRow, no), nil, nil)
	}
	lined := map[int32]uint64{}
	c.open.Each(func(priority int32, n uint64) { lined[priority] = n - c.away.Of(priority) })
	for priority, n := range lined {
		if n > 0 {
			s.endLinedLocked(no, priority, n, now)
		}
	}
	c.strays = nil
	delete(s.crawls.strayed, no)
	if s.doors.QueueTotal(c.queue).URLs[queuesched.Scheduled] == 0 { // nobody needs to go over its order
		s.queues[c.queue].cursor, s.queues[c.queue].early = lastPlace, window{}
		s.setDueLocked(c.queue, queuesched.Never, now)
	}
	s.doors.Refresh(c.queue, now) // its limit may be reached
}

// endLinedLocked ends so many documents of a priority that are scheduled in a chapter that is over.
func (s *Store) endLinedLocked(no uint32, priority int32, n uint64, now int64) {
	c := s.crawls.chapters[no]
	b := c.domain.Book
	s.shiftSomeLocked(no, priority, crawlstats.Lined, crawlstats.Ended, n, now)
	s.moveSome(c.queue, queuesched.Scheduled, queuesched.Completed, uint32(n))
	s.purgedLocked(no, uint8(b.Why), n)
	s.globals.outcomes[b.Why] += int(n)
	b.Untold += int(n)
}

// overLocked reports whether a document, whose row says that it is scheduled, has ended with its chapter.
func (s *Store) overLocked(n *name, d *doc) bool {
	if d.completed || d.member == 0 || !s.crawls.chapters[d.member].over || s.transitOf(n) != 0 {
		return false
	}
	_, stray := s.crawls.chapters[d.member].strays[*n]
	return !stray
}

// endsWithChapterLocked reports whether a document at the slots ends by an outcome as if it were scheduled and its chapter ended
// now, so that its rows may stay. Those of calls may be leased again after a restart, by their rows.
func (s *Store) endsWithChapterLocked(id uint32, why docindex.Kind) bool {
	t := s.transits.At(id)
	if t.member == 0 || t.door == queuesched.Calls {
		return false
	}
	c := s.crawls.chapters[t.member]
	return c.over && c.domain.Book.Why == why
}

// strayLocked notes a document that is scheduled again in a chapter that is over.
func (s *Store) strayLocked(no uint32, n name) {
	c := s.crawls.chapters[no]
	if c.strays == nil {
		c.strays = map[name]struct{}{}
	}
	c.strays[n] = struct{}{}
	s.crawls.strayed[no] = struct{}{}
}

// sweep ends strays.
func (s *Store) sweep() error {
	for {
		b, no, more, err := s.sweepSome()
		if err == nil && b != nil {
			err = s.settle(b, no)
		}
		if err != nil || !more {
			return err
		}
	}
}

func (s *Store) sweepSome() (b *pebble.Batch, last uint64, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.crawls.strayed) == 0 {
		return nil, 0, false, nil
	}
	if err := s.beginLocked(); err != nil {
		return nil, 0, false, err
	}
	now, left := s.now(), purgeHold
	for no := range s.crawls.strayed {
		if left--; left < 0 {
			break
		}
		s.endChapterLocked(no, now)
	}
	b, err = s.commitLocked()
	return b, s.journal.no, len(s.crawls.strayed) > 0, err
}
