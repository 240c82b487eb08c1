package disk

import (
	"fmt"
	"reflect"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
)

// tally is the counts of a partition, from its documents' rows.
type tally struct {
	open          map[int32]uint64
	ended, purged uint64
}

// checkCrawlsLocked recounts the documents of all crawls, and compares them with the counters.
func (s *Store) checkCrawlsLocked() error {
	all := map[uint32]*tally{}
	err := s.db.each(docRow, func(key, value []byte) error {
		n, err := readName(key[1:])
		if err != nil || n.queue == 0 {
			return err
		}
		d, err := s.docs.read(&n, value)
		if err != nil || d.member == 0 {
			return err
		}
		t := all[d.member]
		if t == nil {
			t = &tally{open: map[int32]uint64{}}
			all[d.member] = t
		}
		switch {
		case !d.completed:
			t.open[d.at.priority()]++
		case d.kind() == uint8(docindex.Stopped) || d.kind() == uint8(docindex.Expired):
			t.purged++
			fallthrough
		default:
			t.ended++
		}
		if c := s.crawls.partitions[d.member]; c == nil || c.queue != readNo(key) {
			return fmt.Errorf("it names partition %d, which is not its queue's", d.member)
		}
		return nil
	})
	if err != nil {
		return err
	}
	ended, purged := map[*crawlstats.CrawlStats]uint64{}, map[*crawlstats.CrawlStats]uint64{}
	for no, c := range s.crawls.partitions {
		if c == nil {
			continue
		}
		got := &tally{open: map[int32]uint64{}, ended: c.ended, purged: c.purgedDocs}
		c.open.Each(func(p int32, n uint64) { got.open[p] = n })
		if want := all[uint32(no)]; want == nil || !reflect.DeepEqual(got, want) {
			return fmt.Errorf("partition %d (%v, %s): counted is %+v; there is %+v", no, c.domain.Crawl.ID,
				c.domain.Name, got, want)
		}
		delete(all, uint32(no))
		ended[c.domain.Crawl] += c.ended
		purged[c.domain.Crawl] += c.purgedDocs
	}
	if len(all) > 0 {
		return fmt.Errorf("documents name %d partitions that are not there", len(all))
	}
	for b, n := range ended {
		if b.Count[crawlstats.Completed] != n || b.Purged != purged[b] {
			return fmt.Errorf(
				"crawl %v: counted are %d completed and %d purged; its partitions have %d and %d", b.ID,
				b.Count[crawlstats.Completed], b.Purged, n, purged[b])
		}
	}
	return nil
}

// EachPortion purges a stopped crawl. It calls do with each portion, and do has to call the
// portion. A portion holds the lock all the time.
func (s *Store) EachPortion(id docindex.CrawlID, do func(portion func() error) error) error {
	b := s.crawls.stats.Find(id)
	for next := uint32(1); next != 0; {
		if err := do(func() (err error) { _, next, err = s.purgeSomePartitions(b, next); return err }); err != nil {
			return err
		}
	}
	return nil
}

// ClearSome does one step of clearing purged documents. more reports whether there is another step.
func (s *Store) ClearSome() (more bool, err error) { return s.clearSome() }

// Rows returns how many bodies, documents' rows and purged partitions' rows are on disk.
func (s *Store) Rows() (bodies, docs, over int, err error) {
	for kind, n := range map[byte]*int{planRow: &bodies, docRow: &docs, purgedRow: &over} {
		if err := s.db.each(kind, func(key, _ []byte) error {
			if kind != docRow || readNo(key) != 0 { // or else it is the key of a queue
				*n++
			}
			return nil
		}); err != nil {
			return 0, 0, 0, err
		}
	}
	return bodies, docs, over, nil
}
