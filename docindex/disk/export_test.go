package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// Check compares the counters with the rows. It also checks that each scheduled document and each
// purged document has exactly one place in its queue, that nothing else has a place, and that the
// rows find, order and count all queues. None of the rows may be taken for one that is not there.
func (s *Store) Check() error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	c := checking{s: s, plans: map[uint32]uint32{}, scheduled: map[uint32]uint32{},
		completed: map[uint32]uint32{}, over: map[uint32]uint32{}, keys: map[uint32]name{},
		wakes: map[string]bool{}, totals: map[string]queuesched.Counts{}}
	for _, step := range []struct {
		kind byte
		do   func(key, value []byte) error
	}{
		{planRow, c.plan}, {docRow, c.doc}, {wakeRow, c.wake}, {queueRow, c.queue}, {freshRow, c.queue},
		{totalRow, c.total},
	} {
		if err := s.db.each(step.kind, step.do); err != nil {
			return err
		}
	}
	for _, counts := range []map[uint32]uint32{c.plans, c.scheduled, c.completed, c.over} {
		for no := range counts {
			return fmt.Errorf("queue %d has documents and is not there", no)
		}
	}
	if len(c.keys)+len(c.wakes)+len(c.totals) > 0 {
		return fmt.Errorf("rows without queues: %d of keys, %d of moments, %d of crawls", len(c.keys), len(c.wakes),
			len(c.totals))
	}
	if err := s.checkCrawlsLocked(); err != nil {
		return err
	}
	if n := s.base.Sched.Total().URLs[queuesched.InTransit]; n != uint64(s.transits.length()) {
		return fmt.Errorf("%d are counted as in transit; there are %d", n, s.transits.length())
	}
	return nil
}

// checking has what the rows say.
type checking struct {
	s                                 *Store
	plans, scheduled, completed, over map[uint32]uint32 // by queue
	keys                              map[uint32]name   // of queues
	wakes                             map[string]bool   // keys of rows
	totals                            map[string]queuesched.Counts
}

func (c *checking) plan(key, value []byte) error {
	_, err := readPlan(value)
	c.plans[readNo(key)]++
	return err
}

func (c *checking) doc(key, value []byte) error {
	n, err := readName(key[1:])
	if err != nil {
		return err
	}
	if n.queue == 0 {
		c.keys[binary.BigEndian.Uint32(value)] = n
		if c.s.queues.before == 0 && !c.s.queues.keys.has(&n) {
			return fmt.Errorf("its key is taken for new")
		}
		return nil
	}
	if _, seen := c.s.docs.known.look(&n); !seen && n.queue > c.s.queues.before {
		return fmt.Errorf("it is taken for new")
	}
	d, err := c.s.docs.read(&n, value)
	if err != nil || d.completed && !d.purged {
		c.completed[n.queue]++
		return err
	}
	if d.purged {
		c.over[n.queue]++
	} else {
		c.scheduled[n.queue]++
	}
	if row, err := c.s.db.get(planKey(nil, n.queue, &d.at)); err != nil || row == nil {
		return fmt.Errorf("it is scheduled and has no place: %w", err)
	}
	return nil
}

func (c *checking) wake(key, _ []byte) error {
	c.wakes[string(key)] = true
	return nil
}

func (c *checking) queue(key, value []byte) error {
	q, err := readQueue(value)
	if err != nil {
		return err
	}
	s, no, fresh := c.s, lastNumber(key), key[0] == freshRow
	k := q.Persisted
	if id := s.queues.byNumber(no); id != 0 {
		k = s.base.Sched.Persist(id)
		if s.queues.at(id).fresh != fresh {
			return fmt.Errorf("the queue in memory has another row")
		}
		if s.queues.at(id).wake != q.wake {
			return fmt.Errorf("it wakes at %d; the queue in memory at %d", q.wake, s.queues.at(id).wake)
		}
	} else if at, ok := c.firstDue(no); ok && q.due > at {
		return fmt.Errorf("it is due at %d, and its first document at %d", q.due, at)
	}
	scheduled, completed, over, plans := c.scheduled[no], c.completed[no], c.over[no], c.plans[no]
	for _, counts := range []map[uint32]uint32{c.plans, c.scheduled, c.completed, c.over} {
		delete(counts, no)
	}
	if k.Scheduled != scheduled || k.Completed != completed+over || plans != scheduled+over {
		return fmt.Errorf(
			"queue %d (%s): counted are %d scheduled and %d completed; there are %d and %d in %d places, and %d",
			no, q.key, k.Scheduled, k.Completed, scheduled, over, plans, completed)
	}
	if c.keys[no] != s.docs.namer.keyName(q.crawl, q.key) {
		return fmt.Errorf("queue %d is not found by its key %q", no, q.key)
	}
	delete(c.keys, no)
	crawl, _ := s.base.Sched.FindCrawl(q.crawl)
	if fresh && string(key) != string(freshKey(crawl, no)) {
		return fmt.Errorf("its crawl is number %d", crawl)
	}
	row := string(wakeKey(nil, crawl, wakePlace{q.wake, no}))
	if (q.wake != queuesched.NoMoment && !fresh) != c.wakes[row] {
		return fmt.Errorf("it wakes at %d, but has no such row", q.wake)
	}
	if c.passed(crawl, no, &q, fresh) {
		return fmt.Errorf("queue %d (%s) is not in memory, and the crawl's place is behind its row", no, q.key)
	}
	delete(c.wakes, row)
	n := c.totals[string(q.crawl)]
	n.Queues++
	n.URLs[queuesched.Scheduled] += uint64(k.Scheduled)
	n.URLs[queuesched.Completed] += uint64(k.Completed)
	if k.Scheduled > 0 {
		n.Active++
	}
	c.totals[string(q.crawl)] = n
	return nil
}

// passed reports whether loadSome does not find a queue any more.
func (c *checking) passed(crawl, no uint32, q *queueRecord, fresh bool) bool {
	if c.s.queues.byNumber(no) != 0 || q.wake == queuesched.NoMoment {
		return false
	}
	place := c.s.queues.cold.placeOf(crawl)
	if fresh {
		return no < place.fresh
	}
	return wakePlace{q.wake, no}.before(place.wake)
}

// firstDue returns when the first scheduled document of a queue is due. It passes over partitions that
// are purged, or of a stopped crawl, as cursors do.
func (c *checking) firstDue(no uint32) (at int64, ok bool) {
	it, err := c.s.db.NewIter(&pebble.IterOptions{
		LowerBound: numberKey(planRow, no), UpperBound: numberEnd(planRow, no)})
	if err != nil {
		return 0, false
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		body, err := readPlan(it.Value())
		one := c.s.crawls.partitions[body.member]
		if err != nil || one != nil && (one.purged || one.domain.Crawl.Stopped) {
			continue
		}
		p := place(it.Key()[1+4:])
		return embedded.DueMS(p.due()), true
	}
	return 0, false
}

func (c *checking) total(_, value []byte) error {
	crawl, n, err := readTotals(value)
	if err != nil {
		return err
	}
	is := c.s.base.Sched.CrawlTotal([]byte(crawl))
	is.URLs[queuesched.Scheduled] += is.URLs[queuesched.InTransit]
	is.URLs[queuesched.InTransit] = 0
	if n != c.totals[crawl] || n != is {
		return fmt.Errorf("crawl %q: the row has %+v, memory %+v; there are %+v", crawl, n, is, c.totals[crawl])
	}
	delete(c.totals, crawl)
	return nil
}

// Hurry sets low limits, so that what usually takes many URLs happens after a few: flushes,
// rewriting the journal, clearing.
func (s *Store) Hurry() {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	s.queues.journal.most, s.db.memtables.most = 100, 64<<10
	s.crawls.clearing.pause = time.Microsecond
}

// ForgetNames makes the store forget the names of all documents, as if others had taken their places.
func (s *Store) ForgetNames() {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	k := s.docs.known
	for b := range k.buckets() {
		for i, mark := range k.bucket(b).marks {
			if mark != 0 {
				k.forget(b, i)
			}
		}
	}
}

// Flush begins to flush the memtables, and compacts all tables.
func (s *Store) Flush() error {
	if _, err := s.db.AsyncFlush(); err != nil {
		return err
	}
	return s.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
}

func readNo(key []byte) uint32 {
	n, _ := readName(append(append([]byte{}, key[1:5]...), make([]byte, hashLen)...))
	return n.queue
}

// PutRow sets a row in the database, without the store's knowledge.
func (s *Store) PutRow(key, value string) error {
	return s.db.Set([]byte(key), []byte(value), pebble.Sync)
}

// SettleNext waits until the commit after the last one is on disk, as a purge does after a portion.
func (s *Store) SettleNext() error { return s.db.waitSync(nil, s.queues.journal.no+1) }

// Logged returns how many bytes were written to the log since the store was opened.
func (s *Store) Logged() uint64 { return s.db.Metrics().WAL.BytesIn }

// QueuesInMemory returns how many queues are in memory.
func (s *Store) QueuesInMemory() int {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	return s.base.Sched.InMemory()
}

// LongNames makes an empty store give names as one that was made before version 9.
func (s *Store) LongNames() error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	s.docs.namer.short = false
	return s.writeVersion()
}

// AsVersion6 makes the store look like one that version 6 wrote. It has long names. rows: also its
// rows, as if no upgrade of them had begun.
func (s *Store) AsVersion6(rows bool) error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	b := s.db.NewBatch()
	if rows {
		for _, kind := range []byte{setRow, totalRow, wakeRow} {
			b.DeleteRange([]byte{kind}, []byte{kind + 1}, nil)
		}
		b.DeleteRange(numberKey(docRow, 0), numberEnd(docRow, 0), nil)
	}
	for _, kind := range []byte{queueRow, freshRow} {
		if err := s.db.each(kind, func(key, value []byte) error {
			q, err := readQueue(value)
			if rows || kind == freshRow || q.branches != nil {
				q.wake, q.due, q.cursor, q.branches = queuesched.NoMoment, 0, place{}, nil
			}
			return errors.Join(err, b.Set(numberKey(queueRow, lastNumber(key)), q.append(nil), nil))
		}); err != nil {
			return err
		}
	}
	b.DeleteRange([]byte{freshRow}, []byte{freshRow + 1}, nil)
	value := append(append(binary.AppendUvarint(nil, 6), s.docs.namer.key[:]...), s.docs.namer.mark[:]...)
	return errors.Join(b.Set(metaKey(metaVersion), value, nil), s.db.Apply(b, pebble.Sync))
}

// NameLengths returns the lengths of the keys of documents' rows, of queues first.
func (s *Store) NameLengths() (lengths []int, err error) {
	err = s.db.each(docRow, func(key, _ []byte) error { lengths = append(lengths, len(key)); return nil })
	return lengths, err
}

// Manifests returns a function that creates files in a folder as Pebble creates its manifests, until end.
func Manifests(path string) (create func(name string) (vfs.File, error), end func(), err error) {
	s, err := newSpace(path, nil)
	if err != nil {
		return nil, nil, err
	}
	create = func(name string) (vfs.File, error) { return s.Create(filepath.Join(path, name), forManifest) }
	return create, s.removeSpare, nil
}
