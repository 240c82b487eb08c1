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

// ownerOf returns a document's owner. It reads the body only where nothing else names the owner: of
// a document that is scheduled, has no appid, and is in a queue of documents with owners.
func (x *documents) ownerOf(n *name, d *doc) ([]byte, error) {
	switch {
	case d.member != 0:
		return docindex.OwnerOfCrawl(x.crawls.partitions[d.member].domain.Crawl.ID), nil
	case d.completed:
		return d.owner, nil
	case !x.queues.at(x.queues.byNumber(n.queue)).owners:
		return nil, nil
	}
	body, err := x.body(n.queue, &d.at)
	return docindex.OwnerOf(body.packed.Metadata()), err
}

// findOwned finds the document that p means, in a queue of documents with owners. It returns nil if
// there is none. n is the name by the owner in p, and d the document with that name, or nil.
// findOwned sets n to the name of the document that it returns, or that a new one gets.
func (x *documents) findOwned(n *name, d *doc, p *docindex.Put) (*doc, error) {
	owner := docindex.OwnerOf(p.Metadata)
	switch {
	case owner == nil && p.Update:
		return x.likeliest(n)
	case owner == nil:
		return x.findOwnerless(n, d, p.URL)
	case d != nil:
		return d, nil
	}
	plain := x.namer.name(n.queue, p.URL)
	d, err := x.load(&plain)
	if err != nil || d == nil {
		return nil, err
	}
	has, err := x.ownerOf(&plain, d)
	if err != nil || !bytes.Equal(has, owner) && !(d.anyone && !docindex.HasApp(owner)) {
		return nil, err
	}
	*n = plain
	return d, nil
}

// findOwnerless is findOwned for a put without an owner.
func (x *documents) findOwnerless(n *name, d *doc, url []byte) (*doc, error) {
	if d != nil {
		has, err := x.ownerOf(n, d)
		if err != nil || has == nil {
			return d, err
		}
	}
	other := x.namer.tagged(n.queue, nil, url)
	known, err := x.load(&other)
	if d != nil || known != nil {
		*n = other
	}
	return known, err
}

// likeliest finds the document that an update without an owner means: the one with the lowest
// [docindex.UpdateRank]. It returns nil if there is none. n is the URL's name without an owner;
// likeliest sets it to the name of the document that it returns.
func (x *documents) likeliest(n *name) (best *doc, err error) {
	if !x.queues.at(x.queues.byNumber(n.queue)).owners {
		return x.load(n)
	}
	names, err := x.namesakes(n)
	if err != nil {
		return nil, err
	}
	rank := -1
	for _, one := range names {
		d, err := x.load(&one)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		owner, err := x.ownerOf(&one, d)
		if err != nil {
			return nil, err
		}
		lasting, err := x.lasting(&one, d)
		if err != nil {
			return nil, err
		}
		state, atCalls := x.state(&one, d)
		owned := owner != nil || len(lasting.Unique()) > 0
		if r := docindex.UpdateRank(state, atCalls, owned); rank < 0 || r < rank {
			best, rank, *n = d, r, one
		}
	}
	return best, nil
}

// state returns a document's state, and whether a URL Frontier client has it in transit.
func (x *documents) state(n *name, d *doc) (state docindex.State, atCalls bool) {
	if d.completed {
		return docindex.Completed, false
	}
	if id := x.transits.of(n); id != 0 {
		return docindex.InTransit, x.transits.at(id).consumer == queuesched.FrontierConsumer
	}
	return docindex.Scheduled, false
}

// namesakes returns the names of all documents of a URL, sorted. Some of the documents may have
// been deleted by the txn.
func (x *documents) namesakes(n *name) (all []name, err error) {
	it, err := x.txn.rowsIn(false)
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
	for one := range x.txn.docs {
		if one.isOf(n) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b name) int { return a.compare(&b) })
	return slices.Compact(all), it.Error()
}
