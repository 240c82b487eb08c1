package disk

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// Put is [docindex.Putter.Put].
func (s *Store) Put(ctx context.Context, p *docindex.Puts) (res docindex.PutResult, err error) {
	scheduled := false
	for i := 0; i < p.Len() && err == nil; i += embedded.LockBatch {
		if err = ctx.Err(); err != nil {
			break
		}
		var some bool
		some, err = s.putSome(p, i, min(i+embedded.LockBatch, p.Len()), &res)
		scheduled = scheduled || some
	}
	if scheduled {
		s.base.Wake()
	} else {
		s.base.WakeForRoom()
	}
	return res, err
}

// putSome stores some URLs. Their verdicts count only once they are on disk.
func (s *Store) putSome(p *docindex.Puts, from, to int, res *docindex.PutResult) (scheduled bool, err error) {
	verdicts := make([]docindex.Verdict, 0, to-from)
	b, no, refused, err := s.putLocking(p, from, to, &verdicts)
	if err == nil {
		err = s.waitSync(b, no)
	}
	if err != nil {
		return false, err
	}
	for i, verdict := range verdicts {
		p.SetVerdict(from+i, verdict)
		switch verdict {
		case docindex.New:
			res.New++
		case docindex.Same, docindex.Changed:
			res.Known++
		case docindex.Dropped:
			res.Dropped++
		}
		if verdict == docindex.New || verdict == docindex.Changed {
			put, _ := p.At(from + i)
			scheduled = scheduled || put.Due != docindex.Never
		}
	}
	res.Refused = append(res.Refused, refused...)
	return scheduled, nil
}

func (s *Store) putLocking(p *docindex.Puts, from, to int, verdicts *[]docindex.Verdict) (
	b *pebble.Batch, no uint64, refused []docindex.Refusal, err error,
) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.beginLocked(); err != nil {
		return nil, 0, nil, err
	}
	if err := s.prefetchLocked(p, from, to); err != nil {
		return nil, 0, nil, s.abortLocked(err)
	}
	now := s.base.Now()
	for i := from; i < to; i++ {
		put, host := p.At(i)
		verdict, refusal, err := s.putLocked(&s.txn.prefetched[i-from], &put, host, now)
		if err != nil {
			return nil, 0, nil, s.abortLocked(err)
		}
		if verdict == docindex.Refused {
			refused = append(refused, docindex.Refusal{Index: i, Err: refusal})
		}
		*verdicts = append(*verdicts, verdict)
	}
	b, err = s.commitLocked()
	return b, s.journal.no, refused, err
}

func (s *Store) putLocked(
	a *prefetched, p *docindex.Put, host []byte, now int64,
) (v docindex.Verdict, refusal, err error) {
	if a.stays {
		return docindex.Same, nil, nil
	}
	d, err := s.findLocked(a, p, host)
	if err != nil {
		return 0, nil, err
	}
	if len(p.DocID) > 0 {
		if refusal, err = s.takenLocked(p.DocID, &a.name, d); err != nil || refusal != nil {
			return docindex.Refused, refusal, err
		}
	}
	if p.Update && s.base.Sched.HasOrphans() {
		n := s.namer.name(0, p.URL)
		s.base.Sched.Reported(host, n.hash[:urlLen], now)
	}
	if d != nil {
		if err := s.settleUpdateLocked(&a.name, d, p, now); err != nil {
			return 0, nil, err
		}
	}
	if dropped, err := s.droppedLocked(a.queue, &a.name, d, p, now); err != nil || dropped {
		return docindex.Dropped, nil, err
	}
	switch {
	case d != nil && p.Update:
		if s.transits.of(&a.name) != 0 { // which the update ends
			d.last = embedded.Reported(now)
		}
		if err := s.updateLocked(a.queue, &a.name, d, p, now); err != nil {
			return 0, nil, err
		}
		s.setExpiryLocked(d, p)
		return docindex.Changed, nil, nil
	case d != nil:
		s.setExpiryLocked(d, p)
		return docindex.Same, nil, nil
	}
	s.openLocked(a, p, host, now)
	if err := s.insertLocked(a.queue, &a.name, p, host, now); err != nil {
		return 0, nil, err
	}
	return docindex.New, nil, nil
}

// takenLocked says why a document cannot have a DOC_ID; known is what is known of the document.
func (s *Store) takenLocked(docID []byte, n *name, known *doc) (refusal, err error) {
	owner, d, err := s.findIDLocked(docID)
	if err != nil {
		return nil, err
	}
	if d != nil && owner != *n {
		url, err := s.urlLocked(&owner, d)
		return fmt.Errorf("doc_id %q: taken by %.200s", docID, url), err
	}
	named, given := s.namer.named(docID)
	if given && known == nil && named != *n {
		return fmt.Errorf("doc_id %q: the index gives those itself", docID), nil
	}
	return nil, nil
}

// openLocked returns the queue for a URL on a host, and adds it if there is none.
func (s *Store) openLocked(a *prefetched, p *docindex.Put, host []byte, now int64) {
	if a.queue != 0 {
		if s.base.Sched.NoteHost(a.queue, host, now) {
			s.rewriteRow(a.queue)
		}
		return
	}
	key := keyOf(p, host)
	if _, ok := s.base.Sched.Preset(p.Crawl, key); ok {
		s.txn.b.Delete(presetKey(p.Crawl, key), nil)
	}
	a.queue = s.base.Sched.Add(p.Crawl, key, host, now)
	s.globals.queueNo++
	s.queues.add(a.queue, queue{no: s.globals.queueNo, due: queuesched.Never, cursor: plainPlace,
		wake: queuesched.NoMoment})
	s.keyRowLocked(s.globals.queueNo, &a.key)
	s.rewriteRow(a.queue)
	a.name = s.namer.nameOf(s.globals.queueNo, docindex.IdentityOf(p), p.URL)
}

// keyRowLocked writes the row that finds a queue by its key.
func (s *Store) keyRowLocked(no uint32, n *name) {
	t := &s.txn
	t.key = n.docKey(t.key[:0])
	t.value = binary.BigEndian.AppendUint32(t.value[:0], no)
	t.set()
	s.memtables.add(n)
}

// insertLocked adds a new document.
func (s *Store) insertLocked(queue uint32, n *name, p *docindex.Put, host []byte, now int64) error {
	d := doc{created: embedded.CreatedAt(p.Created, now)}
	owner := docindex.OwnerOf(p.Metadata)
	if len(p.Unique) > 0 {
		s.giveIDLocked(queue, n, s.namer.uniqueKey(p.Crawl, docindex.IdentityOf(p)))
	}
	if q := s.queueAt(queue); (owner != nil || len(p.Unique) > 0) && !q.owners {
		q.owners = true
		s.rewriteRow(queue)
	}
	if _, given := s.namer.named(p.DocID); len(p.DocID) > 0 && !given {
		s.giveIDLocked(queue, n, p.DocID)
		d.id = p.DocID
	}
	if p.Due == docindex.Never {
		d.completed, d.url, d.owner, d.lasting = true, p.URL, owner, keep(lastingOf(docindex.Pack(p)))
		s.writeLocked(n, &d)
		s.count(queue, queuesched.Completed, 1)
		s.base.Sched.Refresh(queue, now)
		return nil
	}
	branch, err := s.enterBranchLocked(queue, p, host, now)
	if err != nil {
		return err
	}
	d.member = s.enterCrawlLocked(queue, p)
	s.setExpiryLocked(&d, p)
	s.scheduleRowLocked(queue, n, &d, p, branch, now)
	s.count(queue, queuesched.Scheduled, 1)
	s.enqueueLocked(queue, &d.at, now)
	return nil
}

func (s *Store) giveIDLocked(queue uint32, n *name, docID []byte) {
	t := &s.txn
	t.ids[string(docID)] = *n
	t.key = append(append(t.key[:0], idRow), docID...)
	t.value = n.append(t.value[:0])
	t.set()
	if q := s.queueAt(queue); !q.hasIDs {
		q.hasIDs = true
		s.rewriteRow(queue)
	}
}

// updateLocked updates a known document.
func (s *Store) updateLocked(queue uint32, n *name, d *doc, p *docindex.Put, now int64) error {
	if p.Due == docindex.Never {
		if d.completed {
			return nil
		}
		return s.completeLocked(queue, *n, d, p.URL, embedded.Reported(now), now)
	}
	if d.completed {
		s.move(queue, queuesched.Completed, queuesched.Scheduled)
	} else if id := s.transits.of(n); id != 0 {
		s.finishLocked(id, docindex.Scheduled, now)
	}
	if !d.completed || d.purged {
		if !d.completed {
			s.base.Sched.CountLater(queue, embedded.DueMS(d.at.due()), now, -1)
		}
		s.unplanLocked(n, d)
	}
	s.rejoinLocked(queue, d, p, now)
	s.scheduleRowLocked(queue, n, d, p, 0, now)
	s.enqueueLocked(queue, &d.at, now)
	s.base.Sched.Refresh(queue, now) // its limit may no longer be reached
	return nil
}
