package disk

import (
	"bytes"
	"slices"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// Documents have names by their owners, see [docindex.OwnerOf]. One that was put before version 4
// has the name that its URL has without an owner, and keeps it: its owner is in its row and body
// all the same. Where such a one has the name of a document without an owner, that gets another
// one. One that was completed then, and had no appid, is known without an owner and to all
// spiderids: its own is not kept.

// docOwnerLocked is a document's owner. It reads the body where only that tells: of a document that is
// scheduled, has no appid, and is in a queue of documents with owners.
func (s *Store) docOwnerLocked(n *name, d *doc) ([]byte, error) {
	switch {
	case d.member != 0:
		return docindex.OwnerOfCrawl(s.crawls.partitions[d.member].domain.Crawl.ID), nil
	case d.completed:
		return d.owner, nil
	case !s.queues[s.byNo[n.queue]].owners:
		return nil, nil
	}
	body, err := s.bodyLocked(n.queue, &d.at)
	return docindex.OwnerOf(body.metadata), err
}

// keepOwnerLocked makes the metadata of an update name the owner of the document, which never
// changes.
func (s *Store) keepOwnerLocked(n *name, d *doc, p *docindex.Put) error {
	if p.Due == docindex.Never {
		return nil // nothing else is kept of it
	}
	owner, err := s.docOwnerLocked(n, d)
	p.Metadata = docindex.WithOwner(p.Metadata, owner)
	return err
}

// findOwnedLocked finds what is known of a URL in a queue of documents with owners; nil: nothing. d
// is what is known under n, the name that it has by its owner. n is changed to the name that it
// has.
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

// findOwnerlessLocked is findOwnedLocked for a URL without an owner.
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

// likeliestLocked finds the document that news without an owner is of, by [docindex.UpdateRank];
// nil: there is none. n is the name of the URL without an owner, and is changed to the one that the
// document has.
func (s *Store) likeliestLocked(n *name) (best *doc, err error) {
	if !s.queues[s.byNo[n.queue]].owners {
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
		state, atCalls := s.stateLocked(&one, d)
		if r := docindex.UpdateRank(state, atCalls, owner != nil); rank < 0 || r < rank {
			best, rank, *n = d, r, one
		}
	}
	return best, nil
}

// stateLocked is a document's state, and whether a client of GetURLs has it.
func (s *Store) stateLocked(n *name, d *doc) (state docindex.State, atCalls bool) {
	if d.completed {
		return docindex.Completed, false
	}
	if id := s.transitOf(n); id != 0 {
		return docindex.InTransit, s.transits.At(id).consumer == queuesched.FrontierConsumer
	}
	return docindex.Scheduled, false
}

// namesakesLocked are the names of all documents of a URL, in their order, and maybe of some that
// are gone.
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
