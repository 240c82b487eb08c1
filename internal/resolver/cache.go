package resolver

import (
	"bytes"
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"time"

	"urlserver/internal/container/hashindex"
)

const (
	maxCached = 2 << 20        // names; about 140 MB
	maxStale  = 24 * time.Hour // how long after its end an address may be used while servers fail
	pageSize  = 256            // records; their names take less than 64 KiB
)

// kind is the kind of a cached result.
type kind uint8

const (
	kindNone    kind = iota // nothing that may be cached
	kindAddr                // an address from name servers
	kindLocal               // an address from elsewhere, which is never served stale
	kindNoHost              // no such host
	kindRefused             // an address in a refused network
	kindFailed              // name servers failed
)

func (k kind) err() error {
	switch k {
	case kindNoHost:
		return ErrNoHost
	case kindRefused:
		return ErrRefused
	case kindFailed:
		return ErrServers
	}
	return nil
}

// record is the entry of one name: 32 bytes. It holds no pointers, so the garbage collector need not
// scan a million of them.
type record struct {
	addr     [16]byte
	ends     int64  // nanoseconds since the resolver's start
	staleEnd uint32 // seconds since the resolver's start
	nameAt   uint16 // in its page's names
	nameLen  uint8
	kind     kind
}

type page struct {
	records []record
	names   []byte
}

// generation is a set of records that are dropped together. They are numbered from 1.
type generation struct {
	index hashindex.Index // of the records by hash of the name
	pages []page
}

func newGeneration() *generation { return &generation{} }

func (g *generation) find(hash uint32, name []byte) *record {
	n := g.index.Find(hash, func(n uint32) bool {
		p, rec := g.at(n)
		return string(p.names[rec.nameAt:][:rec.nameLen]) == string(name)
	})
	if n == 0 {
		return nil
	}
	_, rec := g.at(n)
	return rec
}

func (g *generation) at(n uint32) (*page, *record) {
	p := &g.pages[(n-1)/pageSize]
	return p, &p.records[(n-1)%pageSize]
}

// add makes a record for name, which has none.
func (g *generation) add(hash uint32, name []byte) *record {
	if n := len(g.pages); n == 0 || len(g.pages[n-1].records) == pageSize {
		if n > 0 { // its names grew with room to spare
			g.pages[n-1].names = bytes.Clone(g.pages[n-1].names)
		}
		g.pages = append(g.pages, page{records: make([]record, 0, pageSize)})
	}
	last := len(g.pages) - 1
	p := &g.pages[last]
	n := len(p.records)
	p.records = append(p.records, record{nameAt: uint16(len(p.names)), nameLen: uint8(len(name))})
	p.names = append(p.names, name...)
	g.index.Add(hash, uint32(last*pageSize+n+1))
	return &p.records[n]
}

func (g *generation) len() int {
	if len(g.pages) == 0 {
		return 0
	}
	return (len(g.pages)-1)*pageSize + len(g.pages[len(g.pages)-1].records)
}

// cache caches answers. New records go to the young generation. When that holds half of the records
// allowed, it becomes the old one, and the former old one is dropped. Times are since the
// resolver's start. Safe for concurrent use. Names are folded and at most 253 bytes.
type cache struct {
	seed maphash.Seed
	half int // records per generation

	mu         sync.RWMutex // guards all below
	young, old *generation
}

func newCache(size int) *cache {
	return &cache{seed: maphash.MakeSeed(), half: size / 2, young: newGeneration(), old: newGeneration()}
}

// get returns the cached result of a name until its end.
func (c *cache) get(name []byte, now time.Duration) (addr netip.Addr, err error, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	rec := c.findLocked(name)
	if rec == nil || int64(now) >= rec.ends {
		return netip.Addr{}, nil, false
	}
	if err := rec.kind.err(); err != nil {
		return netip.Addr{}, err, true
	}
	return rec.address(), nil, true
}

// left returns how long get will return its present result; 0: it has none.
func (c *cache) left(name []byte, now time.Duration) time.Duration {
	c.mu.RLock()
	defer c.mu.RUnlock()
	rec := c.findLocked(name)
	if rec == nil {
		return 0
	}
	return max(0, time.Duration(rec.ends)-now)
}

// put caches k for ttl, with addr if k is an address.
func (c *cache) put(name []byte, k kind, addr netip.Addr, ttl, now time.Duration) {
	if len(name) > maxName {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rec := c.placeLocked(name)
	rec.kind = k
	if addr.IsValid() {
		rec.addr = addr.As16()
	}
	rec.ends = int64(now + ttl)
	rec.staleEnd = uint32(min((now+ttl+maxStale)/time.Second, math.MaxUint32))
}

// stale returns an address that ended at most maxStale ago, and caches it for ttl more.
func (c *cache) stale(name []byte, ttl, now time.Duration) (netip.Addr, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rec := c.findLocked(name)
	if rec == nil || rec.kind != kindAddr || now >= time.Duration(rec.staleEnd)*time.Second {
		return netip.Addr{}, false
	}
	rec.ends = int64(now + ttl)
	return rec.address(), true
}

// len returns the number of records; a name in both generations counts twice.
func (c *cache) len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.young.len() + c.old.len()
}

func (c *cache) findLocked(name []byte) *record {
	hash := uint32(maphash.Bytes(c.seed, name))
	if rec := c.young.find(hash, name); rec != nil {
		return rec
	}
	return c.old.find(hash, name)
}

func (c *cache) placeLocked(name []byte) *record {
	hash := uint32(maphash.Bytes(c.seed, name))
	if rec := c.young.find(hash, name); rec != nil {
		return rec
	}
	if c.young.len() >= c.half {
		c.old, c.young = c.young, newGeneration()
	}
	return c.young.add(hash, name)
}

func (r *record) address() netip.Addr { return netip.AddrFrom16(r.addr).Unmap() }
