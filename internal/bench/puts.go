package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/httpserver"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
	"urlserver/urlserver"
)

const (
	putURLs        = 200_000
	putHosts       = 1000
	putLinks       = 50 // of a page
	putBody        = 20 // pages in one request
	putClients     = 2
	putTurns       = 5
	putsTarget     = 0.9 // of the rate without the ten patterns
	plainTarget    = 0.95
	putCrawl       = "c"
	putContentType = "application/x-ndjson"
)

// tenPatterns are deny patterns as operators write them. None matches a URL of the measurement.
var tenPatterns = []string{
	`/calendar/`, `[?&]sessionid=`, `/print/\d+`, `\?.*&.*&.*&`, `\.(jpe?g|png|gif|css|js)$`,
	`/(search|login|cart)/`, `/tags?/[a-z]+/page/`, `/\d{4}/\d{2}/\d{2}/`, `replytocom=\d+`, `(?i)/admin/`,
}

// putKind is a way to put the same URLs.
type putKind struct {
	name   string
	bare   bool        // into a store that knows no scopes
	scope  scope.Scope // of the crawl
	via    bool        // each URL says the page that its link is on
	beside int         // the kind that it is compared with; its own number: none
	target float64
}

var putKinds = []putKind{
	{name: "no scope, a store that knows none", bare: true},
	{name: "no scope", beside: 0, target: plainTarget},
	{name: "a scope of ten patterns", scope: scope.Scope{Deny: tenPatterns}, beside: 1, target: putsTarget},
	{name: "via", via: true, beside: 1},
	{name: "via, a scope of ten patterns", via: true, scope: scope.Scope{Deny: tenPatterns}, beside: 3,
		target: putsTarget},
	{name: "max_pages and max_pages_domain", scope: scope.Scope{MaxPages: 2 * putURLs, MaxPagesDomain: 2 * putURLs},
		beside: 1},
}

func (k putKind) is(other putKind) bool { return k.name == other.name }

// takePuts measures puts over HTTP with and without a scope and a page, in turns.
func takePuts(ctx context.Context, b *bench) (rows []row, err error) {
	var bodies [2][][]byte // without and with via
	bodies[0], bodies[1] = linkBodies(false), linkBodies(true)
	for _, kind := range []string{"memory", "disk"} {
		runs := make([][]putRun, len(putKinds))
		for turn := range putTurns {
			for i, k := range putKinds {
				which := 0
				if k.via {
					which = 1
				}
				one, err := runPuts(ctx, b, kind, k, bodies[which], turn)
				if err != nil {
					return rows, fmt.Errorf("%s: %w", k.name, err)
				}
				runs[i] = append(runs[i], one)
			}
		}
		for i, k := range putKinds {
			rows = append(rows, putRow(kind, k, runs[i], runs[k.beside]))
		}
	}
	return rows, nil
}

// putRun is the rate of one run, and what a URL cost.
type putRun struct {
	rate float64
	cpu  time.Duration
}

// putRow compares runs with those of another kind, turn by turn.
func putRow(index string, k putKind, runs, others []putRun) row {
	var rates, costs []float64
	for i, r := range runs {
		rates = append(rates, r.rate/others[i].rate)
		costs = append(costs, float64(r.cpu)/float64(others[i].cpu))
	}
	slices.Sort(rates)
	slices.Sort(costs)
	rate, cost := rates[len(rates)/2], costs[len(costs)/2]
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b putRun) int { return cmp.Compare(a.rate, b.rate) })
	middle := sorted[len(sorted)/2]
	r := row{
		what:     fmt.Sprintf("URLs put over HTTP, index: %s, %s", index, k.name),
		measured: fmt.Sprintf("%s/s; CPU of a URL %.2f µs", count(middle.rate), micros(middle.cpu)),
		how: fmt.Sprintf("%s URLs on %s hosts, %d requests at once with %s lines each; medians of %d turns",
			count(putURLs), count(putHosts), putClients, count(putLinks*putBody), len(runs)),
	}
	if !k.is(putKinds[k.beside]) {
		r.beside = fmt.Sprintf("%s: %.2f of its rate, %.2f of its CPU", putKinds[k.beside].name, rate, cost)
	}
	if k.target > 0 {
		r.target, r.met = fmt.Sprintf("≥ %.2f", k.target), judge(rate >= k.target)
	}
	return r
}

// linkBodies returns requests that put links, page by page. Both have the same links.
func linkBodies(via bool) (bodies [][]byte) {
	const each = putLinks * putBody
	for from := 0; from < putURLs; from += each {
		var body []byte
		for n := from; n < from+each; n++ {
			page := n / putLinks
			body = append(body, `{"url":"`...)
			body = appendNameURL(body, n, page%putHosts)
			if via {
				body = append(body, `","via":"p`...)
				body = appendPadded(body, page, 7)
			} else {
				body = append(body, `","crawl":"`+putCrawl...)
			}
			body = append(body, "\"}\n"...)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// runPuts puts the bodies into a new index.
func runPuts(ctx context.Context, b *bench, index string, k putKind, bodies [][]byte, turn int) (r putRun, err error) {
	job := putServer{Bare: k.bare, Scope: k.scope}
	if index == "disk" {
		if job.Disk, err = os.MkdirTemp("", "bench"); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(job.Disk)) }()
	}
	var base string
	c, err := b.start(ctx, "puts", &job, &base)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	file := fmt.Sprintf("puts-%s-%d-%d.prof", index, slices.IndexFunc(putKinds, k.is), turn)
	if err := b.profileOf(c, file); err != nil {
		return r, err
	}
	var before, after usage
	if err := c.ask("usage", "", &before); err != nil {
		return r, err
	}
	began := time.Now()
	if err := postAll(ctx, base+"/docindex/urls", bodies); err != nil {
		return r, err
	}
	r.rate = putURLs / time.Since(began).Seconds()
	err = c.ask("usage", "", &after)
	r.cpu = (after.CPU - before.CPU) / putURLs
	return r, err
}

// postAll posts bodies, putClients at once.
func postAll(ctx context.Context, url string, bodies [][]byte) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, putClients)
	for i := range putClients {
		wg.Go(func() {
			for errs[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= len(bodies) {
					return
				}
				errs[i] = post(ctx, url, bodies[n])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// post posts one body. All its URLs have to be new.
func post(ctx context.Context, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", putContentType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if want := fmt.Appendf(nil, `{"new":%d,`, bytes.Count(body, []byte{'\n'})); !bytes.HasPrefix(text, want) {
		return fmt.Errorf("%s: %.300s; want %s", resp.Status, text, want)
	}
	return nil
}

// putServer is the role of an index that is served over HTTP. It has the pages of all links.
type putServer struct {
	Disk  string      // folder; "": in memory
	Bare  bool        // it knows no scopes
	Scope scope.Scope // of the crawl

	ended   chan error
	server  *http.Server
	closing func() error // nil: nothing to close
}

// open returns the base URL of the index.
func (p *putServer) open(ctx context.Context) (ready any, err error) {
	urlserver.TuneGC(p.Disk != "")
	var store docindex.Store = memory.New()
	if p.Disk != "" {
		s, err := disk.Open(disk.Config{Path: p.Disk, Log: zerolog.Nop()})
		if err != nil {
			return nil, err
		}
		store, p.closing = s, s.Close
	}
	if !p.Bare {
		s := scoped.New(store)
		if !p.Scope.Empty() {
			if err := s.SetCrawl(ctx, putCrawl, scoped.Change{Scope: &p.Scope}); err != nil {
				return nil, err
			}
		}
		store = s
	}
	if err := putPages(ctx, store); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.server = &http.Server{Handler: httpserver.Handler(store), ReadHeaderTimeout: 10 * time.Second}
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.server.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// putPages puts the pages of all links.
func putPages(ctx context.Context, store docindex.Putter) error {
	var puts docindex.Puts
	for page := range putURLs / putLinks {
		err := puts.Add(docindex.Put{
			URL: fmt.Appendf(nil, "http://%s/pages/%d", hostName(page%putHosts), page), Crawl: []byte(putCrawl),
			DocID: appendPadded([]byte("p"), page, 7),
		})
		if err != nil {
			return err
		}
	}
	_, err := store.Put(ctx, &puts)
	return err
}

func (p *putServer) close() (err error) {
	if p.server != nil {
		err = errors.Join(err, p.server.Close())
		if ended := <-p.ended; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
	}
	if p.closing != nil {
		err = errors.Join(err, p.closing())
	}
	return err
}
