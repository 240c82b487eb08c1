package disk

import (
	"bytes"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// loadLocked returns the record of a document. It returns nil if the document is unknown. The
// caller may change and keep the record.
func (s *Store) loadLocked(n *name) (*doc, error) {
	if d, ok := s.cachedLocked(n); ok {
		return d, nil
	}
	row, err := s.rowLocked(n)
	if err != nil {
		return nil, err
	}
	return s.knownLocked(n, row)
}

// cachedLocked returns the record of a document if it is in memory: because the txn wrote it, or
// because the document is in transit. ok is false if only a row can tell. A nil record with ok
// means that the txn has deleted the document.
func (s *Store) cachedLocked(n *name) (d *doc, ok bool) {
	if d, ok := s.txn.docs[*n]; ok {
		if d.created == gone {
			return nil, true
		}
		return &d, true
	}
	if id := s.transits.of(n); id != 0 {
		tr := s.transits.at(id)
		return &doc{created: tr.created, member: tr.member, at: tr.at, id: []byte(tr.id[:tr.idLen]),
			packed: tr.packed, lasting: keep(docindex.Packed(tr.id[tr.idLen:]))}, true
	}
	return nil, false
}

// rowLocked reads a document's row as it was before the txn. It returns nil if there is no row.
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

// readsLocked returns the txn's iterator over the documents' rows as they were before the txn: over
// tables alone, or over memtables, too. It opens the iterator on first use.
//
// The memtable filter drops a generation only before the first of the two iterators is opened. So
// the table iterator sees each row whose name is missing from the filter, however long ago the
// iterator was opened.
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
		LowerBound: []byte{docRow}, UpperBound: []byte{docRow + 1}, UseL6Filters: true,
		OnlyReadGuaranteedDurable: tables,
	})
	return *it, err
}

// knownLocked decodes a document's row. It returns nil if there is no row.
func (s *Store) knownLocked(n *name, row []byte) (*doc, error) {
	if row == nil {
		return nil, nil
	}
	d, err := s.readLocked(n, row)
	return &d, err
}

// readLocked decodes a document's row. The record aliases the row. It does not say whether the
// document is in transit.
func (s *Store) readLocked(n *name, row []byte) (d doc, err error) {
	if d, err = readDoc(row); err == nil && s.wasPurgedLocked(n, &d) {
		d.completed, d.purged, d.last = true, true, s.crawls.partitions[d.member].lastOfPurged()
	}
	return d, err
}

// gone as the time of creation marks a document that the txn deletes.
const gone = 0

// writeLocked writes a document's row. Later reads in the same txn see it.
func (s *Store) writeLocked(n *name, d *doc) {
	s.txn.docs[*n] = *d
	s.docRowLocked(n, d)
}

// docRowLocked writes the row of a document that the txn does not read again.
func (s *Store) docRowLocked(n *name, d *doc) {
	t := &s.txn
	t.key = n.docKey(t.key[:0])
	t.value = d.append(t.value[:0])
	t.set()
	s.memtables.add(n)
}

// scheduleRowLocked schedules a document that is not scheduled: it writes the body at the
// document's place in its queue, or in a branch of it.
func (s *Store) scheduleRowLocked(queue uint32, n *name, d *doc, p *docindex.Put, branch uint32, now int64) {
	s.globals.seq++
	due := p.Due
	if due == docindex.Now {
		due = now / 1000
	}
	d.completed, d.purged, d.anyone, d.url, d.owner = false, false, false, nil, nil
	if d.at = newPlace(due, p.Priority, s.globals.seq); branch != 0 {
		d.at = newBranchPlace(branch, s.globals.seq)
	}
	t := &s.txn
	t.key = planKey(t.key[:0], n.queue, &d.at)
	body := plan{created: d.created, member: d.member, id: d.id, url: p.URL, packed: docindex.Pack(p)}
	d.packed, d.lasting = !body.packed.IsPlain(), nil
	if s.markDirty(queue).owners { // dirty, so that Open does not rely on the cursor in the queue's row
		body.tagged = s.namer.name(n.queue, p.URL) != *n
	}
	t.value = body.append(t.value[:0])
	t.set()
	s.writeLocked(n, d)
	s.shiftLocked(d.member, p.Priority, crawlstats.Completed, crawlstats.Scheduled, now)
}

// unplanLocked deletes the body of a scheduled document, and so takes the document out of its
// queue's order. A single delete is enough: scheduleRowLocked sets each of these rows once.
func (s *Store) unplanLocked(n *name, d *doc) {
	t := &s.txn
	t.key = planKey(t.key[:0], n.queue, &d.at)
	t.b.SingleDelete(t.key, nil)
}

// completeLocked completes a document that is scheduled or in transit. url is the document's URL,
// last says how it ended.
func (s *Store) completeLocked(queue uint32, n name, d *doc, url []byte, last embedded.Last, now int64) error {
	var owner []byte
	if d.member == 0 { // the crawl of any other document names its owner
		var err error
		if owner, err = s.docOwnerLocked(&n, d); err != nil {
			return err
		}
	}
	lasting, err := s.lastingLocked(&n, d)
	if err == nil && d.packed && last.Outcome().Kind == docindex.OutOfScope { // it may be in scope again
		lasting, err = s.withPayloadLocked(&n, d, lasting)
	}
	if err != nil {
		return err
	}
	s.endedLocked(queue, &n, d, now)
	s.unplanLocked(&n, d)
	d.completed, d.last, d.url, d.owner, d.lasting = true, last, url, owner, keep(lasting)
	s.purgedLocked(d.member, d.kind(), 1)
	s.writeLocked(&n, d)
	return nil
}

// endedLocked counts a document that is scheduled or in transit as completed.
func (s *Store) endedLocked(queue uint32, n *name, d *doc, now int64) {
	if id := s.transits.of(n); id != 0 {
		s.finishLocked(id, docindex.Completed, now)
		return
	}
	s.base.Sched.CountLater(queue, embedded.DueMS(d.at.due()), now, -1)
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
		value = t.bodyAt(at)
	}
	if value == nil {
		return plan{}, errRow
	}
	return readPlan(value)
}

// get reads a row. It returns nil if there is none.
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

// findIDLocked finds a document by its DOC_ID. d is nil if there is none.
func (s *Store) findIDLocked(docID []byte) (n name, d *doc, err error) {
	n, given := s.namer.named(docID)
	if !given {
		var ok bool
		if n, ok, err = s.ownerLocked(docID); err != nil || !ok {
			return n, nil, err
		}
	}
	if id, err := s.queueOf(n.queue); err != nil || id == 0 {
		return n, nil, err
	}
	d, err = s.loadLocked(&n)
	if err != nil || d == nil {
		return n, nil, err
	}
	if given != (len(d.id) == 0) || !given && !bytes.Equal(d.id, docID) {
		return n, nil, nil // a row that a deleted document left behind
	}
	return n, d, nil
}

// ownerLocked returns the name of the document that was put with a DOC_ID last.
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

// documentLocked returns the document as clients see it.
func (s *Store) documentLocked(n *name, d *doc) (docindex.Document, error) {
	queue := s.queues.byNumber(n.queue)
	out := docindex.Document{State: docindex.Completed, Created: time.Unix(int64(d.created), 0).UTC(),
		Last: d.last.Outcome(),
		Put: docindex.Put{
			DocID: bytes.Clone(d.id), Crawl: []byte(s.base.Sched.Crawl(queue)),
			Key: bytes.Clone(s.base.Sched.Key(queue)),
			URL: d.url, Due: docindex.Never,
		}}
	if len(d.id) == 0 {
		out.DocID = s.namer.docID(nil, n)
	}
	if d.completed {
		lasting, err := s.lastingLocked(n, d)
		if err != nil {
			return out, err
		}
		lasting.Unpack(&out.Put)
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
	if s.transits.of(n) != 0 {
		out.State = docindex.InTransit
		if out.Last, err = s.lastLocked(n); err != nil {
			return out, err
		}
	}
	out.Due, out.Priority = d.at.due(), d.at.priority()
	if len(body.packed) > 0 {
		body.packed.Unpack(&out.Put)
	}
	return out, nil
}

// lastLocked reads the last outcome of a document in transit, which its record in memory lacks.
func (s *Store) lastLocked(n *name) (docindex.LastOutcome, error) {
	row, err := s.rowLocked(n)
	if err != nil || row == nil {
		return docindex.LastOutcome{}, err
	}
	d, err := readDoc(row)
	return d.last.Outcome(), err
}

// abortLocked gives up a txn that has already changed state in memory.
func (s *Store) abortLocked(err error) error {
	s.txn.b.Close()
	s.txn.clear()
	return s.failLocked(err)
}
