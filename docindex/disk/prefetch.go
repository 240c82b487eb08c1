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
	no     uint32 // of the queue on disk; set if it had to be loaded
	key    name   // of the key's row; set if no queue was in memory
	name   name   // set if there is a queue
	row    []byte // of the document; nil: there is none
	looked bool   // row is known
	stays  bool   // the put changes nothing: its URL is known, see documents.isPlain
}

// prefetch finds the queues of URLs that are to be stored, but for those that findUnique finds, and
// reads the URLs' rows, before the store writes any of them. It reads rows in their order on disk:
// neighbours are in the same tables and blocks, so reading each row in the order of the Puts costs
// several times as much when hosts come at random.
func (x *documents) prefetch(p *docindex.Puts, from, to int) (err error) {
	t := x.txn
	for i := from; i < to; i++ {
		put, host := p.At(i)
		var a prefetched
		if len(put.Unique) == 0 {
			a = x.lookup(&put, host)
		}
		t.prefetched = append(t.prefetched, a)
		switch n := uint32(i - from); {
		case a.queue != 0:
			x.willRead(n, &put)
		case len(put.Unique) == 0:
			t.cold = append(t.cold, n)
		}
	}
	if err = x.loadCold(p, from); err != nil {
		return err
	}
	slices.SortFunc(t.order, func(i, j uint32) int { return t.prefetched[i].name.compare(&t.prefetched[j].name) })
	for _, i := range t.order {
		a := &t.prefetched[i]
		a.looked = true
		if a.row, err = x.txn.row(&a.name); err != nil {
			return err
		}
		if a.row != nil {
			x.known.add(&a.name)
			put, _ := p.At(from + int(i))
			a.stays = x.isPlain(a.queue, &put)
		}
	}
	return nil
}

// loadCold finds the queues that are not in memory, and loads them. It reads the rows of their keys before
// the rows of the queues, and both in their order on disk.
func (x *documents) loadCold(p *docindex.Puts, from int) (err error) {
	t, c := x.txn, &x.queues.cold
	slices.SortFunc(t.cold, func(i, j uint32) int { return t.prefetched[i].key.compare(&t.prefetched[j].key) })
	for _, i := range t.cold {
		a := &t.prefetched[i]
		if a.no, err = c.number(&a.key); err != nil {
			return err
		}
	}
	slices.SortFunc(t.cold, func(i, j uint32) int { return cmp.Compare(t.prefetched[i].no, t.prefetched[j].no) })
	rows := queueRows{db: x.db}
	defer rows.close()
	for _, i := range t.cold {
		a := &t.prefetched[i]
		if a.no == 0 {
			continue
		}
		put, _ := p.At(from + int(i))
		if a.queue, err = c.loadBy(rows.of, put.Crawl, a.no); err != nil {
			return err
		}
		if a.queue != 0 {
			x.willRead(i, &put)
		}
	}
	return nil
}

// willRead names a URL whose queue is known, and orders its row to be read if that is needed.
func (x *documents) willRead(i uint32, p *docindex.Put) {
	a := &x.txn.prefetched[i]
	a.name = x.namer.nameOf(x.queues.at(a.queue).no, docindex.IdentityOf(p), p.URL)
	plain := x.isPlain(a.queue, p)
	if !plain && x.transits.of(&a.name) != 0 {
		return // its record is in memory
	}
	switch has, seen := x.known.look(&a.name); {
	case has && plain:
		a.stays = true
	case !seen && a.name.queue > x.queues.before:
		a.looked = true // all rows of its queue were written since Open, so it has none
	default:
		x.txn.order = append(x.txn.order, i)
	}
}

// lookup returns the queue for a URL on a host if it is in memory, and else where its key's row is.
func (x *documents) lookup(p *docindex.Put, host []byte) (a prefetched) {
	key := keyOf(p, host)
	if a.queue = x.queues.sched.Lookup(p.Crawl, key); a.queue == 0 {
		a.key = x.namer.keyName(p.Crawl, key)
	}
	return a
}

// nameOf returns the queue for a URL on a host, and the name of the URL in it.
func (x *documents) nameOf(p *docindex.Put, host []byte) (a prefetched, err error) {
	if a = x.lookup(p, host); a.queue == 0 {
		a.queue, err = x.queues.cold.named(p.Crawl, &a.key)
	}
	if a.queue != 0 {
		a.name = x.namer.nameOf(x.queues.at(a.queue).no, docindex.IdentityOf(p), p.URL)
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

// find returns the document of a URL that is to be stored, or nil if it is not known, and sets its
// name. It also finds documents that were stored after the prefetch.
func (x *documents) find(a *prefetched, p *docindex.Put, host []byte) (*doc, error) {
	if len(p.Unique) > 0 {
		return x.findUnique(a, p, host)
	}
	if a.queue == 0 { // or has the txn added it?
		if a.queue = x.queues.sched.Lookup(p.Crawl, keyOf(p, host)); a.queue == 0 {
			return nil, nil
		}
		a.name = x.namer.nameOf(x.queues.at(a.queue).no, docindex.IdentityOf(p), p.URL)
	}
	d, err := x.looked(a)
	if err != nil || !x.queues.at(a.queue).owners {
		return d, err
	}
	return x.findOwned(&a.name, d, p)
}

// looked returns the document with the name that a prefetch read.
func (x *documents) looked(a *prefetched) (*doc, error) {
	if !a.looked {
		return x.load(&a.name)
	}
	if d, ok := x.cached(&a.name); ok {
		return d, nil
	}
	return x.decode(&a.name, a.row)
}

func (n *name) compare(o *name) int {
	if n.queue != o.queue {
		return cmp.Compare(n.queue, o.queue)
	}
	return bytes.Compare(n.hash[:], o.hash[:])
}
