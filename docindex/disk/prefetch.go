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
	name   name   // set if there is a queue
	row    []byte // of the document; nil: there is none
	looked bool   // row is known
	stays  bool   // the put changes nothing; see staysLocked
}

// prefetchLocked reads the rows of URLs that are to be stored, in their order on disk, before the
// store writes any of them. Neighbouring rows are in the same tables and blocks, so reading each
// row in the order of the Puts costs several times as much when hosts come at random.
func (s *Store) prefetchLocked(p *docindex.Puts, from, to int) (err error) {
	t := &s.txn
	for i := from; i < to; i++ {
		put, host := p.At(i)
		var a prefetched
		if len(put.Unique) == 0 { // or else findUniqueLocked finds it
			a = s.nameLocked(&put, host)
			a.stays = s.staysLocked(&a, &put)
		}
		if a.queue != 0 && !a.stays && s.transits.of(&a.name) == 0 {
			t.order = append(t.order, uint32(len(t.prefetched)))
		}
		t.prefetched = append(t.prefetched, a)
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

// nameLocked returns the queue for a URL on a host, and the name of the URL in it.
func (s *Store) nameLocked(p *docindex.Put, host []byte) (a prefetched) {
	if a.queue = s.base.Sched.Find(p.Crawl, keyOf(p, host)); a.queue != 0 {
		a.name = s.namer.nameOf(s.queueAt(a.queue).no, docindex.IdentityOf(p), p.URL)
	}
	return a
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
	if a.queue == 0 {
		if *a = s.nameLocked(p, host); a.queue == 0 {
			return nil, nil
		}
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
