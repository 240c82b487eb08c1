package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"urlserver/configs"
)

// Scenario is the whole input of a run: two runs of one Scenario are the same.
type Scenario struct {
	Kind      string // one of Kinds
	Seed      uint64
	Hosts     int
	Addresses int
	Documents int
	Big       int     // number of documents on the first address
	BigHosts  int     // number of hosts on the first address
	Scattered float64 // share of documents that come due at any time; the others come due with their host's
	Uneven    bool    // few hosts have most of the documents
	Spiders   int
	NameTTL   time.Duration // longest TTL of a DNS answer

	Day  time.Duration // documents come due over this time; 0: all at the start
	Heal time.Duration // when all trouble ends
	End  time.Duration // the run lasts at least until then
	Last time.Duration // every document must have ended by then
	// documents may have payloads, and some spiders say PAYLOAD
	Payloads bool
	Puts     float64 // share of documents that spiders put
	Notes    bool    // the index keeps notes of robots.txt
	Crawls   int     // each with a scope, which changes; documents are links of others. 0: there are none
	Shapes   bool    // links of few hosts have shapes, which take turns; the crawls have no scopes then
	Stop     bool    // the daemon is stopped at Heal; else the run goes on until all documents have ended

	Exact bool // the index offers each document once, and the engine relies on that
	// the oracle checks that documents of hosts without trouble end soon; the index must have no
	// trouble then
	Served  bool
	Config  configs.Config
	Trouble Trouble
}

// Trouble is what goes wrong until Heal. Floats are probabilities or shares from 0 to 1; durations
// are the mean time between two events. 0 is never.
type Trouble struct {
	Repeats     float64       // of candidates: one that was offered before
	Ignores     float64       // of answers: the index ignores the reject list
	NoAnswers   float64       // of requests for candidates: empty, failed or lost
	Undelivered float64       // of deliveries of outcomes: refused
	Scopes      time.Duration // the scope of a crawl changes
	Outage      time.Duration // the index takes no outcomes for a while
	Invalid     float64       // of documents: URL or DOC_ID unusable

	Moves     float64 // of hosts: their addresses change
	MoveEvery time.Duration
	Wander    float64       // of hosts: each look-up gives an address chosen at random
	Dead      float64       // of hosts: no address
	Flaky     float64       // of hosts: look-ups often fail
	Broken    float64       // of hosts: their zone answers SERVFAIL, or not at all
	Shaky     float64       // of hosts: their zone is broken now and then, for less than resolver.give_up
	SlowZones float64       // of hosts: a look-up takes seconds
	NoDNS     time.Duration // how long after the start no name server answers
	Outages   time.Duration // no name server answers for a while

	Robots     float64 // of hosts: robots.txt fails, redirects, delays
	Hanging    float64 // of hosts: no answer to a request for robots.txt, ever
	Huge       float64 // of hosts: robots.txt has very many rules
	Costly     float64 // of hosts: a verdict by robots.txt takes long
	Detours    float64 // of hosts: robots.txt redirects to a host in trouble
	CrawlDelay int     // the longest, in seconds
	Overload   float64 // of hosts: answer 429 and 503 now and then
	Neighbours bool    // ten hosts share an address; one answers 503 only, and one has a long Crawl-delay
	Back       float64 // of fetches: the spider gives the document back
	Slow       float64 // of fetches: take up to twice the status timeout

	Crash      time.Duration // of a spider
	Freeze     time.Duration // of a spider: sends nothing for a while
	Silent     float64       // of fetches: no status ever
	Twice      float64       // of fetches: DONE comes again
	Alien      float64       // of fetches: DONE for another spider's transaction before it
	Garbage    float64       // of fetches: a bad line before it
	Pieces     float64       // of statuses: arrive in pieces
	Stall      float64       // of writes to a spider: take long
	Room       time.Duration // a spider says how many documents it takes
	Poison     int           // number of documents that crash their spider
	Endless    int           // number of documents for which the spider sends WORKING for ever
	ShortLived float64       // of spiders: crash soon after each start and send nothing
	Sluggish   float64       // of spiders: need long for each fetch
	Mute       float64       // of spiders: never send anything
	Suspend    time.Duration // of a spider: its process is suspended for a while
	Pause      time.Duration // by the operator
	Block      time.Duration
	Rates      time.Duration // of changed settings
	Rules      time.Duration // of changed rules for hosts
	Restart    time.Duration // of the daemon: it is killed and started again
	WallStep   time.Duration // the wall clock is set forward or back by an hour
}

// Kinds returns the kinds of scenario that Small and Full make, in a fixed order.
func Kinds() []string {
	return append([]string{"day", "million", "crowd", "collide", "stall", "scarce", "storm", "operator",
		"rules", "sites", "networks", "verbs", "scopes", "shapes", "stop", "healthy", "restarts"},
		accidental()...)
}

// accidental returns the kinds in which some hosts or spiders have trouble and the oracle checks
// that the other hosts are served soon.
func accidental() []string {
	return []string{"zones", "robots", "notes", "spiders", "accidents", "neighbours"}
}

// mixed returns a little of every trouble.
func mixed() Trouble {
	return Trouble{
		Repeats: 0.05, Ignores: 0.1, NoAnswers: 0.1, Undelivered: 0.1, Outage: 4 * time.Hour, Invalid: 0.01,
		Moves: 0.05, MoveEvery: 20 * time.Minute, Dead: 0.005, Flaky: 0.02,
		Robots: 0.3, CrawlDelay: 30, Overload: 0.05, Slow: 0.01,
		Crash: 30 * time.Minute, Freeze: time.Hour,
		Silent: 0.002, Twice: 0.02, Alien: 0.01, Garbage: 0.01, Pieces: 0.2, Poison: 10,
		Back: 0.02, Room: 10 * time.Minute,
		Pause: 2 * time.Hour, Block: 10 * time.Minute, Rates: 2 * time.Hour, WallStep: time.Hour,
	}
}

// Small returns a scenario that runs in a fraction of a second.
func Small(kind string, seed uint64) (Scenario, error) {
	sc := Scenario{
		Kind: kind, Seed: seed, Hosts: 300, Addresses: 150, Documents: 3000, Scattered: 0.5, Spiders: 5,
		NameTTL: time.Hour, Payloads: true, Puts: 0.1,
		Day: time.Hour, Heal: 2 * time.Hour, End: 2 * time.Hour, Last: 4 * 24 * time.Hour, Trouble: mixed(),
	}
	sc.settings(rand.New(rand.NewPCG(seed, 1)))
	sc.Trouble.Outage, sc.Trouble.Pause, sc.Trouble.Rates, sc.Trouble.WallStep = 20*time.Minute,
		20*time.Minute, 20*time.Minute, 10*time.Minute
	err := sc.shape(2000, 100)
	return sc, err
}

// Full returns a scenario of full size: 100,000 hosts, a million documents and more.
func Full(kind string, seed uint64) (Scenario, error) {
	sc := Scenario{
		Kind: kind, Seed: seed, Hosts: 100_000, Addresses: 60_000, Documents: 1_000_000, Scattered: 0.1,
		Spiders: 20, NameTTL: time.Hour, Payloads: true, Puts: 0.01,
		Day: 20 * time.Hour, Heal: 21 * time.Hour, End: 24 * time.Hour, Last: 5 * 24 * time.Hour, Trouble: mixed(),
	}
	sc.settings(rand.New(rand.NewPCG(seed, 1)))
	sc.Config.QueueCount = 256 << (seed % 5)
	err := sc.shape(1_000_000, 1_000)
	return sc, err
}

// Part returns the scenario with one n-th of the hosts, addresses and documents.
func (sc Scenario) Part(n int) Scenario {
	for _, size := range []*int{&sc.Hosts, &sc.Addresses, &sc.Documents, &sc.Big, &sc.BigHosts} {
		*size = (*size + n - 1) / n
	}
	return sc
}

// settings chooses the daemon's settings at random.
func (sc *Scenario) settings(rng *rand.Rand) {
	c := configs.Default()
	c.QueueCount, c.QueueLen = 16<<rng.IntN(6), 4<<rng.IntN(5)
	c.ReqHostConcurrent = 1 + rng.IntN(3)
	c.ReqHostPerSec = []float64{0.3, 0.5, 1, 3}[rng.IntN(4)]
	c.Politeness.DelayFactor = []float64{0, 0, 0.5, 2}[rng.IntN(4)]
	c.Politeness.Patience = time.Duration(rng.IntN(60)) * time.Second
	c.Spider.MaxInFlight = 4 << rng.IntN(9)
	c.VHosts.RejectOver = 16 << rng.IntN(5)
	c.Leftover.Max = 1000 << rng.IntN(11)
	c.DocIndex.Batch = 100 << rng.IntN(4)
	c.DocIndex.OutcomesMax = 2000
	c.Robots.TTL = time.Duration(1+rng.IntN(23)) * time.Hour
	c.TimeoutSpiderStatus = time.Duration(20+rng.IntN(100)) * time.Second
	c.Politeness.SharedNetworks = ""
	c.Politeness.SitePerSec = []float64{0, 0, 0.2, 1}[rng.IntN(4)]
	c.Politeness.SiteConcurrent = []int{0, 0, 1, 2}[rng.IntN(4)]
	sc.Config = c
}

// shape changes the mixed scenario into one of sc.Kind. big and bigHosts are the numbers of
// documents and hosts of the big group in "million".
func (sc *Scenario) shape(big, bigHosts int) error {
	t, c := &sc.Trouble, &sc.Config
	switch sc.Kind {
	case "day":
	case "million":
		sc.million(big, bigHosts)
	case "crowd":
		sc.Hosts, sc.Addresses, sc.Documents, sc.Spiders = 1, 1, min(sc.Documents, 2000), 200
		c.Politeness.SitePerSec, c.Politeness.SiteConcurrent = 0, 0
		c.QueueCount, c.Robots.Enabled = 4, false
		*t = Trouble{Crash: 5 * time.Minute, Freeze: 5 * time.Minute, Twice: 0.1, Alien: 0.1, Pieces: 0.5}
	case "collide":
		sc.Hosts, sc.Addresses, sc.NameTTL, sc.Day, sc.Scattered = 60, 12, 3*time.Second, 25*time.Minute, 1
		t.Moves, t.MoveEvery, t.Slow, t.Rates = 1, 10*time.Second, 0.1, 0
		c.ReqHostPerSec = 0.3
	case "stall":
		c.ReqHostConcurrent, c.TimeoutSpiderStatus = 1, 2*time.Minute
		t.Stall, t.Rates, t.Freeze = 0.3, 0, 0
	case "scarce":
		c.QueueCount, c.QueueLen, c.Leftover.Max = 8, 4, 200
		t.CrawlDelay = 300
	case "storm":
		t.Crash, t.Freeze, t.Poison, t.Silent = time.Minute, 5*time.Minute, 100, 0.02
	case "operator":
		t.Pause, t.Block, t.Rates, t.WallStep = 3*time.Minute, time.Minute, 2*time.Minute, 5*time.Minute
	case "rules":
		t.Rules, t.Block, t.Slow = 2*time.Minute, 5*time.Minute, 0.1
		c.Rules = someRules(rand.New(rand.NewPCG(sc.Seed, 4)), sc)
	case "sites":
		sc.Addresses = 4
		t.Robots, t.CrawlDelay, t.Overload, t.Rules = 0.5, 600, 0.1, 20*time.Minute
		c.ReqHostPerSec, c.ReqHostConcurrent, c.QueueLen = 5, 1+c.QueueLen/2, max(8, c.QueueLen)
		c.Politeness.SitePerSec, c.Politeness.SiteConcurrent = 0.3, 1
	case "networks":
		sc.Hosts, sc.Addresses, sc.NameTTL = 200, 300, time.Minute
		t.Wander, t.Overload, t.Rules = 0.5, 0.1, 30*time.Minute
		c.Rules = sharedRules(5, 10)
	case "verbs":
		t.Back, t.Room, t.Crash, sc.Puts = 0.2, 20*time.Second, 10*time.Minute, 0.5
	case "scopes":
		sc.scopes()
	case "shapes":
		sc.scopes()
		sc.Shapes, sc.Crawls, t.Scopes = true, 2, 0
		sc.Hosts, sc.Addresses = max(20, sc.Hosts/15), max(20, sc.Hosts/15)
	case "stop":
		sc.Stop, sc.Heal, sc.End = true, sc.Day/2, sc.Day
	case "zones", "robots", "notes", "spiders", "accidents", "neighbours":
		sc.shapeAccidents()
	case "restarts":
		sc.restarts()
	case "healthy":
		sc.Exact, *t = true, Trouble{Robots: 0.2, CrawlDelay: 20}
	default:
		return fmt.Errorf("no scenario is called %q; there are %q", sc.Kind, Kinds())
	}
	return nil
}

// shapeAccidents does the same for the kinds that accidental names.
func (sc *Scenario) shapeAccidents() {
	t, c := &sc.Trouble, &sc.Config
	switch sc.Kind {
	case "zones":
		sc.accidents()
		t.Broken, t.Shaky, t.SlowZones, t.NoDNS, t.Outages = 0.4, 0.1, 0.1, 4*time.Minute, 40*time.Minute
		t.Moves, t.MoveEvery, sc.NameTTL = 0.1, 5*time.Minute, time.Minute
	case "robots":
		sc.Hosts = sc.Documents
		sc.accidents()
		sc.Uneven, c.Robots.Timeout = false, 2*time.Minute
		t.Robots, t.CrawlDelay = 0.1, 10
		t.Hanging, t.Huge, t.Costly, t.Detours = 0.7, 0.01, 0.01, 0.05
		c.Robots.Memory = 1 << 20
		c.Rules = sc.blockRules()
	case "notes":
		sc.Hosts = sc.Documents / 4
		sc.accidents()
		sc.Uneven, sc.Notes = false, true
		t.Robots, t.CrawlDelay, t.Huge = 0.3, 10, 0.02
		c.Robots.Memory, c.Robots.TTL = 1<<20, 10*time.Minute
	case "spiders":
		sc.accidents()
		t.Poison, t.Endless, t.ShortLived, t.Sluggish, t.Mute, t.Suspend, t.Crash = 5, 5, 0.2, 0.2, 0.2,
			10*time.Minute, 30*time.Minute
	case "accidents":
		sc.accidents()
		t.Broken, t.Shaky, t.SlowZones, t.NoDNS, t.Outages = 0.1, 0.05, 0.05, 2*time.Minute, 40*time.Minute
		t.Moves, t.MoveEvery, sc.NameTTL = 0.05, 5*time.Minute, time.Minute
		t.Robots, t.CrawlDelay = 0.1, 10
		t.Hanging, t.Huge, t.Costly, t.Detours = 0.1, 0.01, 0.02, 0.05
		c.Rules = sc.blockRules()
		t.Poison, t.Endless, t.ShortLived, t.Sluggish, t.Mute, t.Suspend, t.Crash = 3, 3, 0.2, 0.2, 0.2,
			20*time.Minute, 30*time.Minute
	case "neighbours":
		sc.accidents()
		sc.Addresses = sc.Hosts / neighbours
		t.Neighbours = true
		c.ReqHostPerSec, c.ReqHostConcurrent, c.QueueLen = 2, 4, 16+c.QueueLen
	}
}

// scopes prepares a scenario whose crawls have scopes that change. The index is the daemon's own,
// which loses nothing and offers each document once.
func (sc *Scenario) scopes() {
	t := &sc.Trouble
	sc.Crawls, sc.Exact = 6, true
	t.Repeats, t.Ignores, t.NoAnswers, t.Invalid, t.WallStep = 0, 0, 0, 0, 0
	t.Scopes, t.Back, t.Crash, t.Outage, t.Undelivered = time.Minute, 0.05, 10*time.Minute, 5*time.Minute, 0.3
}

// restarts prepares a scenario in which the daemon is killed and started again, with the state
// that an index on disk keeps. The index offers each document once in a life of the daemon.
func (sc *Scenario) restarts() {
	t := &sc.Trouble
	sc.Exact, sc.Notes, sc.Puts, sc.Addresses = true, true, 0, max(1, sc.Hosts/6)
	t.Repeats, t.Ignores, t.NoAnswers, t.Undelivered, t.Outage, t.Invalid, t.WallStep = 0, 0, 0, 0, 0, 0, 0
	t.Pause, t.Block, t.Rates, t.Moves, t.Flaky, t.Poison = 0, 0, 0, 0, 0, 0
	t.Restart, t.CrawlDelay, t.Overload = 6*time.Minute, 300, 0.3
	for i := range uint32(sc.Hosts / 10) { // three hosts in ten belong to a site of three
		sc.Config.Rules = append(sc.Config.Rules, configs.HostRule{Group: "group-" + strconv.Itoa(int(i)),
			Hosts: []string{hostName(3 * i), hostName(3*i + 1), hostName(3*i + 2)}})
	}
}

// accidents prepares a scenario in which some hosts and spiders will have trouble, and the others
// must be served soon.
func (sc *Scenario) accidents() {
	c := &sc.Config
	sc.Addresses, sc.Uneven, sc.Served, sc.Exact, sc.Trouble = 2*sc.Hosts, true, true, true, Trouble{}
	sc.Day = sc.Heal / 4
	sc.Spiders = max(sc.Spiders, 10)
	c.QueueCount, c.DocIndex.Batch, c.Leftover.Max = sc.Hosts, 100, 1_000_000
	c.Spider.MaxInFlight = max(c.Spider.MaxInFlight, 32)
	c.TimeoutSpiderStatus, c.Spider.MaxFetch = min(c.TimeoutSpiderStatus, time.Minute), 10*time.Minute
}

// million makes one group of a million documents among many groups of ten.
func (sc *Scenario) million(big, bigHosts int) {
	sc.Addresses, sc.Documents = sc.Hosts, big+10*sc.Hosts
	sc.Big, sc.BigHosts = big, bigHosts
	sc.Hosts += bigHosts
	sc.Addresses++
	sc.Exact = true
	sc.Day = 0
	sc.Config.QueueCount = 1024
	sc.Config.ReqHostPerSec, sc.Config.ReqHostConcurrent = 20, 16
	sc.Config.Politeness.SitePerSec, sc.Config.Politeness.SiteConcurrent = 0, 0
	sc.Config.Politeness.DelayFactor = 0
	sc.Config.Leftover.Max = 1_000_000
	t := &sc.Trouble
	t.Repeats, t.Moves, t.Rates, t.Pause, t.Crash = 0, 0, 0, 0, 2*time.Hour
}
