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
	no     uint32 // of a queue on disk, to be loaded; 0: there is none
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
		switch {
		case a.queue != 0:
			a.name = x.namer.nameOf(x.queues.at(a.queue).no, docindex.IdentityOf(&put), put.URL)
			x.known.next(&a.name)
		case len(put.Unique) == 0:
			t.cold = append(t.cold, uint32(i-from))
		}
		t.prefetched = append(t.prefetched, a)
	}
	x.known.readNext()
	for i := range t.prefetched {
		if t.prefetched[i].queue != 0 {
			put, _ := p.At(from + i)
			x.willRead(uint32(i), &put)
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

const fewCold = 2 // for up to this many queues, single reads cost less than iterators

// loadCold finds the queues that are not in memory, and loads them. It reads the rows of their keys before
// the rows of the queues, and each kind in the order of its keys.
func (x *documents) loadCold(p *docindex.Puts, from int) (err error) {
	t := x.txn
	slices.SortFunc(t.cold, func(i, j uint32) int { return t.prefetched[i].key.compare(&t.prefetched[j].key) })
	for _, i := range t.cold {
		a := &t.prefetched[i]
		if a.no = x.queues.numbers.find(&a.key); a.no != 0 {
			continue
		}
		if a.no, err = x.queues.cold.number(&a.key); err != nil {
			return err
		}
		if a.no != 0 {
			x.queues.numbers.add(&a.key, a.no)
		}
	}
	slices.SortFunc(t.cold, func(i, j uint32) int { return cmp.Compare(t.prefetched[i].no, t.prefetched[j].no) })
	rows := queueRows{db: x.db, filters: true}
	defer rows.close()
	read := rows.of
	if len(t.cold) <= fewCold {
		read = x.queues.cold.read
	}
	for _, i := range t.cold {
		a := &t.prefetched[i]
		if a.no == 0 {
			continue
		}
		put, host := p.At(from + int(i))
		if err = x.loadFound(a, read, put.Crawl, keyOf(&put, host)); err != nil {
			return err
		}
		if a.queue != 0 {
			a.name = x.namer.nameOf(x.queues.at(a.queue).no, docindex.IdentityOf(&put), put.URL)
			x.willRead(i, &put)
		}
	}
	return nil
}

// loadFound loads a queue whose number was found. If that is the number of another queue, it reads the row
// of the key.
func (x *documents) loadFound(
	a *prefetched, read func(crawl, no uint32) (*queueRecord, error), crawl, key []byte,
) (err error) {
	c, sched := &x.queues.cold, x.queues.sched
	if a.queue, err = c.loadBy(read, crawl, a.no); err != nil ||
		a.queue != 0 && sched.Crawl(a.queue) == string(crawl) && bytes.Equal(sched.Key(a.queue), key) {
		return err
	}
	a.queue, err = c.named(crawl, &a.key)
	return err
}

// willRead adds a URL whose name is known to the URLs whose rows prefetch reads, unless the row is
// not needed.
func (x *documents) willRead(i uint32, p *docindex.Put) {
	a := &x.txn.prefetched[i]
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

// lookup finds the queue for a URL on a host if it is in memory. If not, it sets the name of the
// key's row.
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
