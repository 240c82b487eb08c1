package disk

import (
	"bytes"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// documents reads and writes the documents: their rows, and in memory those in transit and those
// that the txn has written. The store's lock guards it.
type documents struct {
	namer docNamer
	known *knownNames

	db       *database
	txn      *txn
	queues   *queueTable
	crawls   *crawls
	transits *transits
}

// load returns the record of a document. It returns nil if the document is unknown. The caller may
// change and keep the record.
func (x *documents) load(n *name) (*doc, error) {
	if d, ok := x.cached(n); ok {
		return d, nil
	}
	row, err := x.txn.row(n)
	if err != nil {
		return nil, err
	}
	return x.decode(n, row)
}

// cached returns the record of a document if it is in memory: because the txn wrote it, or because
// the document is in transit. ok is false if only a row can tell. A nil record with ok means that
// the txn has deleted the document.
func (x *documents) cached(n *name) (d *doc, ok bool) {
	if d, ok := x.txn.docs[*n]; ok {
		if d.created == gone {
			return nil, true
		}
		return &d, true
	}
	if id := x.transits.of(n); id != 0 {
		tr := x.transits.at(id)
		return &doc{created: tr.created, member: tr.member, at: tr.at, id: []byte(tr.id[:tr.idLen]),
			packed: tr.packed, lasting: keep(docindex.Packed(tr.id[tr.idLen:]))}, true
	}
	return nil, false
}

// decode decodes a document's row. It returns nil if there is no row.
func (x *documents) decode(n *name, row []byte) (*doc, error) {
	if row == nil {
		return nil, nil
	}
	d, err := x.read(n, row)
	return &d, err
}

// read decodes a document's row. The record aliases the row. It does not say whether the document
// is in transit.
func (x *documents) read(n *name, row []byte) (d doc, err error) {
	if d, err = readDoc(row); err == nil && x.wasPurged(n, &d) {
		d.completed, d.purged, d.last = true, true, x.crawls.partitions[d.member].lastOfPurged()
	}
	return d, err
}

// gone as the time of creation marks a document that the txn deletes.
const gone = 0

// write writes a document's row. Later reads in the same txn see it.
func (x *documents) write(n *name, d *doc) {
	x.txn.docs[*n] = *d
	x.writeRow(n, d)
}

// writeRow writes the row of a document that the txn does not read again.
func (x *documents) writeRow(n *name, d *doc) {
	t := x.txn
	t.key = n.docKey(t.key[:0])
	t.value = d.append(t.value[:0])
	t.set()
	x.db.memtables.add(n)
}

// schedule schedules a document that is not scheduled: it writes the body at the document's place
// in its queue, or in a branch of it.
func (x *documents) schedule(queue uint32, n *name, d *doc, p *docindex.Put, branch uint32, now int64) {
	x.queues.globals.seq++
	due := p.Due
	if due == docindex.Now {
		due = now / 1000
	}
	d.completed, d.purged, d.anyone, d.url, d.owner = false, false, false, nil, nil
	if d.at = newPlace(due, p.Priority, x.queues.globals.seq); branch != 0 {
		d.at = newBranchPlace(branch, x.queues.globals.seq)
	}
	t := x.txn
	t.key = planKey(t.key[:0], n.queue, &d.at)
	body := plan{created: d.created, member: d.member, id: d.id, url: p.URL, packed: docindex.Pack(p)}
	d.packed, d.lasting = !body.packed.IsPlain(), nil
	if x.queues.markDirty(queue).owners { // dirty, so that Open does not rely on the cursor in the queue's row
		body.tagged = x.namer.name(n.queue, p.URL) != *n
	}
	t.value = body.append(t.value[:0])
	t.set()
	x.write(n, d)
	x.crawls.shift(d.member, p.Priority, crawlstats.Completed, crawlstats.Scheduled, now)
}

// unplan deletes the body of a scheduled document, and so takes the document out of its queue's
// order. A single delete is enough: schedule sets each of these rows once.
func (x *documents) unplan(n *name, d *doc) {
	t := x.txn
	t.key = planKey(t.key[:0], n.queue, &d.at)
	t.b.SingleDelete(t.key, nil)
}

// completeLocked completes a document that is scheduled or in transit. url is the document's URL,
// last says how it ended.
func (s *Store) completeLocked(queue uint32, n name, d *doc, url []byte, last embedded.Last, now int64) error {
	var owner []byte
	if d.member == 0 { // the crawl of any other document names its owner
		var err error
		if owner, err = s.docs.ownerOf(&n, d); err != nil {
			return err
		}
	}
	lasting, err := s.docs.lasting(&n, d)
	if err == nil && d.packed && last.Outcome().Kind == docindex.OutOfScope { // it may be in scope again
		lasting, err = s.docs.withPayload(&n, d, lasting)
	}
	if err != nil {
		return err
	}
	s.endedLocked(queue, &n, d, now)
	s.docs.unplan(&n, d)
	d.completed, d.last, d.url, d.owner, d.lasting = true, last, url, owner, keep(lasting)
	s.crawls.countPurged(d.member, d.kind(), 1)
	s.docs.write(&n, d)
	return nil
}

// endedLocked counts a document that is scheduled or in transit as completed.
func (s *Store) endedLocked(queue uint32, n *name, d *doc, now int64) {
	if id := s.transits.of(n); id != 0 {
		s.finishLocked(id, docindex.Completed, now)
		return
	}
	s.base.Sched.CountLater(queue, embedded.DueMS(d.at.due()), now, -1)
	s.queues.move(queue, queuesched.Scheduled, queuesched.Completed)
	s.crawls.shift(d.member, d.at.priority(), crawlstats.Scheduled, crawlstats.Completed, now)
	s.base.Sched.Refresh(queue, now) // its limit may be reached
}

// url reads a document's URL.
func (x *documents) url(n *name, d *doc) ([]byte, error) {
	if d.completed && !d.purged {
		return d.url, nil
	}
	p, err := x.body(n.queue, &d.at)
	return p.url, err
}

// body reads the body of a scheduled document.
func (x *documents) body(queueNo uint32, at *place) (plan, error) {
	t := x.txn
	t.key = planKey(t.key[:0], queueNo, at)
	value, err := x.db.get(t.key)
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

// findID finds a document by its DOC_ID. d is nil if there is none.
func (x *documents) findID(docID []byte) (n name, d *doc, err error) {
	n, given := x.namer.named(docID)
	if !given {
		var ok bool
		if n, ok, err = x.named(docID); err != nil || !ok {
			return n, nil, err
		}
	}
	if id, err := x.queues.cold.loadAny(n.queue); err != nil || id == 0 {
		return n, nil, err
	}
	d, err = x.load(&n)
	if err != nil || d == nil {
		return n, nil, err
	}
	if given != (len(d.id) == 0) || !given && !bytes.Equal(d.id, docID) {
		return n, nil, nil // a row that a deleted document left behind
	}
	return n, d, nil
}

// named returns the name of the document that was put with a DOC_ID last.
func (x *documents) named(docID []byte) (n name, ok bool, err error) {
	if len(docID) == 0 {
		return n, false, nil
	}
	t := x.txn
	if n, ok := t.ids[string(docID)]; ok {
		return n, true, nil
	}
	t.key = append(append(t.key[:0], idRow), docID...)
	value, err := x.db.get(t.key)
	if err != nil || value == nil {
		return n, false, err
	}
	n, err = readName(value)
	return n, err == nil, err
}

// document returns the document as clients see it.
func (x *documents) document(n *name, d *doc) (docindex.Document, error) {
	queue := x.queues.byNumber(n.queue)
	out := docindex.Document{State: docindex.Completed, Created: time.Unix(int64(d.created), 0).UTC(),
		Last: d.last.Outcome(),
		Put: docindex.Put{
			DocID: bytes.Clone(d.id), Crawl: []byte(x.queues.sched.Crawl(queue)),
			Key: bytes.Clone(x.queues.sched.Key(queue)),
			URL: d.url, Due: docindex.Never,
		}}
	if len(d.id) == 0 {
		out.DocID = x.namer.docID(nil, n)
	}
	if d.completed {
		lasting, err := x.lasting(n, d)
		if err != nil {
			return out, err
		}
		lasting.Unpack(&out.Put)
		owner, err := x.ownerOf(n, d)
		if out.Metadata = owner; err != nil || !d.purged {
			return out, err
		}
	}
	body, err := x.body(n.queue, &d.at)
	if out.URL = body.url; err != nil || d.purged {
		return out, err
	}
	out.State = docindex.Scheduled
	if x.transits.of(n) != 0 {
		out.State = docindex.InTransit
		if out.Last, err = x.last(n); err != nil {
			return out, err
		}
	}
	out.Due, out.Priority = d.at.due(), d.at.priority()
	if len(body.packed) > 0 {
		body.packed.Unpack(&out.Put)
	}
	return out, nil
}

// last reads the last outcome of a document in transit, which its record in memory lacks.
func (x *documents) last(n *name) (docindex.LastOutcome, error) {
	row, err := x.txn.row(n)
	if err != nil || row == nil {
		return docindex.LastOutcome{}, err
	}
	d, err := readDoc(row)
	return d.last.Outcome(), err
}

// ownURL returns a document's URL. own reports whether an outcome is of that document. If the
// outcome names the same URL, ownURL compares names and reads no row.
func (x *documents) ownURL(out *docindex.Outcome, n *name, d *doc) (url []byte, own bool, err error) {
	if len(out.URL) > 0 {
		if asked := x.namer.name(n.queue, out.URL); asked.isOf(n) {
			return out.URL, true, nil
		}
	}
	url, err = x.url(n, d)
	return url, err == nil && out.IsOf(url), err
}

// taken says why a document cannot have a DOC_ID; known is what is known of the document.
func (x *documents) taken(docID []byte, n *name, known *doc) (refusal, err error) {
	owner, d, err := x.findID(docID)
	if err != nil {
		return nil, err
	}
	if d != nil && owner != *n {
		url, err := x.url(&owner, d)
		return fmt.Errorf("doc_id %q: taken by %.200s", docID, url), err
	}
	named, given := x.namer.named(docID)
	if given && known == nil && named != *n {
		return fmt.Errorf("doc_id %q: the index gives those itself", docID), nil
	}
	return nil, nil
}

func (x *documents) giveID(queue uint32, n *name, docID []byte) {
	t := x.txn
	t.ids[string(docID)] = *n
	t.key = append(append(t.key[:0], idRow), docID...)
	t.value = n.append(t.value[:0])
	t.set()
	if q := x.queues.at(queue); !q.hasIDs {
		q.hasIDs = true
		x.queues.rewriteRow(queue)
	}
}

// inSlots returns the transit of a document that the slots have, or nil if they do not have it.
func (x *documents) inSlots(docID []byte) (*transit, error) {
	n, given := x.namer.named(docID)
	if !given {
		var ok bool
		var err error
		if n, ok, err = x.named(docID); err != nil || !ok {
			return nil, err
		}
	}
	id := x.transits.of(&n)
	if id == 0 {
		return nil, nil
	}
	t := x.transits.at(id)
	if t.consumer != queuesched.SlotConsumer || given != (t.idLen == 0) {
		return nil, nil
	}
	return t, nil
}

// docIDOf returns the DOC_ID of a document in transit.
func (x *documents) docIDOf(t *transit) []byte {
	if t.idLen > 0 {
		return []byte(t.id[:t.idLen])
	}
	return x.namer.docID(nil, &t.name)
}

// wasPurged reports whether a document whose row says that it is scheduled was purged with its
// partition.
func (x *documents) wasPurged(n *name, d *doc) bool {
	if d.completed || d.member == 0 || !x.crawls.partitions[d.member].purged || x.transits.of(n) != 0 {
		return false
	}
	_, stray := x.crawls.partitions[d.member].returnedAfterPurge[*n]
	return !stray
}

// scan calls do with documents of a queue, beginning with a key. It returns the key to continue
// with, or nil.
func (x *documents) scan(
	queueNo uint32, from []byte, most int, do func(n *name, d *doc) error,
) (next []byte, err error) {
	if from == nil {
		from = numberKey(docRow, queueNo)
	}
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: numberEnd(docRow, queueNo)})
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := it.Close(); err == nil {
			err = closing
		}
	}()
	for it.First(); it.Valid(); it.Next() {
		if most--; most < 0 {
			return bytes.Clone(it.Key()), nil
		}
		n, err := readName(it.Key()[1:])
		if err != nil {
			return nil, err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		d, err := x.read(&n, bytes.Clone(value))
		if err != nil {
			return nil, err
		}
		if err := do(&n, &d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
