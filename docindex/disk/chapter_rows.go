package disk

import (
	"encoding/binary"
	"math"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
)

const (
	bookRefused = 1
	bookToldEnd = 2
)

func appendBook(dst []byte, b *crawlstats.Book) []byte {
	flags := uint64(0)
	if b.Refused {
		flags |= bookRefused
	}
	if b.ToldEnd {
		flags |= bookToldEnd
	}
	for _, v := range []uint64{flags, uint64(b.Why), uint64(b.Expires), b.Dropped, b.Round, b.Told} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, text := range []string{b.ID.Spider, b.ID.App, b.ID.Crawl} {
		dst = appendText(dst, []byte(text))
	}
	return dst
}

// writeBooksLocked writes the rows of what the txn has changed.
func (s *Store) writeBooksLocked() {
	t, c := &s.txn, &s.crawls
	for no := range c.dirtyBooks {
		t.key = binary.BigEndian.AppendUint32(append(t.key[:0], bookRow), no)
		if b := c.books.At(no); b != nil {
			t.value = appendBook(t.value[:0], b)
			t.set()
		} else {
			t.b.Delete(t.key, nil)
		}
	}
	for no := range c.dirtyChapters {
		t.key = binary.BigEndian.AppendUint32(append(t.key[:0], chapterRow), no)
		if one := c.chapters[no]; one != nil {
			t.value = s.appendChapter(t.value[:0], one)
			t.set()
		} else {
			t.b.Delete(t.key, nil)
		}
	}
	for k := range c.dirtyLevels {
		t.key = binary.BigEndian.AppendUint32(append(t.key[:0], chapterRow), k.chapter)
		t.key = binary.BigEndian.AppendUint32(t.key, uint32(k.range_))
		if t.value = appendLevels(t.value[:0], c.chapters[k.chapter], k.range_); len(t.value) > 0 {
			t.set()
		} else {
			t.b.Delete(t.key, nil)
		}
	}
	c.clean()
}

// clean forgets what the txn changed, once that is written.
func (c *crawls) clean() {
	clear(c.dirtyBooks)
	clear(c.dirtyChapters)
	clear(c.dirtyLevels)
}

func (s *Store) appendChapter(dst []byte, c *chapter) []byte {
	for _, v := range []uint64{uint64(c.domain.Book.No), uint64(s.queues[c.queue].no), c.ended, c.purged} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(dst, c.domain.Name...)
}

// appendLevels writes the counts of some priorities, each behind its last bits; nothing where all are 0.
func appendLevels(dst []byte, c *chapter, range_ int32) []byte {
	if c == nil {
		return dst
	}
	const most = 1 << rangeBits
	add := func(priority int32, n uint64) {
		if n > 0 && priority>>rangeBits == range_ {
			dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(priority&(most-1))), n)
		}
	}
	if c.open.Len() <= most {
		c.open.Each(add)
		return dst
	}
	for i := int32(0); i < most; i++ {
		add(range_<<rangeBits|i, c.open.Of(range_<<rangeBits|i))
	}
	return dst
}

// book reads a crawl's row.
func (l *loading) book(key, value []byte) error {
	r := reader{b: value}
	flags, why, expires := r.uint(), r.uint(), r.uint()
	dropped, round, told := r.uint(), r.uint(), r.uint()
	id := docindex.CrawlID{Spider: string(r.text()), App: string(r.text()), Crawl: string(r.text())}
	if len(key) != 1+4 || r.bad || why >= uint64(docindex.Kinds) || expires > math.MaxInt64 {
		return errRow
	}
	no := binary.BigEndian.Uint32(key[1:])
	if no == 0 || l.s.crawls.books.Find(id) != nil {
		return errRow
	}
	b := l.s.crawls.books.Restore(no, id)
	b.Refused, b.ToldEnd = flags&bookRefused != 0, flags&bookToldEnd != 0
	b.Why, b.Expires, b.Dropped, b.Round, b.Told = docindex.Kind(why), int64(expires), dropped, round, told
	return nil
}

// chapter reads a row of a chapter: that of all of it comes first, then those of its levels.
func (l *loading) chapter(key, value []byte) error {
	if len(key) != 1+4 && len(key) != 1+4+4 {
		return errRow
	}
	no := binary.BigEndian.Uint32(key[1:])
	if len(key) == 1+4 {
		return l.chapterHead(no, value)
	}
	if l.chapterNo != no {
		return errRow
	}
	high := int32(binary.BigEndian.Uint32(key[5:])) << rangeBits
	c := l.s.crawls.chapters[no]
	var some crawlstats.Levels
	for r := (reader{b: value}); len(r.b) > 0 || r.bad; {
		low, n := r.uint(), r.uint()
		if r.bad || low >= 1<<rangeBits || n == 0 {
			return errRow
		}
		some.Add(high|int32(low), n)
	}
	c.open.AddAll(&some)
	n := l.s.crawls.books.Fill(c.domain, &some)
	c.docs += n
	return nil
}

func (l *loading) chapterHead(no uint32, value []byte) error {
	s, r := l.s, reader{b: value}
	book, queueNo, ended, purged := r.uint(), r.uint(), r.uint(), r.uint()
	b := s.crawls.books.At(uint32(min(book, math.MaxUint32)))
	queue := s.byNo[uint32(min(queueNo, math.MaxUint32))]
	if r.bad || b == nil || queue == 0 || purged > ended || no == 0 {
		return errRow
	}
	for int(no) >= len(s.crawls.chapters) {
		s.crawls.chapters = append(s.crawls.chapters, make([]*chapter, max(64, len(s.crawls.chapters)/2))...)
	}
	d := s.crawls.books.Enter(b, string(r.b), ended)
	b.Purged += purged
	s.addChapter(no, &chapter{domain: d, queue: queue, docs: ended, ended: ended, purged: purged})
	l.chapterNo = no
	return nil
}

// over reads the row of a chapter that is over.
func (l *loading) over(key, _ []byte) error {
	if len(key) != 1+4 {
		return errRow
	}
	no := binary.BigEndian.Uint32(key[1:])
	if int(no) >= len(l.s.crawls.chapters) || l.s.crawls.chapters[no] == nil || !l.s.crawls.chapters[no].domain.Book.Refused {
		return errRow
	}
	l.s.crawls.chapters[no].over = true
	return nil
}

// closeBooks is for when all rows are read.
func (l *loading) closeBooks() error {
	s := l.s
	for no := len(s.crawls.chapters) - 1; no > 0; no-- {
		if s.crawls.chapters[no] == nil {
			s.crawls.free = append(s.crawls.free, uint32(no))
			continue
		}
		s.clearLaterLocked(uint32(no))
	}
	if err := s.endOver(l.now); err != nil {
		return err
	}
	s.crawls.books.Restored(l.now)
	s.crawls.clean()
	return nil
}

// endOver ends what the slots had of chapters that are over when the process ended. Where the disk has no room for that, the next
// purge does.
func (s *Store) endOver(now int64) error {
	if s.space.check() != nil {
		return nil
	}
	if err := s.beginLocked(); err != nil {
		return err
	}
	for no, c := range s.crawls.chapters {
		if c != nil && c.over && c.docs > c.ended {
			s.endChapterLocked(uint32(no), now)
		}
	}
	return s.commitLazilyLocked()
}
