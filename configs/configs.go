// Package configs holds the settings of the URL server: their type, their
// defaults, the strict reading of a settings file, and which of them a running
// daemon can take over.
//
// Every setting is one line of the table in settings.go. What is allowed, what
// an error says, what the sample file documents and what is compared between
// two configurations all come from that line.
package configs

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"urlserver/internal/canonical"
)

// Config is every setting of the daemon. It is a value: pass it by value, and
// treat the slices in it as immutable. The zero value is not a usable
// configuration; begin with Default.
//
// The words are those of the settings file.
type Config struct {
	SpiderHost          string        // host name or IP, IPv6 without brackets; "": dial nobody
	SpiderPort          int           // where the spider at SpiderHost listens
	TimeoutSpiderStatus time.Duration // whole seconds; a document without a status for so long is sent again
	QueueCount          int           // host slots
	QueueLen            int           // documents in a slot
	ReqHostConcurrent   int           // open requests to an address, and to each of its sites; at most QueueLen
	ReqHostPerSec       float64       // requests a second to an address, and to each of its sites; above 0
	AllowInsecure       bool          // listeners others can reach need neither token nor TLS
	Rules               []HostRule    // RuleSet says which of them count for a host
	Crawls              []Crawl       // scopes of crawls

	Canonical []canonical.Rule // query parameters that do not count when URLs are compared

	Spider      Spider
	Leftover    Leftover
	Crawl       CrawlTurns
	Politeness  Politeness
	VHosts      VHosts
	DocIndex    DocIndex
	Resolver    Resolver
	Robots      Robots
	HTTP        HTTP
	Frontier    Frontier
	Reservation Reservation
	Monitor     CrawlControl // the section [monitor]
	Trace       Trace
	Log         Log

	sources map[string]Source // of settings without their default, by lower-case name, if LoadWith has read them
	shared  []HostRule        // what the file politeness.shared_networks says, if Load has read it
}

// Spider is how spiders connect, and what one may hold.
type Spider struct {
	Listen      string        // "host:port" that spiders dial; "": none
	Dial        []string      // more spiders to dial, "host:port" each
	Token       Secret        // asked of spiders that dial in; "": none
	MaxInFlight int           // documents at one spider
	MaxAttempts int           // attempts to fetch a document before it ends as timeout
	MaxFetch    time.Duration // a fetch ends after that, whatever its spider says
	TLSCert     string        // file; "": no TLS on Listen
	TLSKey      string        // file
	TLSCA       string        // file; "": no client certificates asked for
}

// Leftover bounds the leftover documents.
type Leftover struct {
	Max int // documents
}

// CrawlTurns is in which order the doc index hands out documents.
type CrawlTurns struct {
	Budget int // pages that a registered domain of a crawl has in a round; 0: any number
}

// Politeness is what holds beside Req_Host_Per_Sec.
type Politeness struct {
	DelayFactor float64       // times the last fetch's time; 0: off
	MaxDelay    time.Duration // the longest gap that DelayFactor leads to
	Patience    time.Duration // a group that may not be asked for longer may lose its slot

	SitePerSec     float64 // requests a second to one site; 0: as to an address
	SiteConcurrent int     // open requests to one site, at most QueueLen; 0: as to an address
	SharedNetworks string  // SharedBuiltin, a file, or "" for none
}

// Pace is how fast requests may go somewhere. In a rule, 0 is as without the rule.
type Pace struct {
	PerSec     float64 // requests a second
	Concurrent int     // open requests
}

// AddressPace is the pace of an address without a rule.
func (c Config) AddressPace() Pace { return Pace{c.ReqHostPerSec, c.ReqHostConcurrent} }

// SitePace is the pace of a site without a rule.
func (c Config) SitePace() Pace {
	return Pace{c.Politeness.SitePerSec, c.Politeness.SiteConcurrent}.or(c.AddressPace())
}

// or takes from another pace what p leaves out.
func (p Pace) or(o Pace) Pace {
	return Pace{cmp.Or(p.PerSec, o.PerSec), cmp.Or(p.Concurrent, o.Concurrent)}
}

// VHosts is about the hosts on one IP.
type VHosts struct {
	RejectOver int // with more documents held for one IP, its hosts are in the reject list
}

// The words of docindex.kind.
const (
	KindMemory = "memory" // embedded, in RAM only
	KindDisk   = "disk"   // embedded, in a folder
	KindRedis  = "redis"  // in Redis or Redis Cluster, shared with other daemons
	KindHTTP   = "http"   // asked over HTTP
)

// The words of docindex.sync: when what KindDisk acknowledges is on disk.
const (
	SyncBatch    = "batch"    // before it is acknowledged
	SyncInterval = "interval" // a second later at most
	SyncNone     = "none"     // when the operating system writes it
)

// DocIndex is where candidates come from.
type DocIndex struct {
	Kind        string        // KindMemory, KindDisk, KindRedis or KindHTTP
	Path        string        // of KindDisk: its folder
	Sync        string        // of KindDisk: SyncBatch, SyncInterval or SyncNone
	Memory      int           // bytes that KindMemory and KindDisk may take of the RAM
	URL         string        // base of KindHTTP
	Addrs       []string      // of KindRedis: "host:port" each
	Prefix      string        // of KindRedis: before each key
	Token       Secret        // bearer token of KindHTTP, password of KindRedis; "": none
	TLSCert     string        // of KindRedis: file; "": no client certificate
	TLSKey      string        // file
	TLSCA       string        // file; "" with no certificate either: no TLS
	Seeds       []string      // files of URLs put in at the start
	Batch       int           // candidates a request
	Retry       time.Duration // first wait after an answer with nothing new
	MaxRetry    time.Duration // longest such wait; at least Retry
	Quarantine  time.Duration // an ended document offered again within it is dropped
	OutcomesMax int           // outcomes kept while they cannot be delivered

	RefetchAfter RefetchAfter
}

// RefetchAfter is how long after a document ended an embedded index offers it again, by how it
// ended; 0: never.
type RefetchAfter struct {
	OK    time.Duration // fetched: 2xx, 3xx, or the spider reported no status
	Gone  time.Duration // 404 or 410
	Error time.Duration // all else; grows while it repeats
}

// The words of resolver.family.
const (
	FamilyAny  = "any" // both; IPv4 preferred
	FamilyIPv4 = "ipv4"
	FamilyIPv6 = "ipv6"
)

// Resolver is how host names become addresses.
type Resolver struct {
	Servers       []string // "ip:port" each; none: those of /etc/resolv.conf
	Timeout       time.Duration
	Attempts      int
	Concurrency   int // queries at once
	MinTTL        time.Duration
	MaxTTL        time.Duration // at least MinTTL
	NegativeTTL   time.Duration
	GiveUp        time.Duration  // a name that fails for now is tried again this long
	Family        string         // FamilyAny, FamilyIPv4 or FamilyIPv6
	AllowNetworks []netip.Prefix // else refused networks that may be fetched from
	// ports of URLs that the Fetch standard blocks, and that may be fetched from all the same
	AllowPorts []int
}

// Robots is how robots.txt is fetched and obeyed.
type Robots struct {
	Enabled       bool
	UserAgent     string // begins with the product token of RFC 9309
	Timeout       time.Duration
	TTL           time.Duration // a copy is used so long
	ErrorTTL      time.Duration // after an error, robots.txt is fetched again no sooner
	MaxCrawlDelay time.Duration
	MaxSize       int // bytes read of one file
	Memory        int // bytes that what was read of all files may take
	Sitemaps      bool
}

// HTTP is the listener of dashboard, API, metrics and embedded index.
type HTTP struct {
	Listen string   // "host:port"; "": off
	Token  Secret   // "": none
	Hosts  []string // names by which it may be asked without a token, beside its own address
}

// Frontier is the URL Frontier gRPC service.
type Frontier struct {
	Listen     string         // "host:port"; "": off
	Token      Secret         // "": none
	AllowFrom  []netip.Prefix // networks whose clients need neither token nor TLS
	TLSCert    string         // file; "": no TLS
	TLSKey     string         // file
	MaxMessage int            // bytes
	Addresses  bool           // clients keep the pace of sites and addresses
}

// The words of reservation.kind.
const (
	ReservationNone  = "none"  // this daemon is the only one
	ReservationRedis = "redis" // crawl host groups in Redis or Redis Cluster
	ReservationGRPC  = "grpc"  // a host reservation service
)

// Reservation is how daemons share who may work on a host group.
type Reservation struct {
	Kind    string        // ReservationNone, ReservationRedis or ReservationGRPC
	Addrs   []string      // "host:port" each
	Prefix  string        // before each key in Redis
	Lease   time.Duration // of one reservation
	Penalty time.Duration // how long a group is left alone after its lease was lost
	Janitor time.Duration // its period
	Token   Secret        // bearer token of the service, password of Redis
	TLSCert string        // file; "": no client certificate
	TLSKey  string        // file
	TLSCA   string        // file; "" with no certificate either: no TLS
}

// The words of monitor.security_protocol and monitor.sasl_mechanism.
const (
	ProtocolPlain   = "PLAINTEXT"
	ProtocolTLS     = "SSL"
	ProtocolSASL    = "SASL_PLAINTEXT"
	ProtocolSASLTLS = "SASL_SSL"
	MechanismPlain  = "PLAIN"
	MechanismSHA256 = "SCRAM-SHA-256"
	MechanismSHA512 = "SCRAM-SHA-512"
)

// CrawlControl configures crawl control, and where it listens on Kafka.
type CrawlControl struct {
	Brokers          []string // "host:port" each; none: no Kafka
	Prefix           string   // of the topics replies go to
	Inbound          []string // topics that requests come from
	Group            string   // the consumer group
	AppIDTopics      bool     // replies go to a topic of their application, too
	MaxDomains       int      // that a reply lists
	CompletedAfter   time.Duration
	SecurityProtocol string // ProtocolPlain and so on
	SASLMechanism    string // MechanismPlain and so on
	SASLUsername     string
	SASLPassword     Secret
	TLSCA            string // file; "": the system's
	TLSCert          string // file of a client certificate; "": none
	TLSKey           string // file
}

// TLS reports whether brokers are spoken to over TLS.
func (m CrawlControl) TLS() bool {
	return m.SecurityProtocol == ProtocolTLS || m.SecurityProtocol == ProtocolSASLTLS
}

// SASL reports whether brokers want a name and a password.
func (m CrawlControl) SASL() bool {
	return m.SecurityProtocol == ProtocolSASL || m.SecurityProtocol == ProtocolSASLTLS
}

// Trace selects the documents that are traced, and the receiver of the traces.
type Trace struct {
	Endpoint string  // base URL of an OTLP/HTTP receiver; "": off
	Sample   float64 // ratio of the documents, 0 to 1
}

// The words of log.level and log.format.
const (
	LevelTrace = "trace"
	LevelDebug = "debug"
	LevelInfo  = "info"
	LevelWarn  = "warn"
	LevelError = "error"

	FormatAuto   = "auto" // pretty on a terminal, JSON otherwise
	FormatPretty = "pretty"
	FormatJSON   = "json"
)

// Log is what is logged, and how.
type Log struct {
	Level  string
	Format string
	Crawl  string // file with a line for each outcome; "": none
}

// SpiderAddrs are all spiders to dial, "host:port" each and none twice:
// SpiderHost with SpiderPort first, then Spider.Dial.
func (c Config) SpiderAddrs() []string {
	var addrs []string
	if c.SpiderHost != "" {
		addrs = append(addrs, net.JoinHostPort(c.SpiderHost, strconv.Itoa(c.SpiderPort)))
	}
	for _, addr := range c.Spider.Dial {
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}
