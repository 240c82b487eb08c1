package disk

import (
	"bytes"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/queuesched"
)

// loadLocked finds what is known of a document; nil: nothing. It may be changed, and stays.
func (s *Store) loadLocked(n *name) (*doc, error) {
	if d, ok := s.recalledLocked(n); ok {
		return d, nil
	}
	row, err := s.rowLocked(n)
	if err != nil {
		return nil, err
	}
	return s.knownLocked(n, row)
}

// recalledLocked is what memory says of a document, if it does: nil is nothing known.
func (s *Store) recalledLocked(n *name) (d *doc, ok bool) {
	if d, ok := s.txn.docs[*n]; ok {
		if d.created == gone {
			return nil, true
		}
		return &d, true
	}
	if id := s.transitOf(n); id != 0 {
		tr := s.transits.At(id)
		return &doc{created: tr.created, member: tr.member, at: tr.at, id: []byte(tr.id)}, true
	}
	return nil, false
}

// rowLocked reads a document's row as it was before the txn; nil: there is none.
func (s *Store) rowLocked(n *name) ([]byte, error) {
	it, err := s.readsLocked(!s.memtables.has(n))
	if err != nil {
		return nil, err
	}
	t := &s.txn
	t.key = n.docKey(t.key[:0])
	if !it.SeekPrefixGE(t.key) {
		return nil, it.Error()
	}
	value, err := it.ValueAndErr()
	return bytes.Clone(value), err
}

// readsLocked is for reading documents' rows before the txn, in tables alone or in memtables, too.
// What memtableFilter drops was in tables before either was opened: a name that it has no more is looked
// for in those, however long ago they were.
func (s *Store) readsLocked(tables bool) (*pebble.Iterator, error) {
	it := &s.txn.reads
	if tables {
		it = &s.txn.tables
	}
	if *it != nil {
		return *it, nil
	}
	if s.txn.reads == nil && s.txn.tables == nil {
		s.memtables.dropFlushed()
	}
	var err error
	*it, err = s.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{docRow}, UpperBound: []byte{docRow + 1}, UseL6Filters: true, OnlyReadGuaranteedDurable: tables,
	})
	return *it, err
}

// knownLocked is what a document's row says; nil: nothing.
func (s *Store) knownLocked(n *name, row []byte) (*doc, error) {
	if row == nil {
		return nil, nil
	}
	d, err := s.readLocked(n, row)
	return &d, err
}

// readLocked reads a document's row, which it aliases. The document may be in transit.
func (s *Store) readLocked(n *name, row []byte) (d doc, err error) {
	if d, err = readDoc(row); err == nil && s.wasPurgedLocked(n, &d) {
		d.completed, d.purged, d.kind = true, true, uint8(s.crawls.partitions[d.member].domain.Crawl.Why)
	}
	return d, err
}

// gone is when documents were created that a txn forgets.
const gone = 0

// writeLocked writes a document's row, which the txn may read again.
func (s *Store) writeLocked(n *name, d *doc) {
	s.txn.docs[*n] = *d
	s.docRowLocked(n, d)
}

// docRowLocked writes the row of a document that the txn has nothing more to do with.
func (s *Store) docRowLocked(n *name, d *doc) {
	t := &s.txn
	t.key = n.docKey(t.key[:0])
	t.value = d.append(t.value[:0])
	t.set()
	s.memtables.add(n)
}

// scheduleRowLocked puts a document, which is not scheduled, into its queue's order.
func (s *Store) scheduleRowLocked(n *name, d *doc, p *docindex.Put, now int64) {
	s.globals.seq++
	due := p.Due
	if due == docindex.Now {
		due = now / 1000
	}
	d.completed, d.purged, d.anyone, d.url, d.owner = false, false, false, nil, nil
	d.at = newPlace(due, p.Priority, s.globals.seq)
	t := &s.txn
	t.key = planKey(t.key[:0], n.queue, &d.at)
	body := plan{created: d.created, member: d.member, id: d.id, url: p.URL, metadata: p.Metadata}
	if s.queues[s.byNo[n.queue]].owners {
		body.tagged = s.namer.name(n.queue, p.URL) != *n
	}
	t.value = body.append(t.value[:0])
	t.set()
	s.writeLocked(n, d)
	s.shiftLocked(d.member, p.Priority, crawlstats.Completed, crawlstats.Scheduled, now)
}

// unplanLocked takes the body of a document that is scheduled out of the order. The row was set
// once, by planLocked.
func (s *Store) unplanLocked(n *name, d *doc) {
	t := &s.txn
	t.key = planKey(t.key[:0], n.queue, &d.at)
	t.b.SingleDelete(t.key, nil)
}

// completeLocked completes a document of a queue, which is scheduled or in transit. It has that url.
func (s *Store) completeLocked(queue uint32, n name, d *doc, url []byte, kind uint8, now int64) error {
	var owner []byte
	if d.member == 0 { // or else that tells it
		var err error
		if owner, err = s.docOwnerLocked(&n, d); err != nil {
			return err
		}
	}
	s.endedLocked(queue, &n, d, now)
	s.unplanLocked(&n, d)
	s.purgedLocked(d.member, kind, 1)
	d.completed, d.kind, d.url, d.owner = true, kind, url, owner
	s.writeLocked(&n, d)
	return nil
}

// endedLocked counts a document that is scheduled or in transit as completed.
func (s *Store) endedLocked(queue uint32, n *name, d *doc, now int64) {
	if id := s.transitOf(n); id != 0 {
		s.finishLocked(id, docindex.Completed, now)
		return
	}
	s.move(queue, queuesched.Scheduled, queuesched.Completed)
	s.shiftLocked(d.member, d.at.priority(), crawlstats.Scheduled, crawlstats.Completed, now)
	s.base.Sched.Refresh(queue, now) // its limit may be reached
}

// urlLocked reads a document's URL.
func (s *Store) urlLocked(n *name, d *doc) ([]byte, error) {
	if d.completed && !d.purged {
		return d.url, nil
	}
	p, err := s.bodyLocked(n.queue, &d.at)
	return p.url, err
}

// bodyLocked reads the body of a scheduled document.
func (s *Store) bodyLocked(queueNo uint32, at *place) (plan, error) {
	t := &s.txn
	t.key = planKey(t.key[:0], queueNo, at)
	value, err := s.get(t.key)
	if err != nil {
		return plan{}, err
	}
	if value == nil {
		return plan{}, errRow
	}
	return readPlan(value)
}

// get reads a row; nil: there is none.
func (s *Store) get(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	own := append([]byte{}, value...)
	return own, closer.Close()
}

// findIDLocked finds a document by its DOC_ID; nil: there is none.
func (s *Store) findIDLocked(docID []byte) (n name, d *doc, err error) {
	n, given := s.namer.named(docID)
	if !given {
		var ok bool
		if n, ok, err = s.ownerLocked(docID); err != nil || !ok {
			return n, nil, err
		}
	}
	if s.byNo[n.queue] == 0 {
		return n, nil, nil
	}
	d, err = s.loadLocked(&n)
	if err != nil || d == nil {
		return n, nil, err
	}
	if given != (len(d.id) == 0) || !given && !bytes.Equal(d.id, docID) {
		return n, nil, nil // what was left behind by one that was forgotten
	}
	return n, d, nil
}

// ownerLocked finds out which document was put with a DOC_ID last.
func (s *Store) ownerLocked(docID []byte) (n name, ok bool, err error) {
	if len(docID) == 0 {
		return n, false, nil
	}
	t := &s.txn
	if n, ok := t.ids[string(docID)]; ok {
		return n, true, nil
	}
	t.key = append(append(t.key[:0], idRow), docID...)
	value, err := s.get(t.key)
	if err != nil || value == nil {
		return n, false, err
	}
	n, err = readName(value)
	return n, err == nil, err
}

// documentLocked is what is told of a document.
func (s *Store) documentLocked(n *name, d *doc) (docindex.Document, error) {
	queue := s.byNo[n.queue]
	out := docindex.Document{State: docindex.Completed, Created: time.Unix(int64(d.created), 0).UTC(), Put: docindex.Put{
		DocID: bytes.Clone(d.id), Crawl: []byte(s.base.Sched.Crawl(queue)), Key: bytes.Clone(s.base.Sched.Key(queue)),
		URL: d.url, Due: docindex.Never,
	}}
	if len(d.id) == 0 {
		out.DocID = s.namer.docID(nil, n)
	}
	if d.completed {
		owner, err := s.docOwnerLocked(n, d)
		if out.Metadata = owner; err != nil || !d.purged {
			return out, err
		}
	}
	body, err := s.bodyLocked(n.queue, &d.at)
	if out.URL = body.url; err != nil || d.purged {
		return out, err
	}
	out.State = docindex.Scheduled
	if s.transitOf(n) != 0 {
		out.State = docindex.InTransit
	}
	out.Due, out.Priority = d.at.due(), d.at.priority()
	if len(body.metadata) > 0 {
		out.Metadata = body.metadata
	}
	return out, nil
}

// abortLocked ends a txn that cannot be made, after it began to change what is in memory.
func (s *Store) abortLocked(err error) error {
	s.txn.b.Close()
	s.txn.clear()
	return s.failLocked(err)
}
