package spider

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"urlserver/protocol"
)

// Transport is an http.RoundTripper whose requests wait for their turn. It puts the URL of each
// request into the daemon's index, waits until the daemon says that the URL may be fetched, makes
// the request to the address that the daemon named, and reports how it ended. So any number of
// programs and goroutines keep one pace at each host, and obey its robots.txt.
//
// A request is open at the daemon until its response's body has been read to its end or closed.
// Redirects are requests like any other. When the connection to the daemon breaks, open requests
// fail, because the daemon takes them for ended. Requests that still wait for their turn go on
// waiting.
//
// The fields must not change after the first request. Safe for concurrent use.
type Transport struct {
	Daemon string      // "host:port" of spider.listen
	Token  string      // spider.token; "": none
	TLS    *tls.Config // for the connection to the daemon; nil: plain TCP
	Crawl  string      // crawl ID of the URLs; "": the daemon's default

	// API is the base URL of the daemon's http.listen, with its token. The Transport asks there
	// whether the daemon has ended requests that wait for long, because robots.txt forbids the URL or
	// its host has no address. "": such requests wait until their context ends.
	API, APIToken string

	MaxOpen       int            // requests at once; 0: 16
	StatusTimeout time.Duration  // as in Config
	Log           zerolog.Logger // zero: silent

	once    sync.Once
	id      string // spiderid of this Transport, and prefix of its DOC_IDs
	spider  *Spider
	stop    context.CancelCauseFunc
	stopped chan struct{}

	mu      sync.Mutex // guards all below; held for memory work only
	last    uint64     // number of the last DOC_ID
	waiting map[string]chan<- turn
	link    *link         // nil: not connected
	changed chan struct{} // closed when link is another one
}

// DefaultMaxOpen is the default of Transport.MaxOpen.
const DefaultMaxOpen = 16

var (
	errTransportClosed = errors.New("the Transport is closed")
	errNotWaited       = errors.New("the daemon's connection is over")
)

// EndedError is the error of a request that the daemon has ended without a fetch.
type EndedError struct {
	URL     string
	Outcome string // "robots", "dns" and so on, as in the daemon's API
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("%s is not fetched: the URL server ended it as %q", e.URL, e.Outcome)
}

// link is a connection to the daemon.
type link struct {
	ctx  context.Context // ends with the connection
	puts *puts
}

// turn is the daemon's line for a request: its URL may be fetched now.
type turn struct {
	ctx     context.Context // ends with the connection
	fetch   protocol.Fetch
	arrived time.Time
	watch   *stallWatch
	ended   chan<- result // takes one
}

// unfetched is the result of a document that nobody waits for.
var unfetched = result{status: protocol.NoStatus, retryAfter: protocol.NoRetryAfter}

func (t *Transport) start() {
	t.id = "go-" + rand.Text()
	t.waiting, t.changed, t.stopped = map[string]chan<- turn{}, make(chan struct{}), make(chan struct{})
	open := t.MaxOpen
	if open == 0 {
		open = DefaultMaxOpen
	}
	t.spider = New(Config{Token: t.Token, ID: t.id, TLS: t.TLS, Index: onConnection, Concurrency: open,
		StatusTimeout: t.StatusTimeout, VerifyTLS: true, Log: t.Log})
	t.spider.handle, t.spider.connected = t.hand, t.connect
	t.spider.fetcher.transport.DisableCompression = false
	ctx, cancel := context.WithCancelCause(context.Background())
	t.stop = cancel
	go func() {
		defer close(t.stopped)
		_ = t.spider.Dial(ctx, t.Daemon) // nil
	}()
}

// Close ends the connection, and all requests with it. URLs that waited stay in the index; other
// spiders may get them.
func (t *Transport) Close() error {
	t.once.Do(t.start)
	t.stop(errTransportClosed)
	<-t.stopped
	return nil
}

// connect notes a new connection.
func (t *Transport) connect(ctx context.Context, p *puts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.link = &link{ctx, p}
	close(t.changed)
	t.changed = make(chan struct{})
}

// hand is Spider.handle. It gives a document to the request that waits for it, and returns when the
// request has ended.
func (t *Transport) hand(ctx context.Context, f protocol.Fetch, arrived time.Time, _ *puts,
	watch *stallWatch) (result, error) {
	id := string(f.DocID)
	t.mu.Lock()
	to := t.waiting[id]
	delete(t.waiting, id)
	t.mu.Unlock()
	if to == nil { // its context has ended, or it was fetched when a connection broke
		return unfetched, nil
	}
	ended := make(chan result, 1)
	to <- turn{ctx, f, arrived, watch, ended} // never blocks: it holds one
	select {
	case r := <-ended:
		return r, nil
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.once.Do(t.start)
	mine, err := t.await(req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return t.fetch(req, mine)
}

// await returns when the daemon has said that the request may be made.
func (t *Transport) await(req *http.Request) (turn, error) {
	given := make(chan turn, 1)
	id, object := t.register(req.URL, given)
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- t.ask(ctx, req.URL, id, object) }()
	select {
	case mine := <-given:
		return mine, nil
	case err := <-failed:
		return turn{}, t.forget(id, given, err)
	case <-t.stopped:
		return turn{}, t.forget(id, given, errTransportClosed)
	}
}

// register returns the DOC_ID of a request and the JSON object to be put for it.
func (t *Transport) register(u *url.URL, given chan<- turn) (id string, object []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	id = t.id + "-" + strconv.FormatUint(t.last, 10)
	t.waiting[id] = given
	plain := *u
	plain.Fragment, plain.RawFragment, plain.User = "", "", nil
	object, _ = json.Marshal(map[string]any{ // strings always can be
		"url": plain.String(), "doc_id": id, "unique": id, "crawl": t.Crawl,
		"metadata": map[string][]string{"spiderid": {t.id}},
	})
	return id, object
}

// forget ends the wait for a document with err. If its turn has come meanwhile, it ends unfetched.
func (t *Transport) forget(id string, given <-chan turn, err error) error {
	t.mu.Lock()
	_, waits := t.waiting[id]
	delete(t.waiting, id)
	t.mu.Unlock()
	if !waits {
		(<-given).ended <- unfetched
	}
	return err
}

// ask puts the object on each connection until ctx ends or the daemon has ended the document. It
// returns why the caller must wait for the document no longer.
func (t *Transport) ask(ctx context.Context, u *url.URL, id string, object []byte) error {
	for {
		now, changed := t.current()
		if now != nil {
			if err := t.askOn(ctx, now, u, id, object); !errors.Is(err, errNotWaited) {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if now == nil {
				return fmt.Errorf("no connection to the URL server at %s: %w", t.Daemon, ctx.Err())
			}
			return ctx.Err()
		}
	}
}

// current returns the connection, nil if there is none, and a channel that is closed when there is another one.
func (t *Transport) current() (*link, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.link != nil && t.link.ctx.Err() != nil {
		t.link = nil
	}
	return t.link, t.changed
}

// askOn puts the object on one connection. It returns errNotWaited when the connection has ended:
// the daemon may have lost the document, so ask puts the object again on the next connection.
func (t *Transport) askOn(ctx context.Context, l *link, u *url.URL, id string, object []byte) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errNotWaited) })()
	for wait := (backoff{}); ; wait.sleep(both) {
		put, err := l.puts.putObject(both, object)
		switch {
		case err != nil:
			return err
		case put == protocol.PutInvalid:
			return fmt.Errorf("the URL server takes no URL %q", u.Redacted())
		case put == protocol.PutOutOfScope:
			return &EndedError{u.Redacted(), put.String()}
		case put != protocol.PutFail:
			return t.lookAfter(both, u, id)
		}
	}
}

// The first and the longest pause between two looks at a request that waits.
const (
	firstLook   = time.Second
	longestLook = 30 * time.Second
)

// lookAfter returns when the daemon has ended the document without a fetch, or ctx has ended.
func (t *Transport) lookAfter(ctx context.Context, u *url.URL, id string) error {
	for pause := firstLook; t.API != ""; pause = min(2*pause, longestLook) {
		sleep(ctx, pause)
		if ctx.Err() != nil {
			break
		}
		outcome, err := t.look(ctx, id)
		switch {
		case err != nil:
			t.Log.Warn().Err(err).Str("doc_id", id).Msg("cannot ask what has become of a URL")
		case outcome != "" && t.waits(id):
			return &EndedError{u.Redacted(), outcome}
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (t *Transport) waits(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting[id] != nil
}

// look returns how a document has ended; "": it has not.
func (t *Transport) look(ctx context.Context, id string) (outcome string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.API+"/docindex/urls/"+id, nil)
	if err != nil {
		return "", err
	}
	if t.APIToken != "" {
		req.Header.Set("Authorization", "Bearer "+t.APIToken)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var found struct{ Outcome *string }
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", t.API, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil || found.Outcome == nil {
		return "", err
	}
	return *found.Outcome, nil
}
