// Package queuesched decides which queue of a store may be served now, to each of its three
// consumers: the daemon's host slots, URL Frontier clients, and the slots of other daemons. It
// knows when the first URL of each queue is due, how many URLs the queue has in which state, and
// its settings. The URLs themselves are the store's.
//
// A queue that may be served is in a ring. A queue that may be served later is in a heap by that
// time. A queue that waits for an event is in neither. So it costs O(1) to find the next queue,
// however many there are.
//
// Times are milliseconds since 1970. A Scheduler is not safe for concurrent use.
package queuesched

import (
	"hash/maphash"
	"math"

	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
)

// Consumer is a party that gets URLs.
type Consumer uint8

const (
	SlotConsumer     Consumer = iota // the daemon's host slots, for line spiders
	FrontierConsumer                 // GetURLs
	RemoteConsumer                   // the slots of other daemons; queues count them as SlotConsumer, hosts do not
	consumers
)

// queueSide returns the consumer under which a queue counts the URLs that d gets.
func (d Consumer) queueSide() Consumer {
	if d == RemoteConsumer {
		return SlotConsumer
	}
	return d
}

// Never is later than any time.
const Never = math.MaxInt64

// State of a URL, as in docindex.
type State uint8

const (
	Scheduled State = iota
	InTransit
	Completed
	states
)

// DefaultDelay is the delay in ms between two servings of a queue to clients if none was set.
const DefaultDelay = 1000

// queue is the URLs of a crawl that have one key.
type queue struct {
	key      arena.Ref
	crawl    uint32
	host     uint32 // named by the key
	hostNext uint32 // the next queue of the same host
	keyLen   uint16
	flags    uint8
	limit    uint32         // of completed URLs; 0: none
	callID   uint32         // the last call that served it
	count    [states]uint32 // URLs by state
	out      [2]uint32      // URLs in transit, by consumer
	remote   uint32         // of out[SlotConsumer], those that other daemons have
	due      int64          // when the first scheduled URL is due
	// URLs that were scheduled when the queue was restored, and when they count as due; see spread
	restored    uint32
	domain      uint32
	restoredDue int64
	served      [2]int64 // last time, by consumer
	blocked     int64    // until then
	skipUntil   int64    // skipped until then: nothing of it could be handed out, or it rests
	turn        Moment   // when it had its last turn, or could have its first one
	delay       int64    // the queue's own, ms; negative: none
	link        [2]link
}

const (
	serving    = 1 << iota // a call serves it
	reservable             // the call leaves it free to be served again at once
	anyHost                // its key is not the host of all its URLs
	gone                   // dropped; its URLs are being removed
	branched               // its URLs take turns; see Ahead
	resting                // skipUntil is by Scheduler.rest
)

// link is a queue's place in one of the rings of a consumer.
type link struct {
	before, after uint32
	level         uint32 // 0: in no ring; ready, own: see there; else set aside until it has fewer URLs in transit
}

// Levels of links.
const (
	ready = math.MaxUint32 // in the ready ring
	own   = ready - 1      // in the ring of its domain: it overran its budget, or the slots have enough
)

// Scheduler has all queues and hosts. Use New.
type Scheduler struct {
	seed    maphash.Seed
	queues  slab.Slab[queue]
	names   arena.Arena
	byKey   hashindex.Index
	crawls  []crawl // by number
	crawlNo map[string]uint32
	unused  []uint32 // unused numbers of crawls
	hosts   hosts
	sides   hostTurns
	domains domains
	preset  map[name]Settings // of queues that do not exist yet

	addresses hostAddresses
	cold      cold

	wait       [2]timeheap.Heap   // queues by the time when they may be served; a Duration is ms since 1970
	turns      [2]crawlTurns      // by consumer
	weights    map[string]float64 // of crawl IDs, unless 1
	budget     uint32             // pages of a domain in a round; 0: any number
	calls      uint32             // the number of the last call
	skipped    []uint32
	passedOver []uint32 // crawls; see nextForAnyCrawl
	aside      []aside  // see nextOverrun
	supplied   []uint32 // crawls of which the slots have enough, in this round
	reservable int      // queues with that flag
	ahead      Ahead
	room       bool // see TakeRoom
	onReady    func()

	total  Counts
	later  later
	delay  int64 // of queues that have none of their own
	chosen bool  // somebody set delay
}

type name struct{ crawl, key string }

// crawl is the queues of a crawl ID.
type crawl struct {
	name      string
	total     Counts
	later     later
	rings     [2]readyRings // by consumer
	overruns  *overruns     // nil: there were none
	pass      [2]int64      // by consumer; see crawlTurns
	stride    int64         // what a page adds to pass
	pages     uint64        // that were handed out; a costly one counts as several
	outOfTurn uint32        // pages that went out of turn since the last one in turn
	active    uint32        // queues in memory with URLs scheduled or in transit
	domains   uint32        // registered domains of the active queues in memory
	kept      []uint32      // domains that stay without a queue in memory
	inTurn    uint32        // the last round of NextForSlots in which a page went in turn
	life      uint32        // counts the crawls that had its number
	asked     int64         // when clients last asked for its URLs; 0: never
	pageAt    int64         // when the last page was handed out, ms
}

// Counts are of a queue, of a crawl, or of all queues.
type Counts struct {
	URLs   [states]uint64
	Queues uint64
	Active uint64 // queues with URLs scheduled or in transit
}

// New returns an empty scheduler. It calls onReady whenever a queue becomes available to clients.
func New(news func()) *Scheduler {
	d := &Scheduler{
		onReady: news,
		seed:    maphash.MakeSeed(),
		crawlNo: map[string]uint32{},
		preset:  map[name]Settings{},
		weights: map[string]float64{},
		delay:   DefaultDelay,
	}
	d.hosts.init(d.seed)
	d.hosts.released = func(id uint32) { delete(d.sides.kept, id) }
	d.domains.seed = d.seed
	return d
}

func (d *Scheduler) hash(crawl uint32, key []byte) uint32 {
	return uint32(maphash.Bytes(d.seed, key)>>32) ^ crawl*0x9E3779B1
}

// Find returns the number of a queue, or 0. It loads a cold queue.
func (d *Scheduler) Find(crawl, key []byte) uint32 {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		return 0
	}
	return d.find(c, key)
}

func (d *Scheduler) find(crawl uint32, key []byte) uint32 {
	id := d.lookup(crawl, key)
	if id == 0 && d.cold.of != nil {
		return d.cold.of.FindQueue(crawl, key)
	}
	return id
}

// Lookup returns the number of a queue that is in memory, or 0.
func (d *Scheduler) Lookup(crawl, key []byte) uint32 {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		return 0
	}
	return d.lookup(c, key)
}

func (d *Scheduler) lookup(crawl uint32, key []byte) uint32 {
	return d.byKey.Find(d.hash(crawl, key), func(id uint32) bool {
		q := d.queues.At(id)
		return q.crawl == crawl && string(d.names.Bytes(q.key, int(q.keyLen))) == string(key)
	})
}

// Open returns the number of the queue for a URL on host, and adds the queue if there is none. key
// is not empty.
func (d *Scheduler) Open(crawl, key, host []byte, now int64) uint32 {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		c = d.newCrawl(string(crawl))
	}
	id := d.find(c, key)
	if id == 0 {
		id = d.newQueue(c, key, now)
	}
	d.NoteHost(id, host, now)
	return id
}

// Add is Open for a queue that Find does not find.
func (d *Scheduler) Add(crawl, key, host []byte, now int64) uint32 {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		c = d.newCrawl(string(crawl))
	}
	id := d.newQueue(c, key, now)
	d.NoteHost(id, host, now)
	return id
}

// NoteHost records that a queue has a URL on host. It reports whether that changes the result of
// AnyHost.
func (d *Scheduler) NoteHost(id uint32, host []byte, now int64) (changed bool) {
	q := d.queues.At(id)
	if q.flags&anyHost != 0 || string(d.names.Bytes(q.key, int(q.keyLen))) == string(host) {
		return false
	}
	q.flags |= anyHost
	d.Refresh(id, now)
	return true
}

func (d *Scheduler) newCrawl(crawlID string) uint32 {
	c := uint32(len(d.crawls))
	if n := len(d.unused); n > 0 {
		c = d.unused[n-1]
		d.unused = d.unused[:n-1]
	} else {
		d.crawls = append(d.crawls, crawl{})
	}
	d.crawls[c] = crawl{name: crawlID, life: d.crawls[c].life + 1, stride: onePage}
	if weight, ok := d.weights[crawlID]; ok {
		d.crawls[c].stride = strideOf(weight)
	}
	d.crawlNo[crawlID] = c
	return c
}

func (d *Scheduler) newQueue(c uint32, key []byte, now int64) uint32 {
	id := d.addQueue(c, key)
	d.queues.At(id).turn = d.moment(now)
	d.total.Queues++
	d.crawls[c].total.Queues++
	n := name{d.crawls[c].name, string(key)}
	if s, ok := d.preset[n]; ok {
		delete(d.preset, n)
		d.set(id, s, now)
	}
	return id
}

// addQueue adds an empty queue without counting it.
func (d *Scheduler) addQueue(c uint32, key []byte) uint32 {
	id := d.queues.New()
	q := d.queues.At(id)
	ref, room := d.names.New(len(key))
	copy(room, key)
	*q = queue{key: ref, keyLen: uint16(len(key)), crawl: c, due: Never, delay: -1}
	q.host = d.hosts.open(key)
	h := d.hosts.at(q.host)
	q.hostNext, h.queues = h.queues, id
	d.byKey.Add(d.hash(c, key), id)
	d.joinDomain(id)
	return id
}

// unlist removes a queue from all rings and heaps, and from the index by key.
func (d *Scheduler) unlist(id uint32) {
	q := d.queues.At(id)
	d.leave(id, SlotConsumer)
	d.leave(id, FrontierConsumer)
	d.wait[SlotConsumer].Remove(id)
	d.wait[FrontierConsumer].Remove(id)
	d.byKey.Remove(d.hash(q.crawl, d.names.Bytes(q.key, int(q.keyLen))), id)
}

// Drop removes a queue. Its URLs are no longer counted. The store removes them and then calls Free.
func (d *Scheduler) Drop(id uint32) {
	q := d.queues.At(id)
	d.unlist(id)
	d.stopServing(q)
	q.flags |= gone
	q.due = Never
	d.uncount(q)
	d.leaveDomain(id, false)
	c := &d.crawls[q.crawl]
	if c.total.Queues--; c.total.Queues == 0 {
		delete(d.crawlNo, c.name)
		d.WakeCrawl(q.crawl, NoMoment)
		d.dropLater(c)
		d.dropKept(c)
		d.dropOverruns(c)
		d.unused = append(d.unused, q.crawl)
	}
	d.total.Queues--
}

// Free releases a dropped queue, which has no URLs any more.
func (d *Scheduler) Free(id uint32, now int64) {
	if d.addresses.of != nil {
		d.forgetAddress(id, now)
		*d.addresses.at(id) = atAddress{}
	}
	q := d.queues.At(id)
	d.hosts.unlink(q.host, id, d, now)
	d.names.Free(q.key, int(q.keyLen))
	d.queues.Free(id)
}

// Exists reports whether a queue was added and not dropped.
func (d *Scheduler) Exists(id uint32) bool {
	if id == 0 || int(id) >= d.queues.Cap() {
		return false
	}
	q := d.queues.At(id)
	return q.keyLen > 0 && q.flags&gone == 0
}

// IsIn reports whether a number is that of a queue of a crawl, with the key if one is given.
// Numbers are reused, so ask again after the lock was released.
func (d *Scheduler) IsIn(id uint32, crawlID, key []byte) bool {
	return d.Exists(id) && d.Crawl(id) == string(crawlID) && (len(key) == 0 || string(d.Key(id)) == string(key))
}

// Bound returns one more than the largest number of a queue.
func (d *Scheduler) Bound() uint32 { return uint32(d.queues.Cap()) }

// Key returns the key of a queue. It aliases memory that is valid until Free.
func (d *Scheduler) Key(id uint32) []byte {
	q := d.queues.At(id)
	return d.names.Bytes(q.key, int(q.keyLen))
}

// Crawl returns the crawl ID of a queue.
func (d *Scheduler) Crawl(id uint32) string { return d.crawls[d.queues.At(id).crawl].name }

// Crawls returns the IDs of all crawls that have a queue, in no order.
func (d *Scheduler) Crawls() (all []string) {
	for c := range d.crawlNo {
		all = append(all, c)
	}
	return all
}

// AnyHost reports whether a queue's URLs may be on different hosts.
func (d *Scheduler) AnyHost(id uint32) bool { return d.queues.At(id).flags&anyHost != 0 }

// Bytes returns the memory in use, without free lists.
func (d *Scheduler) Bytes() int64 {
	size := int64(d.names.Size()+d.hosts.names.Size()) + d.domains.bytes() +
		int64(d.queues.Len())*(queueBytes+hashindex.EntryBytes) +
		int64(d.hosts.list.Len())*(hostBytes+hashindex.EntryBytes)
	if d.addresses.of != nil {
		size += d.addresses.table.Bytes() + int64(len(d.addresses.queues))*8
	}
	return size
}

// Of a record, in bytes, with its places in the heaps.
const (
	queueBytes = 200
	hostBytes  = 80
)
