package disk

import (
	"bytes"
	"context"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/books"
)

const (
	purgeHold = 500       // documents that a portion of a purge ends or tells, which takes about 1 ms
	lookHold  = 10 * hold // chapters, rows or transits that it looks at
	syncEvery = 32        // portions; what a crash takes with it is purged again
	flushAt   = memTable * 3 / 4
)

// purging is a purge on its way over the chapters.
type purging struct {
	book    *books.Book
	chapter uint32
	from    []byte // in the chapter's queue; nil: from its beginning on
	looks   int    // left in this portion
	left    int    // documents that it may still end
	run     run
	ends    ends
	written int             // bytes since flushed was begun
	flushed <-chan struct{} // closed once what was written before is in tables; nil: nothing was
}

// PurgeCrawl is [docindex.Crawls.PurgeCrawl]. It is on disk once it returns, its portions now and then before.
func (s *Store) PurgeCrawl(ctx context.Context, id docindex.CrawlID, tell func(*docindex.Outcomes) (int, error)) (purged int, err error) {
	s.mu.Lock()
	b := s.crawls.books.Find(id)
	s.mu.Unlock()
	if b == nil || !b.Refused { // which it stays
		return 0, ctx.Err()
	}
	if err := s.purgeLined(ctx, b); err != nil {
		return 0, err
	}
	for next := uint32(1); next != 0; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var out docindex.Outcomes
		if next, err = s.someAtSlots(b, next, &out); err != nil {
			return 0, err
		}
		if out.Len() == 0 {
			continue
		}
		ended, err := tell(&out)
		s.endedAtSlots(b, ended)
		if err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crawls.books.Purged(b), s.usableLocked()
}

// endedAtSlots counts documents of a refused crawl whose outcomes come later. They are not on disk as such: after a restart they count by
// these, or by what became of them without.
func (s *Store) endedAtSlots(b *books.Book, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Untold += n
}

// purgeLined ends what is scheduled of a crawl.
func (s *Store) purgeLined(ctx context.Context, b *books.Book) error {
	p := purging{book: b, chapter: 1}
	for portions, more := 1, true; more; portions++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		no, next, err := s.purgePortion(&p)
		if err != nil {
			return err
		}
		if more = next; !more || portions%syncEvery == 0 {
			err = s.settle(nil, no)
		}
		if err == nil && p.written >= flushAt {
			err = s.pace(ctx, &p)
		}
		if err != nil {
			return err
		}
		runtime.Gosched() // others wait for no more than a portion, also for the processor
	}
	return nil
}

// pace waits for the flush before and begins another. So a purge is no faster than what it writes gets into tables, and
// never fills the memtables, at which all that write would wait with the lock held.
func (s *Store) pace(ctx context.Context, p *purging) error {
	if p.flushed != nil {
		select {
		case <-p.flushed:
		case <-s.closing:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return err
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return s.failLocked(err)
	}
	p.written, p.flushed = 0, flushed
	return nil
}

// purgePortion does some of a purge in a commit that is not waited for, and returns its number.
func (s *Store) purgePortion(p *purging) (no uint64, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.beginLocked(); err != nil {
		return 0, false, err
	}
	p.left, p.looks = purgeHold, lookHold
	for p.left > 0 && p.looks > 0 && p.book.Count[books.Lined] > 0 && int(p.chapter) < len(s.crawls.chapters) {
		p.looks--
		if one := s.crawls.chapters[p.chapter]; one != nil && one.domain.Book == p.book && one.lined > 0 {
			if p.from, err = s.purgeQueueLocked(p, one.queue); err != nil {
				return 0, false, s.abortLocked(err)
			}
			if p.from != nil {
				break
			}
		}
		p.chapter, p.from = p.chapter+1, nil
	}
	more = p.book.Count[books.Lined] > 0 && int(p.chapter) < len(s.crawls.chapters)
	p.written += s.txn.b.Len()
	err = s.commitLazilyLocked()
	return s.journal.no, more, err
}

// purgeQueueLocked ends documents of the crawl in a queue, and returns the key to go on with, or nil.
func (s *Store) purgeQueueLocked(p *purging, queue uint32) (next []byte, err error) {
	queueNo := s.queues[queue].no
	from := p.from
	if from == nil || !bytes.HasPrefix(from, numberKey(planRow, queueNo)) {
		from = numberKey(planRow, queueNo)
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: numberEnd(planRow, queueNo)})
	if err != nil {
		return nil, err
	}
	defer func() {
		p.run.end(s.txn.b)
		p.ends.write(s.txn.b)
		if closing := it.Close(); err == nil {
			err = closing
		}
	}()
	now := s.now()
	for it.First(); it.Valid(); it.Next() {
		if p.left == 0 || p.looks <= 0 {
			return bytes.Clone(it.Key()), nil
		}
		p.looks--
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		body, err := readPlan(value)
		if err != nil || len(it.Key()) != 1+4+placeLen {
			return nil, errRow
		}
		if body.member == 0 || s.crawls.chapters[body.member].domain.Book != p.book {
			p.run.end(s.txn.b)
			continue
		}
		n := s.secret.name(queueNo, body.url)
		if s.transitOf(&n) != 0 {
			p.run.end(s.txn.b)
			continue
		}
		p.run.add(it.Key())
		d := doc{created: body.created, id: body.id, member: body.member}
		copy(d.at[:], it.Key()[1+4:])
		s.purgeLocked(queue, &n, &d, body.url, now)
		p.ends.add(&n, &d)
		p.left--
	}
	return nil, it.Error()
}

// purgeLocked ends a document of a refused crawl that is scheduled. The caller writes its rows.
func (s *Store) purgeLocked(queue uint32, n *name, d *doc, url []byte, now int64) {
	b := s.crawls.chapters[d.member].domain.Book
	b.Untold++
	s.globals.outcomes[b.Why]++
	s.endedLocked(queue, n, d, now)
	s.purgedLocked(d.member, b.Why, 1)
	d.completed, d.kind, d.url = true, b.Why, url
}

// sweep ends what came back, from where it was in transit, after its crawl was refused.
func (s *Store) sweep() error {
	b, no, err := s.sweepStrays()
	if err != nil || b == nil {
		return err
	}
	return s.settle(b, no)
}

func (s *Store) sweepStrays() (b *pebble.Batch, no uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.crawls.strays) == 0 {
		return nil, 0, nil
	}
	if err := s.beginLocked(); err != nil {
		return nil, 0, err
	}
	now := s.now()
	some := s.crawls.strays[:min(len(s.crawls.strays), hold)]
	s.crawls.strays = s.crawls.strays[len(some):]
	for _, n := range some {
		d, err := s.loadLocked(&n)
		if err == nil && d != nil && s.byNo[n.queue] != 0 && !d.completed && s.transitOf(&n) == 0 && s.refusedLocked(d.member) {
			var url []byte
			if url, err = s.urlLocked(&n, d); err == nil {
				s.unplanLocked(&n, d)
				s.purgeLocked(s.byNo[n.queue], &n, d, url, now)
				s.writeLocked(&n, d)
			}
		}
		if err != nil {
			return nil, 0, s.abortLocked(err)
		}
	}
	b, err = s.commitLocked()
	return b, s.journal.no, err
}
