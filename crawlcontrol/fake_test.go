package crawlcontrol_test

import (
	"context"
	"errors"
	"strings"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

// fakeCrawls answers requests from what a test laid down.
type fakeCrawls struct {
	surveys  map[docindex.CrawlID]docindex.PendingReport
	purged   uint64
	stopped  []docindex.CrawlID
	told     []docindex.CrawlID
	urls     []string
	runs     int // calls of Submit
	domains  int // asked for last
	failures int // calls that fail before one works
	full     bool
	scopes   map[string]scope.Scope
}

var errStore = errors.New("store is away")

func (f *fakeCrawls) fail() error {
	if f.failures == 0 {
		return nil
	}
	f.failures--
	return errStore
}

func (f *fakeCrawls) Submit(_ context.Context, p *docindex.Puts) (res docindex.PutResult, err error) {
	if err := f.fail(); err != nil {
		return res, err
	}
	f.runs++
	for i := range p.Len() {
		put, _ := p.At(i)
		url := string(put.URL)
		switch {
		case strings.Contains(url, "unstorable"):
			p.SetVerdict(i, docindex.Refused)
			res.Refused = append(res.Refused, docindex.Refusal{Index: i, Err: errors.New("no room")})
			continue
		case strings.Contains(url, "stopped"):
			p.SetVerdict(i, docindex.Dropped)
			continue
		case strings.Contains(url, "known"):
			p.SetVerdict(i, docindex.Same)
		default:
			p.SetVerdict(i, docindex.New)
		}
		f.urls = append(f.urls, url)
	}
	return res, nil
}

func (f *fakeCrawls) Widen(_ context.Context, crawl string,
	add func(scope.Scope, bool) (scope.Scope, error)) error {
	now, known := f.scopes[crawl]
	if f.full && !known {
		return docindex.ErrTooManyCrawls
	}
	to, err := add(now, known)
	if f.scopes == nil {
		f.scopes = map[string]scope.Scope{}
	}
	f.scopes[crawl] = to
	return err
}

func (f *fakeCrawls) Survey(_ context.Context, id docindex.CrawlID,
	domains int) (docindex.PendingReport, error) {
	f.domains = domains
	if err := f.fail(); err != nil {
		return docindex.PendingReport{}, err
	}
	if s, ok := f.surveys[id]; ok {
		return s, nil
	}
	if id.Crawl == "" {
		return docindex.PendingReport{}, nil
	}
	return docindex.PendingReport{Crawls: []docindex.CrawlPending{{Crawl: id.Crawl}}}, nil
}

func (f *fakeCrawls) Stop(_ context.Context, id docindex.CrawlID) (uint64, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	if f.full {
		return 0, docindex.ErrTooManyStopped
	}
	f.stopped = append(f.stopped, id)
	return f.purged, nil
}

func (f *fakeCrawls) AcknowledgeStop(_ context.Context, id docindex.CrawlID) {
	f.told = append(f.told, id)
}

// failAt is a fakeCrawls whose given call, counted from 0, fails.
type failAt struct {
	fakeCrawls
	step int
}

func (f *failAt) next() {
	f.failures = 0
	if f.step == 0 {
		f.failures = 1
	}
	f.step--
}

func (f *failAt) Submit(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	f.next()
	return f.fakeCrawls.Submit(ctx, p)
}

func (f *failAt) Survey(ctx context.Context, id docindex.CrawlID,
	domains int) (docindex.PendingReport, error) {
	f.next()
	return f.fakeCrawls.Survey(ctx, id, domains)
}

func (f *failAt) Stop(ctx context.Context, id docindex.CrawlID) (uint64, error) {
	f.next()
	return f.fakeCrawls.Stop(ctx, id)
}
