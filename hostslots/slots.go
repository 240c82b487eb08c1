package hostslots

import (
	"hash/maphash"
	"net/netip"
	"time"

	"urlserver/internal/container/arena"
	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
	"urlserver/leftover"
)

// Slots holds the documents and decides which may be sent. Use New.
type Slots struct {
	cfg  Config
	seed maphash.Seed

	text    arena.Arena
	docs    slab.Slab[document]
	origins slab.Slab[origin]
	hosts   slab.Slab[host]
	groups  slab.Slab[group]
	txs     slab.Slab[transaction]
	asks    slab.Slab[ask]
	shares  slab.Slab[share]

	docByID     hashindex.Index
	originByKey hashindex.Index
	hostByName  hashindex.Index
	groupByAddr map[[16]byte]uint32
	names       map[[16]byte]string   // of groups that have one
	addrs       map[uint32]netip.Addr // of the hosts in them
	tallies     map[uint32]tally      // by group
	shareByKey  map[shareKey]uint32   // of a host or group with shares, by crawl 0: the first one

	slots     []slot
	cells     []cell
	emptySlot uint32 // first of the empty slots, plus one
	used      int

	sends  timeheap.Heap            // groups that have a document to send and may be asked
	asked  [OwnQueues]timeheap.Heap // groups that the daemon itself wants to ask, and may
	cools  timeheap.Heap            // groups without a slot that may not be asked yet
	block  timeheap.Heap            // blocked hosts, by when they go on
	claims timeheap.Heap            // groups that are claimed, by the claim's end, and that were refused, by when to try again
	left   leftover.Queue

	statuses list   // transactions by their last sign of life
	ages     list   // transactions by when they began
	spiders  []list // transactions by spider
	rejects  list
	slow     list
	spent    list
	idle     list
	barred   list
	failing  list // hosts, by their links as members
	empties  list
	wanted   list // groups to be claimed

	idleClaims []uint32             // groups that did not need their claim at some time since Released; some twice
	lingers    timeheap.Heap        // claimed groups without need, by the end of their gap
	movable    []uint32             // hosts that can leave their groups now, and some that stay
	ways       map[uint32]uint32    // by host that is to leave its group: the one that waits for it; 0: none does
	recounted  []uint32             // groups whose number of documents has changed since the last Recounted
	failed     []uint32             // hosts whose documents are to be ended
	parked     map[uint32][]waiting // by blocked host: the daemon's own requests that wait

	crews   []crew
	aside   int      // lanes that are parked
	laneKey []byte   // a buffer
	walk    []uint32 // of Queued, a buffer

	crawls      []crawl // by number; 0 is none
	crawlByName map[string]uint16
	freeCrawls  []uint16

	byTurn, byMember, byIdle, byBarred, byReject, bySlow, bySpent, byEmpty, byWanted, byAsk, byStatus, byAge, bySpider, byPark chain

	settings uint32 // how often settings have changed
	renewing uint32 // the group that is arranged by them next; 0: all are

	hear        time.Duration // no silence counts before
	arrivals    uint64
	full        int
	readmitted  uint64 // groups that left rejects
	idlers      int
	swept       time.Duration // the last request to any group that was forgotten
	homeless    int           // documents of hosts that are not resolved
	failingDocs int           // of them: of hosts whose names fail for now
	forgot      []uint32
}

// New returns empty slots. Every group counts as asked at time 0.
func New(cfg Config) *Slots {
	cfg.MaxConcurrent = max(cfg.MaxConcurrent, cfg.Concurrent)
	s := &Slots{
		cfg:         cfg,
		seed:        maphash.MakeSeed(),
		groupByAddr: map[[16]byte]uint32{},
		names:       map[[16]byte]string{},
		addrs:       map[uint32]netip.Addr{},
		tallies:     map[uint32]tally{},
		shareByKey:  map[shareKey]uint32{},
		crawls:      make([]crawl, 1),
		crawlByName: map[string]uint16{},
		slots:       make([]slot, cfg.Count),
		cells:       make([]cell, 0, cfg.Count),
		parked:      map[uint32][]waiting{},
		ways:        map[uint32]uint32{},
	}
	s.byTurn = func(id uint32) *link { return &s.hosts.At(id).turn }
	s.byMember = func(id uint32) *link { return &s.hosts.At(id).member }
	s.byIdle = func(id uint32) *link { return &s.hosts.At(id).idle }
	s.byBarred = func(id uint32) *link { return &s.hosts.At(id).bar }
	s.byReject = func(id uint32) *link { return &s.groups.At(id).reject }
	s.bySlow = func(id uint32) *link { return &s.groups.At(id).slow }
	s.bySpent = func(id uint32) *link { return &s.groups.At(id).spent }
	s.byEmpty = func(id uint32) *link { return &s.groups.At(id).empty }
	s.byWanted = func(id uint32) *link { return &s.groups.At(id).want }
	s.byAsk = func(id uint32) *link { return &s.asks.At(id).link }
	s.byStatus = func(id uint32) *link { return &s.txs.At(id).byStatus }
	s.byAge = func(id uint32) *link { return &s.txs.At(id).byAge }
	s.byPark = func(id uint32) *link { return &s.origins.At(id).park }
	s.bySpider = func(id uint32) *link { return &s.txs.At(id).bySpider }
	for i := range s.slots {
		s.slots[i].next = uint32(i) + 2
	}
	s.slots[cfg.Count-1].next = 0
	s.emptySlot = 1
	return s
}

// renewStep is how many groups are looked at at a time after settings have changed: a fraction of a millisecond's worth.
const renewStep = 256

// Reconfigure puts new settings in force. Count, Generation and Claims stay. Gaps and limits follow from the settings whenever
// they are asked for. What is kept by them (when a group is due, its slot's free places, whether its hosts are rejected) is
// put right when its turn comes, before anything is sent, and for all groups bit by bit by Tick.
func (s *Slots) Reconfigure(now time.Duration, cfg Config) {
	cfg.Count, cfg.Generation, cfg.Leases, cfg.CountDocs = s.cfg.Count, s.cfg.Generation, s.cfg.Leases, s.cfg.CountDocs
	cfg.MaxConcurrent = max(cfg.MaxConcurrent, cfg.Concurrent)
	s.cfg = cfg
	s.settings++
	s.renewing = 1
	s.renewSome(now)
}

// renewSome goes on with arranging all groups by the settings in force.
func (s *Slots) renewSome(now time.Duration) {
	if s.renewing == 0 {
		return
	}
	end := min(s.renewing+renewStep, uint32(s.groups.Cap()))
	for id := s.renewing; id < end; id++ {
		if g := s.groups.At(id); g.settings != s.settings && s.groupByAddr[g.addr] == id {
			s.place(now, id)
		}
	}
	if s.renewing = end; end == uint32(s.groups.Cap()) {
		s.renewing = 0
	}
}

// renew puts right what is kept of a group by the settings that were in force before.
func (s *Slots) renew(id uint32, g *group) {
	if g.settings == s.settings {
		return
	}
	g.settings = s.settings
	if g.slot != 0 {
		s.renewSlot(&s.slots[g.slot-1])
	}
	s.recount(id)
}

func (s *Slots) renewSlot(sl *slot) {
	if sl.settings != s.settings {
		sl.settings = s.settings
		s.gather(sl)
	}
}

func (s *Slots) hash(b []byte) uint32 { return uint32(maphash.Bytes(s.seed, b)) }
