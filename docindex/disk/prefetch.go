package disk

import (
	"bytes"
	"cmp"
	"slices"

	"urlserver/docindex"
)

// prefetched is the result of a prefetch for a URL that is to be stored.
type prefetched struct {
	queue  uint32 // number in the scheduler; 0: there was none
	key    name   // of the key's row; set if no queue was in memory
	name   name   // set if there is a queue
	row    []byte // of the document; nil: there is none
	looked bool   // row is known
	stays  bool   // the put changes nothing; see staysLocked
}

// prefetchLocked finds the queues of URLs that are to be stored, but for those that findUniqueLocked
// finds, and reads the URLs' rows, before the store writes any of them. It reads rows in their order
// on disk: neighbours are in the same tables and blocks, so reading each row in the order of the Puts
// costs several times as much when hosts come at random.
func (s *Store) prefetchLocked(p *docindex.Puts, from, to int) (err error) {
	t := &s.txn
	for i := from; i < to; i++ {
		put, host := p.At(i)
		var a prefetched
		if len(put.Unique) == 0 {
			a = s.lookupLocked(&put, host)
		}
		t.prefetched = append(t.prefetched, a)
		switch n := uint32(i - from); {
		case a.queue != 0:
			s.willReadLocked(n, &put)
		case len(put.Unique) == 0:
			t.cold = append(t.cold, n)
		}
	}
	slices.SortFunc(t.cold, func(i, j uint32) int { return t.prefetched[i].key.compare(&t.prefetched[j].key) })
	for _, i := range t.cold {
		a := &t.prefetched[i]
		if a.queue, err = s.queueNamed(&a.key); err != nil {
			return err
		}
		if a.queue != 0 {
			put, _ := p.At(from + int(i))
			s.willReadLocked(i, &put)
		}
	}
	slices.SortFunc(t.order, func(i, j uint32) int { return t.prefetched[i].name.compare(&t.prefetched[j].name) })
	for _, i := range t.order {
		a := &t.prefetched[i]
		a.looked = true
		if a.row, err = s.rowLocked(&a.name); err != nil {
			return err
		}
	}
	return nil
}

// willReadLocked names a URL whose queue is known, and orders its row to be read if that is needed.
func (s *Store) willReadLocked(i uint32, p *docindex.Put) {
	a := &s.txn.prefetched[i]
	a.name = s.namer.nameOf(s.queueAt(a.queue).no, docindex.IdentityOf(p), p.URL)
	a.stays = s.staysLocked(a, p)
	if !a.stays && s.transits.of(&a.name) == 0 {
		s.txn.order = append(s.txn.order, i)
	}
}

// lookupLocked returns the queue for a URL on a host if it is in memory, and else where its key's row
// is.
func (s *Store) lookupLocked(p *docindex.Put, host []byte) (a prefetched) {
	key := keyOf(p, host)
	if a.queue = s.base.Sched.Lookup(p.Crawl, key); a.queue == 0 {
		a.key = s.namer.keyName(p.Crawl, key)
	}
	return a
}

// nameLocked returns the queue for a URL on a host, and the name of the URL in it.
func (s *Store) nameLocked(p *docindex.Put, host []byte) (a prefetched, err error) {
	if a = s.lookupLocked(p, host); a.queue == 0 {
		a.queue, err = s.queueNamed(&a.key)
	}
	if a.queue != 0 {
		a.name = s.namer.nameOf(s.queueAt(a.queue).no, docindex.IdentityOf(p), p.URL)
	}
	return a, err
}

// keyOf returns the key of the queue for a URL on a host.
func keyOf(p *docindex.Put, host []byte) []byte {
	if len(p.Key) > 0 {
		return p.Key
	}
	return host
}

// findLocked returns the document of a URL that is to be stored, or nil if it is not known, and
// sets its name. It also finds documents that were stored after the prefetch.
func (s *Store) findLocked(a *prefetched, p *docindex.Put, host []byte) (*doc, error) {
	if len(p.Unique) > 0 {
		return s.findUniqueLocked(a, p, host)
	}
	if a.queue == 0 { // or has the txn added it?
		if a.queue = s.base.Sched.Lookup(p.Crawl, keyOf(p, host)); a.queue == 0 {
			return nil, nil
		}
		a.name = s.namer.nameOf(s.queueAt(a.queue).no, docindex.IdentityOf(p), p.URL)
	}
	d, err := s.lookedLocked(a)
	if err != nil || !s.queueAt(a.queue).owners {
		return d, err
	}
	return s.findOwnedLocked(&a.name, d, p)
}

// lookedLocked returns the document with the name that a prefetch read.
func (s *Store) lookedLocked(a *prefetched) (*doc, error) {
	if !a.looked {
		return s.loadLocked(&a.name)
	}
	if d, ok := s.cachedLocked(&a.name); ok {
		return d, nil
	}
	if a.row != nil {
		s.known.add(&a.name)
	}
	return s.knownLocked(&a.name, a.row)
}

func (n *name) compare(o *name) int {
	if n.queue != o.queue {
		return cmp.Compare(n.queue, o.queue)
	}
	return bytes.Compare(n.hash[:], o.hash[:])
}
