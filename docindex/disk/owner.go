package disk

import (
	"bytes"
	"slices"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// A document's name contains its owner, see [docindex.OwnerOf]. A document that was put before
// version 4 keeps the name that its URL has without an owner. Its row and body contain the owner
// all the same. If such a document has the name that a new document without an owner would get, the
// new one gets the name that docNamer.tagged returns. A document without an appid that was
// completed before version 4 has lost its spiderid: the store finds it without an owner, and for
// any spiderid.

// docOwnerLocked returns a document's owner. It reads the body only where nothing else names the
// owner: of a document that is scheduled, has no appid, and is in a queue of documents with owners.
func (s *Store) docOwnerLocked(n *name, d *doc) ([]byte, error) {
	switch {
	case d.member != 0:
		return docindex.OwnerOfCrawl(s.crawls.partitions[d.member].domain.Crawl.ID), nil
	case d.completed:
		return d.owner, nil
	case !s.queueAt(s.queues.byNumber(n.queue)).owners:
		return nil, nil
	}
	body, err := s.bodyLocked(n.queue, &d.at)
	return docindex.OwnerOf(body.packed.Metadata()), err
}

// findOwnedLocked finds the document that p means, in a queue of documents with owners. It returns
// nil if there is none. n is the name by the owner in p, and d the document with that name, or nil.
// findOwnedLocked sets n to the name of the document that it returns, or that a new one gets.
func (s *Store) findOwnedLocked(n *name, d *doc, p *docindex.Put) (*doc, error) {
	owner := docindex.OwnerOf(p.Metadata)
	switch {
	case owner == nil && p.Update:
		return s.likeliestLocked(n)
	case owner == nil:
		return s.findOwnerlessLocked(n, d, p.URL)
	case d != nil:
		return d, nil
	}
	plain := s.namer.name(n.queue, p.URL)
	d, err := s.loadLocked(&plain)
	if err != nil || d == nil {
		return nil, err
	}
	has, err := s.docOwnerLocked(&plain, d)
	if err != nil || !bytes.Equal(has, owner) && !(d.anyone && !docindex.HasApp(owner)) {
		return nil, err
	}
	*n = plain
	return d, nil
}

// findOwnerlessLocked is findOwnedLocked for a put without an owner.
func (s *Store) findOwnerlessLocked(n *name, d *doc, url []byte) (*doc, error) {
	if d != nil {
		has, err := s.docOwnerLocked(n, d)
		if err != nil || has == nil {
			return d, err
		}
	}
	other := s.namer.tagged(n.queue, nil, url)
	known, err := s.loadLocked(&other)
	if d != nil || known != nil {
		*n = other
	}
	return known, err
}

// likeliestLocked finds the document that an update without an owner means: the one with the lowest
// [docindex.UpdateRank]. It returns nil if there is none. n is the URL's name without an owner;
// likeliestLocked sets it to the name of the document that it returns.
func (s *Store) likeliestLocked(n *name) (best *doc, err error) {
	if !s.queueAt(s.queues.byNumber(n.queue)).owners {
		return s.loadLocked(n)
	}
	names, err := s.namesakesLocked(n)
	if err != nil {
		return nil, err
	}
	rank := -1
	for _, one := range names {
		d, err := s.loadLocked(&one)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		owner, err := s.docOwnerLocked(&one, d)
		if err != nil {
			return nil, err
		}
		lasting, err := s.lastingLocked(&one, d)
		if err != nil {
			return nil, err
		}
		state, atCalls := s.stateLocked(&one, d)
		owned := owner != nil || len(lasting.Unique()) > 0
		if r := docindex.UpdateRank(state, atCalls, owned); rank < 0 || r < rank {
			best, rank, *n = d, r, one
		}
	}
	return best, nil
}

// stateLocked returns a document's state, and whether a URL Frontier client has it in transit.
func (s *Store) stateLocked(n *name, d *doc) (state docindex.State, atCalls bool) {
	if d.completed {
		return docindex.Completed, false
	}
	if id := s.transits.of(n); id != 0 {
		return docindex.InTransit, s.transits.at(id).consumer == queuesched.FrontierConsumer
	}
	return docindex.Scheduled, false
}

// namesakesLocked returns the names of all documents of a URL, sorted. Some of the documents may
// have been deleted by the txn.
func (s *Store) namesakesLocked(n *name) (all []name, err error) {
	it, err := s.readsLocked(false)
	if err != nil {
		return nil, err
	}
	prefix := n.docKey(nil)[:1+nameLen-hashLen+urlLen]
	for ok := it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		one, err := readName(it.Key()[1:])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	for one := range s.txn.docs {
		if one.isOf(n) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b name) int { return a.compare(&b) })
	return slices.Compact(all), it.Error()
}
