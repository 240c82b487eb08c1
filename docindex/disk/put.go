package disk

import (
	"context"

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
		err = s.db.waitSync(b, no)
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
	if err := s.txn.begin(); err != nil {
		return nil, 0, nil, err
	}
	if err := s.docs.prefetch(p, from, to); err != nil {
		return nil, 0, nil, s.txn.abort(err)
	}
	now := s.base.Now()
	for i := from; i < to; i++ {
		put, host := p.At(i)
		verdict, refusal, err := s.putLocked(&s.txn.prefetched[i-from], &put, host, now)
		if err != nil {
			return nil, 0, nil, s.txn.abort(err)
		}
		if verdict == docindex.Refused {
			refused = append(refused, docindex.Refusal{Index: i, Err: refusal})
		}
		*verdicts = append(*verdicts, verdict)
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, refused, err
}

func (s *Store) putLocked(
	a *prefetched, p *docindex.Put, host []byte, now int64,
) (v docindex.Verdict, refusal, err error) {
	if a.stays {
		return docindex.Same, nil, nil
	}
	d, err := s.docs.find(a, p, host)
	if err != nil {
		return 0, nil, err
	}
	if len(p.DocID) > 0 {
		if refusal, err = s.docs.taken(p.DocID, &a.name, d); err != nil || refusal != nil {
			return docindex.Refused, refusal, err
		}
	}
	if p.Update && s.base.Sched.HasOrphans() {
		n := s.docs.namer.name(0, p.URL)
		s.base.Sched.Reported(host, n.hash[:urlLen], now)
	}
	if d != nil {
		if err := s.docs.settleUpdate(&a.name, d, p, now); err != nil {
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
		s.crawls.setExpiry(d, p)
		return docindex.Changed, nil, nil
	case d != nil:
		s.crawls.setExpiry(d, p)
		return docindex.Same, nil, nil
	}
	s.openLocked(a, p, host, now)
	if err := s.insertLocked(a.queue, &a.name, p, host, now); err != nil {
		return 0, nil, err
	}
	return docindex.New, nil, nil
}

// openLocked records that a.queue has a URL on a host. If a has no queue, it adds the queue and
// sets a.queue.
func (s *Store) openLocked(a *prefetched, p *docindex.Put, host []byte, now int64) {
	if a.queue != 0 {
		if s.base.Sched.NoteHost(a.queue, host, now) {
			if s.base.Sched.QueueTotal(a.queue).URLs[queuesched.InTransit] > 0 {
				s.transits.setHost(a.queue, string(s.base.Sched.Key(a.queue)))
			}
			s.queues.rewriteRow(a.queue)
		}
		return
	}
	key := keyOf(p, host)
	if _, ok := s.base.Sched.Preset(p.Crawl, key); ok {
		s.txn.b.Delete(presetKey(p.Crawl, key), nil)
	}
	a.queue = s.base.Sched.Add(p.Crawl, key, host, now)
	s.queues.globals.queueNo++
	s.queues.add(a.queue, queue{no: s.queues.globals.queueNo, due: queuesched.Never, cursor: plainPlace,
		wake: queuesched.NoMoment})
	s.queues.keyRow(s.queues.globals.queueNo, &a.key)
	s.queues.rewriteRow(a.queue)
	a.name = s.docs.namer.nameOf(s.queues.globals.queueNo, docindex.IdentityOf(p), p.URL)
}

// insertLocked adds a new document.
func (s *Store) insertLocked(queue uint32, n *name, p *docindex.Put, host []byte, now int64) error {
	s.docs.known.add(n) // nobody reads it if the commit fails
	d := doc{created: embedded.CreatedAt(p.Created, now)}
	owner := docindex.OwnerOf(p.Metadata)
	if len(p.Unique) > 0 {
		s.docs.giveID(queue, n, s.docs.namer.uniqueKey(p.Crawl, docindex.IdentityOf(p)))
	}
	if q := s.queues.at(queue); (owner != nil || len(p.Unique) > 0) && !q.owners {
		q.owners = true
		s.queues.rewriteRow(queue)
	}
	if _, given := s.docs.namer.named(p.DocID); len(p.DocID) > 0 && !given {
		s.docs.giveID(queue, n, p.DocID)
		d.id = p.DocID
	}
	if p.Due == docindex.Never {
		d.completed, d.url, d.owner, d.lasting = true, p.URL, owner, keep(lastingOf(docindex.Pack(p)))
		s.docs.write(n, &d)
		s.queues.count(queue, queuesched.Completed, 1)
		s.base.Sched.Refresh(queue, now)
		return nil
	}
	branch, err := s.queues.enterBranch(queue, p, host, now)
	if err != nil {
		return err
	}
	d.member = s.crawls.enter(queue, p)
	s.crawls.setExpiry(&d, p)
	s.docs.schedule(queue, n, &d, p, branch, now)
	s.queues.count(queue, queuesched.Scheduled, 1)
	s.queues.enqueue(queue, &d.at, now)
	return nil
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
		s.queues.move(queue, queuesched.Completed, queuesched.Scheduled)
	} else if id := s.transits.of(n); id != 0 {
		s.finishLocked(id, docindex.Scheduled, now)
	}
	if !d.completed || d.purged {
		if !d.completed {
			s.base.Sched.CountLater(queue, embedded.DueMS(d.at.due()), now, -1)
		}
		s.docs.unplan(n, d)
	}
	s.crawls.rejoin(queue, d, p, now)
	s.docs.schedule(queue, n, d, p, 0, now)
	s.queues.enqueue(queue, &d.at, now)
	s.base.Sched.Refresh(queue, now) // its limit may no longer be reached
	return nil
}
