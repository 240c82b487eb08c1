// Package spider is the reference spider: it takes documents from the URL server over the line
// protocol, fetches them, puts the links it finds to the doc index and says when it is done. It is
// meant to be read by who writes another; the parts are in the order of a document's way:
//
//	serve.go    connections: listen for the daemon, or dial it
//	conn.go     one conversation: lines in, a fetch each, lines out
//	stall.go    the conversation ends where the process stood still
//	visit.go    one document: fetch, keep, find links, put them
//	fetch.go    the HTTP request, to the address the daemon named
//	spacing.go  the daemon's gaps kept on the way to the host
//	body.go     the bounded body
//	links.go    what a page links to
//	index.go    links to the doc index, none lost
//	archive.go  WARC files
//
// Three things every spider has to get right: it fetches at once and from HOST_IP, since the daemon
// paces what it sends; it sends no request of its own, not even a second try; and it says DONE only
// after what it learned is in safe hands, because a document that is not DONE is sent again and one
// that is DONE never is.
package spider

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"urlserver/protocol"
)

// Config says how a spider works. Zero values stand for the defaults; Validate tells if the others
// make sense.
type Config struct {
	Token string      // first line to the daemon where the spider dials; "": none is sent
	ID    string      // spiderid whose documents are wanted where the spider dials; "": any
	TLS   *tls.Config // for dialling the daemon; nil: plain TCP

	Index      string // base URL of the doc index, to which links go; "": they are counted and dropped
	IndexToken string // bearer token for it; "": none
	WARC       string // directory of the WARC files, made where missing; "": none are written

	// Concurrency bounds the fetches at one time, over all connections; 0: 10000. It should be no
	// less than what the daemon sends (spider.max_in_flight): the spider reads no further while it
	// is used up, so the fetches that wait then begin later than the daemon thinks, and its gaps no
	// longer hold.
	Concurrency int

	Timeout time.Duration // of a fetch, from dialling to the end of the body; 0: 60 s
	// the daemon's Timeout_Spider_Status; WORKING is sent every half of it, a stall of half ends a
	// connection; 0: 120 s
	StatusTimeout time.Duration

	// UserAgent names the spider to hosts; its product token is what X-Robots-Tag and meta tags may
	// name. "": DefaultUserAgent.
	UserAgent string

	// VerifyTLS refuses hosts whose certificate does not hold. It is off because a crawler keeps
	// what is there, as archiving crawlers do: expired and self-signed certificates are common, and
	// nothing secret is sent.
	VerifyTLS bool

	Log zerolog.Logger // zero: silent
}

// What Config's zeros stand for.
const (
	DefaultConcurrency   = 10000
	DefaultTimeout       = 60 * time.Second
	DefaultStatusTimeout = 120 * time.Second
	DefaultUserAgent     = "urlserver" // as the daemon's robots.user_agent, which rules are matched with
)

// Validate reports all that is wrong with c in one error, nil if nothing is.
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
	if c.Index != "" && !isBase(c.Index) {
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

// withDefaults is c with its zeros filled in.
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

// Spider fetches documents for one or more daemons. All its methods may be used at the same time.
type Spider struct {
	cfg     Config
	fetcher *fetcher
	index   *index   // nil: links are only counted
	archive *archive // nil: no WARC
	busy    chan struct{}
	spacing spacing
	// one for each page being taken apart: work for a core and, at worst, memory for a body
	parsing chan struct{}
	count   counters
}

// New returns a spider that has not started anything. cfg has passed Validate.
func New(cfg Config) *Spider {
	cfg = cfg.withDefaults()
	s := &Spider{
		cfg:     cfg,
		fetcher: newFetcher(cfg.UserAgent, cfg.Timeout, cfg.VerifyTLS),
		busy:    make(chan struct{}, cfg.Concurrency),
		parsing: make(chan struct{}, cores()),
	}
	if cfg.Index != "" {
		s.index = newIndex(cfg.Index, cfg.IndexToken, cfg.Log, &s.count)
	}
	if cfg.WARC != "" {
		s.archive = newArchive(cfg.WARC, cfg.UserAgent)
	}
	return s
}

// Close finishes the WARC file. Serve and Dial must have returned; the spider is not used any more.
func (s *Spider) Close() error {
	if s.archive == nil {
		return nil
	}
	return s.archive.close()
}
