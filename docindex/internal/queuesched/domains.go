package queuesched

import (
	"cmp"
	"hash/maphash"

	"urlserver/docindex/internal/rounds"
	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
	"urlserver/internal/weburl"
)

// domain is the queues of a crawl whose keys are in one registered domain.
type domain struct {
	name   arena.Ref
	crawl  uint32
	queues uint32
	active uint32 // of these, those with URLs scheduled or in transit
	own    uint32 // number in the crawl's overruns; 0: its queues take turns with all others
	out    uint32 // URLs that the slots of this daemon have
	rounds.Domain
	nameLen uint16
	kept    bool // in the crawl's list of domains that stay without a queue in memory
}

// domains has the domains of all crawls. The zero value is ready.
type domains struct {
	seed   maphash.Seed
	list   slab.Slab[domain]
	names  arena.Arena
	byName hashindex.Index // by crawl and name
}

// domainBytes is the size of a domain, in bytes.
const domainBytes = 48

func (s *domains) at(id uint32) *domain { return s.list.At(id) }

func (s *domains) name(one *domain) string { return string(s.names.Bytes(one.name, int(one.nameLen))) }

func (s *domains) bytes() int64 {
	return int64(s.names.Size()) + int64(s.list.Len())*(domainBytes+hashindex.EntryBytes)
}

func (s *domains) hash(crawl uint32, name string) uint32 {
	return uint32(maphash.String(s.seed, name)>>32) ^ crawl*0x9E3779B1
}

func (s *domains) find(crawl uint32, name string) uint32 {
	return s.byName.Find(s.hash(crawl, name), func(id uint32) bool {
		one := s.list.At(id)
		return one.crawl == crawl && string(s.names.Bytes(one.name, int(one.nameLen))) == name
	})
}

func (s *domains) add(crawl uint32, name string) uint32 {
	id := s.list.New()
	ref, room := s.names.New(len(name))
	copy(room, name)
	*s.list.At(id) = domain{name: ref, nameLen: uint16(len(name)), crawl: crawl}
	s.byName.Add(s.hash(crawl, name), id)
	return id
}

func (s *domains) free(id uint32) {
	one := s.list.At(id)
	s.byName.Remove(s.hash(one.crawl, s.name(one)), id)
	s.names.Free(one.name, int(one.nameLen))
	s.list.Free(id)
}

// openDomain returns the domain of a crawl. It adds the domain, with its first round, if there is none.
func (d *Scheduler) openDomain(crawl uint32, name string) uint32 {
	id := d.domains.find(crawl, name)
	if id == 0 {
		id = d.domains.add(crawl, name)
		d.domains.at(id).Begin(d.crawls[crawl].pages)
	}
	return id
}

// joinDomain adds a queue without URLs to the domain of its key.
func (d *Scheduler) joinDomain(id uint32) {
	q := d.queues.At(id)
	key := string(d.Key(id))
	q.domain = d.openDomain(q.crawl, cmp.Or(weburl.Domain(key), key)) // "." has none
	d.domains.at(q.domain).queues++
}

// leaveDomain removes a queue that is in no ring from its domain. A domain without queues is
// forgotten, unless it overran its budget. A domain whose last queue is evicted stays, too, if it has
// had half of its budget.
func (d *Scheduler) leaveDomain(id uint32, evicted bool) {
	q := d.queues.At(id)
	if q.active() {
		d.countActive(q, false)
	}
	one := d.domains.at(q.domain)
	one.queues--
	one.out -= q.out[SlotConsumer] - q.remote
	d.orderDomain(q.domain)
	if c := &d.crawls[q.crawl]; d.isPlain(c, one) && one.queues == 0 && !one.kept {
		if evicted && d.budget > 0 && one.Used >= (d.budget+1)/2 {
			one.kept = true
			c.kept = append(c.kept, q.domain)
		} else {
			d.domains.free(q.domain)
		}
	}
	q.domain = 0
}

// dropKept forgets the domains that stayed without a queue, of a crawl without queues.
func (d *Scheduler) dropKept(c *crawl) {
	for _, id := range c.kept {
		if d.domains.at(id).own == 0 { // or else dropOverruns forgets it
			d.domains.free(id)
		}
	}
	c.kept = nil
}

// countActive counts a queue that has begun or ceased to be active, in its domain and crawl.
func (d *Scheduler) countActive(q *queue, is bool) {
	one, c := d.domains.at(q.domain), &d.crawls[q.crawl]
	if !is {
		c.active--
		if one.active--; one.active == 0 {
			c.domains--
		}
		return
	}
	c.active++
	if one.active++; one.active == 1 {
		c.domains++
	}
}

// domainsWithWork estimates how many registered domains have URLs scheduled or in transit. It
// assumes that the active queues on disk have as many domains per queue as those in memory.
func (c *crawl) domainsWithWork() uint64 {
	return uint64(c.domains) * c.total.Active / uint64(max(c.active, 1))
}
