// Package queuesched decides which queue of a store may be served now, at each of its doors: the host slots, calls of the URL
// Frontier's GetURLs, and other daemons, whose slots take by the same turns and rules as the host slots. It knows of each queue when its first URL is due, how many URLs it has in
// which state, and what was set on it; the URLs themselves are the store's.
//
// A queue that may be served stands in a ring; one that may not yet waits in a heap by the time when it may, and
// one that waits for an event stands nowhere. So to find the next queue costs O(1), however many there are.
//
// Times are milliseconds since 1970. Doors are not safe for concurrent use.
package queuesched

import (
	"hash/maphash"
	"math"

	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
)

// Door is where URLs go out.
type Door uint8

const (
	Slots Door = iota // the daemon's host slots, for line spiders
	Calls             // GetURLs
	Lent              // the slots of other daemons; queues count it with Slots, hosts by itself
	all
)

// side is the door that a queue counts what goes out at another with.
func (d Door) side() Door {
	if d == Lent {
		return Slots
	}
	return d
}

// Never is a time that does not come.
const Never = math.MaxInt64

// State of a URL, as docindex has them.
type State uint8

const (
	Scheduled State = iota
	InTransit
	Completed
	states
)

// DefaultDelay is between two servings of a queue by calls where nothing was set, in ms.
const DefaultDelay = 1000

// queue is a crawl's URLs with one key.
type queue struct {
	key      arena.Ref
	crawl    uint32
	host     uint32 // that all its URLs are on; 0: they may be on any
	hostNext uint32 // the next queue of the same host
	keyLen   uint16
	flags    uint8
	limit    uint32         // of completed URLs; 0: none
	stamp    uint32         // the call that served it last
	count    [states]uint32 // URLs
	out      [2]uint32      // URLs in transit, by door
	due      int64          // when the first scheduled URL is due
	served   [2]int64       // last time, by door
	blocked  int64          // until then
	rest     int64          // passed over until then, since nothing of it could be given
	delay    int64          // of its own, ms; negative: none
	link     [2]link
}

const (
	serving = 1 << iota // a call is at it
	again               // that call leaves it free to be served again at once
	anyHost             // its key is not the host of all its URLs
	gone                // deleted; its URLs are being forgotten
)

// link is a queue's place in a ring of one door.
type link struct {
	before, after uint32
	level         uint32 // 0: in no ring; ready: in the ring of those that may be served; else parked under this cap
}

const ready = math.MaxUint32

// Doors is the whole. Use New.
type Doors struct {
	seed    maphash.Seed
	queues  slab.Slab[queue]
	names   arena.Arena
	byKey   hashindex.Index
	crawls  []crawl // by number
	crawlNo map[string]uint32
	unused  []uint32 // numbers of crawls that are no more
	hosts   hosts
	preset  map[name]Settings // of queues that are not there yet

	wait   [2]timeheap.Heap // queues by the time when they may be served; a Duration stands for ms since 1970
	slots  lane             // of all crawls
	busy   []uint32         // crawls with something in their lane
	turn   int              // in busy
	calls  uint32           // numbers calls
	passed []uint32
	again  int // queues with that flag
	news   func()

	total  Counts
	delay  int64 // between servings of a queue that has none of its own
	chosen bool  // delay was set by somebody
}

type name struct{ crawl, key string }

// crawl is the queues of one crawl ID.
type crawl struct {
	name   string
	total  Counts
	lane   lane
	inBusy int    // place in busy plus one; 0: not there
	life   uint32 // of its number, which another crawl had before
}

// Counts are of a queue, a crawl, or all.
type Counts struct {
	URLs   [states]uint64
	Queues uint64
	Active uint64 // queues with URLs scheduled or in transit
}

// New returns empty doors, which call news whenever calls may be served a queue that they might not before.
func New(news func()) *Doors {
	d := &Doors{
		news:    news,
		seed:    maphash.MakeSeed(),
		crawlNo: map[string]uint32{},
		preset:  map[name]Settings{},
		delay:   DefaultDelay,
	}
	d.hosts.init(d.seed)
	return d
}

func (d *Doors) hash(crawl uint32, key []byte) uint32 {
	return uint32(maphash.Bytes(d.seed, key)>>32) ^ crawl*0x9E3779B1
}

// Find returns the number of a queue, or 0.
func (d *Doors) Find(crawl, key []byte) uint32 {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		return 0
	}
	return d.find(c, key)
}

func (d *Doors) find(crawl uint32, key []byte) uint32 {
	return d.byKey.Find(d.hash(crawl, key), func(id uint32) bool {
		q := d.queues.At(id)
		return q.crawl == crawl && string(d.names.Bytes(q.key, int(q.keyLen))) == string(key)
	})
}

// Open returns the number of a queue for a URL on host, and makes the queue where there is none. key is not empty.
func (d *Doors) Open(crawl, key, host []byte, now int64) uint32 {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		c = d.newCrawl(string(crawl))
	}
	id := d.find(c, key)
	if id == 0 {
		id = d.newQueue(c, key, now)
	}
	if q := d.queues.At(id); q.flags&anyHost == 0 && string(key) != string(host) {
		q.flags |= anyHost
		d.Refresh(id, now)
	}
	return id
}

func (d *Doors) newCrawl(crawlID string) uint32 {
	c := uint32(len(d.crawls))
	if n := len(d.unused); n > 0 {
		c = d.unused[n-1]
		d.unused = d.unused[:n-1]
	} else {
		d.crawls = append(d.crawls, crawl{})
	}
	d.crawls[c] = crawl{name: crawlID, life: d.crawls[c].life + 1}
	d.crawlNo[crawlID] = c
	return c
}

func (d *Doors) newQueue(c uint32, key []byte, now int64) uint32 {
	id := d.queues.New()
	q := d.queues.At(id)
	ref, room := d.names.New(len(key))
	copy(room, key)
	*q = queue{key: ref, keyLen: uint16(len(key)), crawl: c, due: Never, delay: -1}
	q.host = d.hosts.open(key)
	h := d.hosts.at(q.host)
	q.hostNext, h.queues = h.queues, id
	d.byKey.Add(d.hash(c, key), id)
	d.total.Queues++
	d.crawls[c].total.Queues++
	n := name{d.crawls[c].name, string(key)}
	if s, ok := d.preset[n]; ok {
		delete(d.preset, n)
		d.set(id, s, now)
	}
	return id
}

// Drop forgets a queue. Its URLs are no longer counted; the store forgets them with Free at the end.
func (d *Doors) Drop(id uint32) {
	q := d.queues.At(id)
	d.leave(id, Slots)
	d.leave(id, Calls)
	d.wait[Slots].Remove(id)
	d.wait[Calls].Remove(id)
	d.byKey.Remove(d.hash(q.crawl, d.names.Bytes(q.key, int(q.keyLen))), id)
	d.release(q)
	q.flags |= gone
	q.due = Never
	d.uncount(q)
	c := &d.crawls[q.crawl]
	if c.total.Queues--; c.total.Queues == 0 {
		delete(d.crawlNo, c.name)
		d.unused = append(d.unused, q.crawl)
	}
	d.total.Queues--
}

// Free ends a dropped queue, which has no URLs any more.
func (d *Doors) Free(id uint32, now int64) {
	q := d.queues.At(id)
	d.hosts.unlink(q.host, id, d, now)
	d.names.Free(q.key, int(q.keyLen))
	d.queues.Free(id)
}

// Live reports whether a queue is there: made, and not dropped.
func (d *Doors) Live(id uint32) bool {
	if id == 0 || int(id) >= d.queues.Cap() {
		return false
	}
	q := d.queues.At(id)
	return q.keyLen > 0 && q.flags&gone == 0
}

// In reports whether a number is a queue's of a crawl, and with that key where one is given. Numbers are given again: who had
// one while others could change the doors asks before it is used.
func (d *Doors) In(id uint32, crawlID, key []byte) bool {
	return d.Live(id) && d.Crawl(id) == string(crawlID) && (len(key) == 0 || string(d.Key(id)) == string(key))
}

// Bound is one more than the largest number of a queue.
func (d *Doors) Bound() uint32 { return uint32(d.queues.Cap()) }

// Key is the key of a queue; it aliases memory that stays until Free.
func (d *Doors) Key(id uint32) []byte {
	q := d.queues.At(id)
	return d.names.Bytes(q.key, int(q.keyLen))
}

// Crawl is the crawl ID of a queue.
func (d *Doors) Crawl(id uint32) string { return d.crawls[d.queues.At(id).crawl].name }

// Crawls are the IDs of all crawls that have a queue, in no order.
func (d *Doors) Crawls() (all []string) {
	for c := range d.crawlNo {
		all = append(all, c)
	}
	return all
}

// AnyHost reports whether a queue's URLs may be on different hosts.
func (d *Doors) AnyHost(id uint32) bool { return d.queues.At(id).flags&anyHost != 0 }

// Bytes is the memory taken, without free lists.
func (d *Doors) Bytes() int64 {
	return int64(d.names.Size()+d.hosts.names.Size()) +
		int64(d.queues.Len())*(queueBytes+hashindex.EntryBytes) + int64(d.hosts.list.Len())*(hostBytes+hashindex.EntryBytes)
}

// Of a record, in bytes, with its places in the heaps.
const (
	queueBytes = 176
	hostBytes  = 80
)
