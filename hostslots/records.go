package hostslots

import (
	"net/netip"
	"time"

	"urlserver/internal/container/arena"
)

// Records hold no pointers and refer to each other by number; 0 is none.

// document is one URL with its DOC_ID, 32 bytes. Its text lies in the arena.
type document struct {
	text        arena.Ref
	origin      uint32
	left, right uint32 // in its origin's queue
	parent      uint32 // there; 0: it is the first; away: it is not in it
	priority    int32
	order       uint64 // arrival<<17 | resent | attempts<<6 | rank in the queue's heap
}

// away is the parent of a document that is not queued.
const away = ^uint32(0)

func (d *document) arrival() uint64 { return d.order >> 17 }
func (d *document) attempts() int   { return int(d.order >> 6 & maxAttempts) }
func (d *document) attempt(n int)   { d.order += uint64(n) << 6 }    // n more; a negative n, fewer
func (d *document) rank() uint8     { return uint8(d.order & 0x3f) } // at most log2 of the documents
func (d *document) setRank(r uint8) { d.order = d.order&^0x3f | uint64(r) }

// resent is set in the order of a document that has come back from a spider.
const resent = 1 << 16

// origin is scheme, host and port: what one robots.txt speaks for. Or it is a lane of one, for a crew.
type origin struct {
	text    arena.Ref
	textLen uint16
	held    bool // waits for its robots.txt
	parked  bool // waits for a spider of its crew
	hash    uint32
	host    uint32
	next    uint32 // of the same host
	queue   uint32 // the document to be sent first
	docs    uint32 // held, those at a spider among them
	base    uint32 // of a lane: the origin; 0: it is one
	crew    uint32
	park    link // among its crew's lanes that are parked
}

func (o *origin) offers() bool { return o.queue != 0 && !o.held && !o.parked }

// host is a host name or IP literal.
type host struct {
	name    arena.Ref
	nameLen uint8
	failed  bool // its name has no address: its documents are to be ended
	failing bool // its name fails to resolve for now
	aside   bool // by SetAside
	moving  bool // it is to leave its group as soon as no request to it is open
	hash    uint32
	group   uint32 // 0: not resolved
	origins uint32
	docs    uint32 // held, those at a spider among them
	open    uint32 // requests: documents at a spider, and the daemon's own
	asks    uint32 // requests of the daemon's own, waiting or open
	pins    uint32 // by Pin
	offers  uint32 // origins with a document to send
	turn    link   // among the group's hosts with a document to send
	member  link   // among all of the group's hosts
	idle    link   // among all hosts with neither documents nor requests
	bar     link   // among barred hosts with documents
	delay   time.Duration
	carry   time.Duration // what the groups it was in before owe it: no request before
	left    time.Duration // last request to those
	blocked time.Duration // by the operator, until; 0: not
	limits  Limits
}

func (h *host) busy() bool { return h.docs > 0 || h.asks > 0 || h.pins > 0 }

// group is all hosts that share an IP.
type group struct {
	addr      [16]byte
	full      bool  // has a slot, and no room in it
	cause     Cause // of notBefore
	claim     claim
	refusals  uint8           // since it was claimed last
	recounted bool            // it is in recounted
	slot      uint32          // number plus one
	docs      uint32          // held by its hosts
	sent      uint32          // documents at spiders
	asked     uint32          // requests of the daemon's own that are open
	size      uint32          // hosts
	expects   uint32          // hosts on their way to it; nothing goes out to it while there are any
	most      int             // requests that limits let be open; 0: no limits are on its hosts
	members   list            // hosts
	turns     list            // hosts with a document to send; the first is next
	asks      [OwnQueues]list // requests of the daemon's own that wait
	unknown   time.Duration   // when it may have been asked last before it was forgotten
	last      time.Duration   // the last request; 0, the daemon's start, counts as one
	notBefore time.Duration   // no request before, whatever the gap
	gap       time.Duration   // the longest ordinary one that limits ask for, where most is not 0
	usualGap  bool            // a host without a gap of its own is among those with limits: Config.Gap counts, too
	usualMost bool            // a host without a limit on open requests is: Config.Concurrent counts, too
	settings  uint32          // that it was arranged by; see Reconfigure
	delay     time.Duration   // longest of its hosts'
	holders   uint32          // hosts that ask for that longest delay
	backoff   time.Duration   // gap while backing off; 0: not
	took      time.Duration   // the last fetch's time
	reject    link            // among groups whose hosts are rejected
	slow      link            // among slotted groups that could give their slot up
	spent     link            // among slotted groups that have had their turn
	empty     link            // among groups without hosts
	want      link            // among groups to be claimed
}

// asksAny reports whether a request of the daemon's own waits for a group.
func (g *group) asksAny() bool { return g.asks[FirstTry].head != 0 || g.asks[Retry].head != 0 }

func (g *group) active() int { return int(g.sent + g.asked) }

// waits reports whether a group waits for open requests to hosts that are to join it.
func (g *group) waits() bool { return g.expects > 0 && !faulty(faultJoin) }

func (g *group) ip() netip.Addr { return netip.AddrFrom16(g.addr).Unmap() }

// slot is one of the fixed number of host slots.
type slot struct {
	group  uint32        // 0: empty
	spider uint32        // that its documents went to last
	sent   uint32        // documents, since its group has it
	next   uint32        // empty slots: the next one, plus one
	cells  uint32        // where its active range starts
	size   uint32        // places of its active range that were ever needed
	free   uint32        // first free place of the active range, plus one
	since  time.Duration // when its group got it

	settings uint32 // that its free places were gathered by
}

// cell is one place of an active range.
type cell struct {
	generation uint32 // of its current or next transaction
	tx         uint32 // 0: free
	next       uint32 // while free: the next free one, plus one
}

// transaction is one document at a spider.
type transaction struct {
	doc, slot, active, spider uint32
	sent                      time.Duration
	status                    time.Duration // last sign of life
	byStatus                  link
	byAge                     link
	bySpider                  link
}

// ask is a request of the daemon's own that waits for its group.
type ask struct {
	host uint32
	waiting
	link link
}
