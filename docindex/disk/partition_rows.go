package disk

import (
	"encoding/binary"
	"math"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
)

const (
	crawlStopped     = 1
	crawlEndReported = 2
)

// appendCrawl appends a crawl's row.
func appendCrawl(dst []byte, b *crawlstats.CrawlStats) []byte {
	flags := uint64(0)
	if b.Stopped {
		flags |= crawlStopped
	}
	if b.EndReported {
		flags |= crawlEndReported
	}
	for _, v := range []uint64{flags, uint64(b.Why), uint64(b.Expires), b.Dropped, b.Epoch, b.ReportedEpoch} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, text := range []string{b.ID.Spider, b.ID.App, b.ID.Crawl} {
		dst = appendText(dst, []byte(text))
	}
	return dst
}

// writeRows writes the rows of the crawls and partitions that the txn has changed.
func (x *crawls) writeRows() {
	t := x.txn
	for no := range x.dirtyCrawls {
		t.key = binary.BigEndian.AppendUint32(append(t.key[:0], crawlRow), no)
		if b := x.stats.At(no); b != nil {
			t.value = appendCrawl(t.value[:0], b)
			t.set()
		} else {
			t.b.Delete(t.key, nil)
		}
	}
	for no := range x.dirtyPartitions {
		t.key = binary.BigEndian.AppendUint32(append(t.key[:0], partitionRow), no)
		if one := x.partitions[no]; one != nil {
			t.value = x.appendPartition(t.value[:0], one)
			t.set()
		} else {
			t.b.Delete(t.key, nil)
		}
	}
	for k := range x.dirtyPriorities {
		t.key = binary.BigEndian.AppendUint32(append(t.key[:0], partitionRow), k.partition)
		t.key = binary.BigEndian.AppendUint32(t.key, uint32(k.range_))
		if t.value = appendLevels(t.value[:0], x.partitions[k.partition], k.range_); len(t.value) > 0 {
			t.set()
		} else {
			t.b.Delete(t.key, nil)
		}
	}
	x.clean()
}

// clean clears the record of the txn's changes, after their rows were written.
func (c *crawls) clean() {
	clear(c.dirtyCrawls)
	clear(c.dirtyPartitions)
	clear(c.dirtyPriorities)
}

func (x *crawls) appendPartition(dst []byte, c *partition) []byte {
	for _, v := range []uint64{uint64(c.domain.Crawl.No), uint64(c.queue), c.ended, c.purgedDocs} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(dst, c.domain.Name...)
}

// appendLevels appends the counts of a range of priorities: for each count that is not 0, the
// lowest bits of the priority and the count.
func appendLevels(dst []byte, c *partition, range_ int32) []byte {
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

// crawl reads a crawl's row.
func (l *loading) crawl(key, value []byte) error {
	r := reader{b: value}
	flags, why, expires := r.uint(), r.uint(), r.uint()
	dropped, epoch, reported := r.uint(), r.uint(), r.uint()
	id := docindex.CrawlID{Spider: string(r.text()), App: string(r.text()), Crawl: string(r.text())}
	if len(key) != 1+4 || r.bad || why >= uint64(docindex.Kinds) || expires > math.MaxInt64 {
		return errRow
	}
	no := binary.BigEndian.Uint32(key[1:])
	if no == 0 || l.s.crawls.stats.Find(id) != nil {
		return errRow
	}
	b := l.s.crawls.stats.Restore(no, id)
	b.Stopped, b.EndReported = flags&crawlStopped != 0, flags&crawlEndReported != 0
	b.Why, b.Expires, b.Dropped, b.Epoch, b.ReportedEpoch = docindex.Kind(why), int64(expires), dropped, epoch, reported
	return nil
}

// partition reads a row of a partition. The row of the whole partition comes first, then the rows
// of its priorities.
func (l *loading) partition(key, value []byte) error {
	if len(key) != 1+4 && len(key) != 1+4+4 {
		return errRow
	}
	no := binary.BigEndian.Uint32(key[1:])
	if len(key) == 1+4 {
		return l.partitionHead(no, value)
	}
	if l.partitionNo != no {
		return errRow
	}
	high := int32(binary.BigEndian.Uint32(key[5:])) << rangeBits
	c := l.s.crawls.partitions[no]
	var some crawlstats.PriorityCounts
	for r := (reader{b: value}); len(r.b) > 0 || r.bad; {
		low, n := r.uint(), r.uint()
		if r.bad || low >= 1<<rangeBits || n == 0 {
			return errRow
		}
		some.Add(high|int32(low), n)
	}
	c.open.AddAll(&some)
	n := l.s.crawls.stats.Fill(c.domain, &some)
	c.docs += n
	return nil
}

func (l *loading) partitionHead(no uint32, value []byte) error {
	s, r := l.s, reader{b: value}
	crawlNo, queueNo, ended, purged := r.uint(), r.uint(), r.uint(), r.uint()
	b := s.crawls.stats.At(uint32(min(crawlNo, math.MaxUint32)))
	if r.bad || b == nil || queueNo == 0 || queueNo > math.MaxUint32 || purged > ended || no == 0 {
		return errRow
	}
	for int(no) >= len(s.crawls.partitions) {
		s.crawls.partitions = append(s.crawls.partitions, make([]*partition, max(64, len(s.crawls.partitions)/2))...)
	}
	d := s.crawls.stats.Enter(b, string(r.b), ended)
	b.Purged += purged
	s.crawls.addPartition(no, &partition{domain: d, queue: uint32(queueNo), docs: ended, ended: ended,
		purgedDocs: purged})
	l.partitionNo = no
	return nil
}

// purgedPartition reads the row of a purged partition. Before version 5 it has no time.
func (l *loading) purgedPartition(key, value []byte) error {
	if len(key) != 1+4 {
		return errRow
	}
	no, at := binary.BigEndian.Uint32(key[1:]), int64(0)
	if len(value) > 0 {
		r := reader{b: value}
		if at = r.int(); r.bad {
			return errRow
		}
	}
	if int(no) >= len(l.s.crawls.partitions) || l.s.crawls.partitions[no] == nil ||
		!l.s.crawls.partitions[no].domain.Crawl.Stopped {
		return errRow
	}
	l.s.crawls.partitions[no].purged, l.s.crawls.partitions[no].purgedAt = true, at
	return nil
}

// closeCrawls finishes the loading of the crawls after all rows were read.
func (l *loading) closeCrawls() error {
	s := l.s
	for no := len(s.crawls.partitions) - 1; no > 0; no-- {
		if s.crawls.partitions[no] == nil {
			s.crawls.free = append(s.crawls.free, uint32(no))
			continue
		}
		s.crawls.clearing.later(uint32(no))
	}
	if err := s.purgeInSlots(l.now); err != nil {
		return err
	}
	s.crawls.stats.Restored(l.now)
	s.crawls.clean()
	return nil
}

// purgeInSlots ends the documents of purged partitions that the slots had when the process ended.
// If the disk has no room for that, the next purge does it.
func (s *Store) purgeInSlots(now int64) error {
	if s.db.space.check() != nil {
		return nil
	}
	if err := s.txn.begin(); err != nil {
		return err
	}
	for no, c := range s.crawls.partitions {
		if c != nil && c.purged && c.docs > c.ended {
			if err := s.crawls.purge(uint32(no), now); err != nil {
				return s.txn.abort(err)
			}
		}
	}
	return s.txn.commitLazily()
}
