// Package spider is the reference spider. It receives documents from the URL server over the line
// protocol, fetches them, puts the links that it finds to the doc index, and reports the end of
// each document. Authors of other spiders can read it as an example. The files, in the order of a
// document's way:
//
//	serve.go      connections: listen for the daemon, or dial it
//	conn.go       one conversation: it reads lines, starts a fetch for each, and writes statuses
//	stall.go      ends the conversation if the process was stopped for a while
//	visit.go      one document: fetch it, archive it, find its links, put them
//	fetch.go      the HTTP request, to the address the daemon named
//	spacing.go    keeps the daemon's gaps between requests to a host
//	body.go       the bounded body
//	links.go      what a page links to
//	index.go      links to the doc index, none lost
//	puts.go       the same on the daemon's connection
//	archive.go    WARC files
//	transport.go  the same conversation for Go programs: an http.RoundTripper
//
// Every spider must do three things. It fetches at once, and from HOST_IP, because the daemon paces
// the lines that it sends. It sends no other requests, not even a second try. It sends DONE only
// after the results are stored, because the daemon sends a document again until it is DONE, and
// never after that.
package spider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"urlserver/protocol"
)

// Config configures a Spider. Zero values are the defaults; Validate checks the others.
type Config struct {
	Token string      // first line to a daemon that the spider connects to; "": none
	ID    string      // spiderid whose documents the spider wants, if it connects to the daemon; "": any
	TLS   *tls.Config // for connections to the daemon; nil: plain TCP

	// base URL of the doc index that links are put to; "-": they are put on the daemon's
	// connection; "": they are counted and dropped
	Index      string
	IndexToken string // bearer token of the index; "": none
	WARC       string // directory of the WARC files, created if missing; "": no files

	// Concurrency bounds the number of concurrent fetches, over all connections; 0: 10000. Each
	// daemon is told it (ROOM). At the limit the spider stops reading, so with several daemons that
	// reach it together fetches start later than the daemons assume, and their gaps do not hold.
	Concurrency int

	Timeout time.Duration // of a fetch, from connecting to the end of the body; 0: 60 s
	// the daemon's Timeout_Spider_Status; 0: 120 s. WORKING is sent every half of it, and a stall
	// of half of it ends a connection
	StatusTimeout time.Duration

	// UserAgent is the User-Agent header. X-Robots-Tag and meta tags may name its product token.
	// "": DefaultUserAgent.
	UserAgent string

	// VerifyTLS refuses hosts without a valid certificate. It is off by default, as in archiving
	// crawlers: expired and self-signed certificates are common, and nothing secret is sent.
	VerifyTLS bool

	Log zerolog.Logger // zero: silent
}

// Defaults of Config.
const (
	DefaultConcurrency   = 10000
	DefaultTimeout       = 60 * time.Second
	DefaultStatusTimeout = 120 * time.Second
	DefaultUserAgent     = "urlserver" // as the daemon's robots.user_agent, which rules are matched with
)

// Validate returns all faults of c in one error, or nil.
func (c Config) Validate() error {
	var faults []error
	if c.Token != "" && !protocol.ValidToken([]byte(c.Token)) {
		faults = append(faults, errors.New("token: not printable ASCII without spaces"))
	}
	if c.ID != "" && !protocol.ValidSpiderID([]byte(c.ID)) {
		faults = append(faults,
			fmt.Errorf("spiderid %q: not 1 to %d printable ASCII characters without spaces", c.ID,
				protocol.MaxSpiderID))
	}
	if c.Index != "" && c.Index != onConnection && !isBase(c.Index) {
		faults = append(faults, fmt.Errorf("index %q: not the base of an http or https URL", c.Index))
	}
	if !isHeaderValue(c.IndexToken) {
		faults = append(faults, errors.New("index token: not printable ASCII"))
	}
	if !isHeaderValue(c.UserAgent) {
		faults = append(faults, fmt.Errorf("user agent %q: not printable ASCII", c.UserAgent))
	}
	if c.Concurrency < 0 {
		faults = append(faults, fmt.Errorf("concurrency %d: less than 0", c.Concurrency))
	}
	if c.Timeout < 0 {
		faults = append(faults, fmt.Errorf("timeout %v: less than 0", c.Timeout))
	}
	if c.StatusTimeout != 0 && c.StatusTimeout < time.Second {
		faults = append(faults, fmt.Errorf("status timeout %v: less than a second", c.StatusTimeout))
	}
	return errors.Join(faults...)
}

func isBase(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" &&
		u.Fragment == ""
}

func isHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// withDefaults returns c with defaults for its zero values.
func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.StatusTimeout == 0 {
		c.StatusTimeout = DefaultStatusTimeout
	}
	if c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent
	}
	return c
}

// Spider fetches documents for one or more daemons. Safe for concurrent use.
type Spider struct {
	cfg     Config
	fetcher *fetcher
	index   *index      // nil: links are only counted
	archive *archive    // nil: no WARC
	bodies  *lastBodies // nil: links are only counted
	nesting *nesting
	busy    chan struct{}
	spacing spacing
	// a semaphore of the pages being parsed: a page takes a core and, at worst, the memory of a body
	parsing chan struct{}
	count   counters

	// handle fetches a document, and connected is called when a conversation begins. Transport sets
	// its own.
	handle    func(context.Context, protocol.Fetch, time.Time, *puts, *stallWatch) (result, error)
	connected func(context.Context, *puts)
}

// New returns a spider. It starts nothing. cfg has passed Validate.
func New(cfg Config) *Spider {
	cfg = cfg.withDefaults()
	s := &Spider{
		cfg:     cfg,
		fetcher: newFetcher(cfg.UserAgent, cfg.Timeout, cfg.VerifyTLS),
		busy:    make(chan struct{}, cfg.Concurrency),
		parsing: make(chan struct{}, cores()), nesting: newNesting(),
	}
	s.handle, s.connected = s.visit, func(context.Context, *puts) {}
	if cfg.Index != "" { // where links go, the lastmod of sitemaps goes, too
		s.bodies = newLastBodies()
	}
	if cfg.Index != "" && cfg.Index != onConnection {
		s.index = newIndex(cfg.Index, cfg.IndexToken, cfg.Log, &s.count)
	}
	if cfg.WARC != "" {
		s.archive = newArchive(cfg.WARC, cfg.UserAgent)
	}
	return s
}

// Close finishes the WARC file. Call it after Serve and Dial have returned, as the last method.
func (s *Spider) Close() error {
	if s.archive == nil {
		return nil
	}
	return s.archive.close()
}
