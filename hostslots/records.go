package hostslots

import (
	"net/netip"
	"time"

	"urlserver/internal/container/arena"
)

// Records hold no pointers and refer to each other by number; 0 is none. The state that belongs to
// one component is a struct of its own inside the record, so that the record stays in one place
// in memory.

// document is one URL with its DOC_ID: 32 bytes. Its text is in the arena.
type document struct {
	text        arena.Ref
	origin      uint32 // whose queue it is in, or was in before it was sent
	left, right uint32 // its children in the heap of the queue
	parent      uint32 // there; 0: it is the root; notQueued: it is not in the queue
	priority    int32
	order       uint64 // arrival<<17 | resent | attempts<<6 | rank in the heap
}

// notQueued is the parent of a document that is in no queue.
const notQueued = ^uint32(0)

// resent is set in the order of a document that has come back from a spider.
const resent = 1 << 16

func (d *document) arrival() uint64   { return d.order >> 17 }
func (d *document) attempts() int     { return int(d.order >> 6 & maxAttempts) }
func (d *document) addAttempts(n int) { d.order += uint64(n) << 6 }
func (d *document) rank() uint8       { return uint8(d.order & 0x3f) }
func (d *document) setRank(r uint8)   { d.order = d.order&^0x3f | uint64(r) }

// origin is scheme, host and port, which share one robots.txt, with the queue of their documents
// for any spider: 32 bytes. The documents for one spider pool are in a record of the same type, a
// pool queue. In the list of a host, the pool queues of an origin come right behind it.
type origin struct {
	text    arena.Ref // its key; of a pool queue the number of its origin
	textLen uint16
	closed  closed
	host    uint32
	next    uint32 // of the same host
	queue   uint32 // root of the heap of queued documents
	docs    uint32 // held, those at a spider included
	pool    uint32 // 0: this is no pool queue
	place   uint32 // closed for spiders: in pools.suspensions; otherwise, if it offers, in dispatch.offering
}

// closed is the reasons for which the documents of an origin or a pool queue are not sent.
type closed uint8

const (
	forRobots closed = 1 << iota // its robots.txt is not known
	forSpider                    // no spider of its pool is free: it is suspended
	forCaller                    // see Pool.Hold
)

// offers reports whether the queue has a document that may be sent.
func (o *origin) offers() bool { return o.queue != 0 && o.closed == 0 }

// host is a host name or IP literal: 128 bytes, two cache lines. What few hosts have is elsewhere.
type host struct {
	turn           turn
	inRotation     bool  // of its group: it has a document, and turn is turnAble
	slow           bool  // it waits longer than Config.Patience
	isIdle         bool  // it is in sweeper.idle
	rejected       bool  // rejectList.hosts has it
	released       bool  // it has come to the head of the line, and may use what is above it
	covered        bool  // see Place.Covered
	wasSite        bool  // it was in a site group last
	failed         bool  // NextFailed returns its documents
	failing        bool  // its name fails to resolve for now
	addressPending bool  // its address is looked up again
	moving         bool  // it leaves its group when no request is open
	blocked        bool  // by the operator: pacer.blocks has it
	ruleBlocked    bool  // by its limits
	nameAt         uint8 // where its name begins in its text: behind the scheme, if the text is an origin's key
	nameLen        uint8
	group          uint32 // 0: not resolved
	above          uint32 // the record of the network, or the address, above its site group; 0: none
	origins        uint32 // first of its origins and pool queues
	docs           uint32 // held, those at a spider included
	open           uint32 // requests: documents at a spider, and own requests
	own            uint32 // own requests, queued or open
	pins           uint32
	first          uint32 // of its origins and pool queues: whose document goes next; 0: none offers one
	limits         uint32 // in pacer.limits
	place          link   // in its group's rotation or waiting hosts, in the line above it, or in the idle hosts
	text           arena.Ref

	site   pace          // of its site, unless its group is the site
	due    time.Duration // its key among its group's waiting hosts
	child  uint32        // first of its children there
	member link          // in its group's members or, without a group, in the failing hosts
	reject link          // in the hosts with documents that their limits block, or that are slow
	hash   uint32
}

func (h *host) busy() bool { return h.docs > 0 || h.own > 0 || h.pins > 0 }

// settled reports whether a host keeps the group that it is in.
func (h *host) settled() bool { return h.group != 0 && h.busy() }

// closed reports whether nothing is sent to a host, whatever its group allows.
func (h *host) closed() bool {
	return h.moving || h.addressPending ||
		h.blocked && !faulty(FaultBlock) || h.ruleBlocked && !faulty(FaultLimits)
}

// group is the unit of slots and leases: all hosts that share an address, or the hosts of one site
// if that is named by a rule or is on a shared network. The record of a shared network is a group
// without hosts. Its 256 bytes are four cache lines.
type group struct {
	// Each document reads or changes these fields, which are in two cache lines.
	kind         groupKind
	full         bool // it has a slot with no room left
	changed      bool // it is in crawlCounts.changed
	failing      bool // pacer.failures has it
	turnAbove    bool // the last request that counts for it went to a host of a group below
	ownReady     bool // it is in dispatch.ownReady
	isNotReady   bool // it is in dispatch.notReady
	hasUsedQuota bool // it is in dispatch.quotaUsed
	isRejected   bool // it is in rejectList.groups
	isEmpty      bool // it is in sweeper.empty
	limited      bool // it has limits or a cap
	lease        lease
	slot         uint32 // its number plus one; 0: none
	docs         uint32 // held for its hosts
	slowDocs     uint32 // of these: for slow ones
	sent         uint32 // documents at spiders
	ownOpen      uint32 // own requests that are open
	below        uint32 // open requests of hosts that it is above
	users        uint32 // hosts that it is above
	incoming     uint32 // hosts that are to join it; it sends nothing while there are any
	revision     uint32 // of the settings that its state was computed by
	rotation     list   // hosts with a document that may be sent; the first is next
	waits        uint32 // root of the heap of hosts whose sites may not be requested yet
	pace         pace
	own          [OwnQueues]list // own requests that wait

	limits    strictest
	cap       AddressLimits // of an address by rules, of a shared network by Slots.SetCap
	id        GroupID
	members   list // hosts
	line      list // hosts of groups below that wait for it
	lineLen   uint32
	inLine    uint32        // of its own, that are in a line above
	delaying  uint32        // hosts with the longest Crawl-delay
	size      uint32        // hosts
	sitesDue  time.Duration // of an address: another daemon may request each of its sites from then on
	hostsDue  time.Duration // about when the last of its hosts in a line above may go; 0: none is in line
	nextTurn  time.Duration // no host in line is released before
	requests  uint64        // so far, to the hosts that it is above
	wanted    link          // in leases.wanted
	rejected  link          // in the groups whose hosts are rejected
	notReady  link          // in the groups with a slot that they cannot use soon
	quotaUsed link          // in the groups that have sent Config.Len documents from their slot, or in sweeper.empty
}

type groupKind uint8

const (
	ofAddress groupKind = iota // each host is a site
	ofSite                     // its hosts are one site
	ofNetwork                  // it has no hosts, and no slot
)

// hasOwn reports whether own requests wait for the group.
func (g *group) hasOwn() bool { return g.own[FirstTry].head != 0 || g.own[Retry].head != 0 }

// open returns the number of open requests to the group, and to hosts that it is above.
func (g *group) open() int { return int(g.sent + g.ownOpen + g.below) }

// awaitsHosts reports whether the group waits for the open requests to hosts that are to join it.
func (g *group) awaitsHosts() bool { return g.incoming > 0 && !faulty(FaultJoin) }

func (g *group) setLimits(l strictest) {
	g.limits = l
	g.limited = g.limits != strictest{} || g.cap != AddressLimits{}
}

func (g *group) setCap(c AddressLimits) {
	g.cap = c
	g.limited = g.limits != strictest{} || g.cap != AddressLimits{}
}

func (g *group) ip() netip.Addr { return netip.AddrFrom16(g.id).Unmap() }
