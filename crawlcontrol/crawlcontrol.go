// Package crawlcontrol handles requests to crawl a URL, to count what is pending, and to stop a
// crawl. Requests and replies are JSON messages. It also makes notices of crawls that have expired
// or are completed. Package crawlcontrol/kafka and the HTTP API transport the messages.
package crawlcontrol

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

// Crawls executes requests. After an error the caller may repeat the call.
type Crawls interface {
	Submit(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error)
	// Widen changes the scope of a crawl ID. add returns the scope that follows from the present
	// one; known is false if the crawl has none yet.
	Widen(ctx context.Context, crawl string, add func(now scope.Scope, known bool) (scope.Scope, error)) error
	Survey(ctx context.Context, id docindex.CrawlID, domains int) (docindex.PendingReport, error)
	// Stop stops a crawl. purged counts the documents that ended because of it since the last
	// AcknowledgeStop.
	Stop(ctx context.Context, id docindex.CrawlID) (purged uint64, err error)
	// AcknowledgeStop tells that the last reply of Stop has reached its client.
	AcknowledgeStop(ctx context.Context, id docindex.CrawlID)
}

// Handler handles requests. Its methods may be called from several goroutines.
type Handler struct {
	crawls   Crawls
	domains  int // the most that a reply lists
	now      func() time.Time
	counters counters
}

type counters struct{ crawl, info, stop, refused, dropped atomic.Uint64 }

// Counts are the messages since the start, by kind.
type Counts struct {
	Crawl, Info, Stop, Refused uint64
	Dropped                    uint64 // requests in Crawl whose crawl was stopped or has expired
}

// New returns a Handler whose replies list at most so many domains.
func New(crawls Crawls, domains int) *Handler {
	return &Handler{crawls: crawls, domains: domains, now: time.Now}
}

// Counts returns the numbers of messages so far.
func (m *Handler) Counts() Counts {
	f := &m.counters
	return Counts{f.crawl.Load(), f.info.Load(), f.stop.Load(), f.refused.Load(), f.dropped.Load()}
}

// Do handles messages in order. It stores adjacent crawl requests together. After an error, only
// the first done messages are handled and have their replies; the caller tries the rest again. When
// a reply has reached its client, the caller calls [Reply.Acknowledged].
func (m *Handler) Do(ctx context.Context, messages [][]byte) (replies []Reply, done int, err error) {
	var run crawlRun
	// purged counts in the replies to these messages, which are not acknowledged yet
	stopped := map[docindex.CrawlID]uint64{}
	for i, text := range messages {
		r, bad := Parse(text)
		if bad == nil && r.Verb == Crawl {
			run.add(&r)
			if run.puts.Len() < maxRun {
				continue
			}
		}
		if replies, err = m.submit(ctx, &run, done, replies); err != nil {
			return replies, done, err
		}
		if done = i; bad == nil && r.Verb == Crawl {
			done++
			continue
		}
		reply, err := m.answer(ctx, &r, bad, stopped)
		if err != nil {
			return replies, done, err
		}
		reply.Of = i
		replies = append(replies, reply)
		done++
	}
	replies, err = m.submit(ctx, &run, done, replies)
	if err != nil {
		return replies, done, err
	}
	return replies, len(messages), nil
}

// maxRun is how many crawl requests are stored at once.
const maxRun = 1000

// crawlRun is a run of adjacent crawl requests.
type crawlRun struct {
	puts   docindex.Puts
	ids    []docindex.CrawlID
	bounds []bounds
}

func (c *crawlRun) add(r *Request) {
	c.puts.AddFrom(&r.Put, 0)
	c.ids = append(c.ids, r.ID)
	c.bounds = append(c.bounds, r.bounds)
}

// submit stores a run of crawl requests and empties it. from is the index of the run's first
// message. It refuses a request if the index has no room for the scope of its crawl, or the scope
// has none for the members that the request adds. Otherwise the requests behind it would wait for
// ever.
func (m *Handler) submit(ctx context.Context, run *crawlRun, from int, replies []Reply) ([]Reply, error) {
	if len(run.ids) == 0 {
		return replies, nil
	}
	in, out, err := m.widen(ctx, run)
	if err != nil {
		return replies, err
	}
	var puts docindex.Puts
	for _, i := range in {
		puts.AddFrom(&run.puts, i)
	}
	res, err := m.crawls.Submit(ctx, &puts)
	if err != nil {
		return replies, fmt.Errorf("requests to crawl are not stored: %w", err)
	}
	now := m.now().Unix()
	for j, i := range in {
		id, verdict := run.ids[i], puts.Verdict(j)
		if verdict == docindex.Refused {
			continue
		}
		if verdict == docindex.Dropped {
			m.counters.dropped.Add(1)
		}
		body := encode(taken{
			Action: "crawl", Status: statusWords[verdict],
			SpiderID: id.Spider, AppID: id.App, CrawlID: id.Crawl, ServerTime: now,
		})
		replies = append(replies, Reply{Of: from + i, App: id.App, Body: body, NoReply: true})
	}
	refuse := func(i int, why error) {
		m.counters.refused.Add(1)
		replies = append(replies, refusal(&Refusal{App: run.ids[i].App, cause: why}, from+i))
	}
	for _, r := range res.Refused {
		refuse(in[r.Index], r.Err)
	}
	for _, r := range out {
		refuse(r.Index, r.Err)
	}
	m.counters.crawl.Add(uint64(len(in) - len(res.Refused)))
	*run = crawlRun{}
	return replies, nil
}

// widen adds the bounds of a run's requests to the scopes of their crawls. out has the requests
// that are refused, and in the others, by their places in the run.
func (m *Handler) widen(ctx context.Context, run *crawlRun) (in []int, out []docindex.Refusal, err error) {
	for i, id := range run.ids {
		err := m.crawls.Widen(ctx, id.Crawl, func(now scope.Scope, known bool) (scope.Scope, error) {
			return run.bounds[i].addTo(now, known), nil
		})
		switch fault, bad := errors.AsType[*scope.Fault](err); {
		case err == nil:
			in = append(in, i)
		case bad:
			out = append(out, docindex.Refusal{Index: i, Err: fmt.Errorf(
				"crawl: the scope of the crawl has no room for what this request adds: %w", named(fault))})
		case errors.Is(err, docindex.ErrTooManyCrawls):
			out = append(out, docindex.Refusal{Index: i, Err: err})
		default:
			return nil, nil, fmt.Errorf("scope of crawl %.100q: %w", id.Crawl, err)
		}
	}
	return in, out, nil
}

var statusWords = map[docindex.Verdict]string{
	docindex.New: "new", docindex.Same: "known", docindex.Changed: "known", docindex.Dropped: "dropped",
	docindex.Outside: "out_of_scope",
}

// answer handles a message that is not a crawl request.
func (m *Handler) answer(ctx context.Context, r *Request, bad error,
	stopped map[docindex.CrawlID]uint64) (Reply, error) {
	if why, ok := errors.AsType[*Refusal](bad); ok {
		m.counters.refused.Add(1)
		return refusal(why, 0), nil
	}
	if r.Verb == Stop {
		return m.stop(ctx, r, stopped)
	}
	s, err := m.crawls.Survey(ctx, r.ID, m.domains)
	if err != nil {
		return Reply{}, fmt.Errorf("info about %+v: %w", r.ID, err)
	}
	m.counters.info.Add(1)
	now := m.now().Unix()
	if r.ID.Crawl == "" {
		return Reply{App: r.ID.App, Body: appInfo(r, &s, now)}, nil
	}
	return Reply{App: r.ID.App, Body: crawlInfo(r, &s.Crawls[0], now)}, nil
}

func (m *Handler) stop(ctx context.Context, r *Request, stopped map[docindex.CrawlID]uint64) (Reply, error) {
	purged, err := m.crawls.Stop(ctx, r.ID)
	if errors.Is(err, docindex.ErrTooManyStopped) {
		m.counters.refused.Add(1)
		return refusal(&Refusal{UUID: r.UUID, App: r.ID.App, cause: err}, 0), nil
	}
	if err != nil {
		return Reply{}, fmt.Errorf("stop %+v: %w", r.ID, err)
	}
	m.counters.stop.Add(1)
	purged -= min(purged, stopped[r.ID])
	stopped[r.ID] += purged
	told := func(ctx context.Context) { m.crawls.AcknowledgeStop(ctx, r.ID) }
	return Reply{App: r.ID.App, told: told, Body: encode(ended{
		Action: wordStop, TotalPurged: &purged, UUID: r.UUID,
		SpiderID: r.ID.Spider, AppID: r.ID.App, CrawlID: r.ID.Crawl, ServerTime: m.now().Unix(),
	})}, nil
}

func refusal(r *Refusal, of int) Reply {
	return Reply{Of: of, App: r.App, Refused: true,
		Body: encode(refused{Error: r.Error(), UUID: r.UUID, AppID: r.App})}
}

// ExpiredNotice returns the notice of a crawl that has expired.
func ExpiredNotice(id docindex.CrawlID, expired uint64, now time.Time) Reply {
	return Reply{Of: -1, App: id.App, Body: encode(ended{
		Action: "expired", TotalExpired: &expired,
		SpiderID: id.Spider, AppID: id.App, CrawlID: id.Crawl, ServerTime: now.Unix(),
	})}
}

// CompletedNotice returns the notice of a crawl that has no open documents left.
func CompletedNotice(id docindex.CrawlID, done uint64, now time.Time) Reply {
	return Reply{Of: -1, App: id.App, Body: encode(ended{
		Action: "completed", TotalDone: &done,
		SpiderID: id.Spider, AppID: id.App, CrawlID: id.Crawl, ServerTime: now.Unix(),
	})}
}
