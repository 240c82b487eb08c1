// Package crawlcontrol is crawl control: requests to crawl, to count what is pending, and to stop, as JSON messages that are
// answered with JSON; and notices of crawls that have expired or are completed. It knows nothing of how messages
// come and go: package crawlcontrol/kafka and the HTTP API do.
package crawlcontrol

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"urlserver/docindex"
)

// Crawls is what requests are done with. An error means that the same may be asked again.
type Crawls interface {
	Submit(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error)
	Survey(ctx context.Context, id docindex.CrawlID, domains int) (docindex.PendingReport, error)
	// Stop answers how many documents ended because of the stop, of which nobody was Told.
	Stop(ctx context.Context, id docindex.CrawlID) (purged uint64, err error)
	// Told says that whoever asked for a stop has what Stop answered last.
	Told(ctx context.Context, id docindex.CrawlID)
}

// Monitor does requests. Its methods may be called from several goroutines.
type Monitor struct {
	crawls  Crawls
	domains int // that a reply lists
	now     func() time.Time
	figures figures
}

type figures struct{ crawl, info, stop, refused, dropped atomic.Uint64 }

// Figures count messages since the start, by what they were.
type Figures struct {
	Crawl, Info, Stop, Refused uint64
	Dropped                    uint64 // of Crawl: for crawls that were stopped or have expired
}

// New returns a Monitor whose replies list at most so many domains.
func New(crawls Crawls, domains int) *Monitor {
	return &Monitor{crawls: crawls, domains: domains, now: time.Now}
}

// Figures tells what it has done.
func (m *Monitor) Figures() Figures {
	f := &m.figures
	return Figures{f.crawl.Load(), f.info.Load(), f.stop.Load(), f.refused.Load(), f.dropped.Load()}
}

// Do does messages in their order; crawls that stand side by side are stored together. With an error, only the
// first done of them are done and have their replies: try the rest again. Once a reply has got there it is to be Acknowledged.
func (m *Monitor) Do(ctx context.Context, messages [][]byte) (replies []Reply, done int, err error) {
	var run crawlRun
	stopped := map[docindex.CrawlID]uint64{} // by these messages, and what was answered: nobody is told of it yet
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

// maxRun is how many crawls are stored at once.
const maxRun = 1000

// crawlRun is crawl requests side by side.
type crawlRun struct {
	puts docindex.Puts
	ids  []docindex.CrawlID
}

func (c *crawlRun) add(r *Request) {
	c.puts.AddFrom(&r.Put, 0)
	c.ids = append(c.ids, r.ID)
}

// submit stores a run of crawls, of which the first was message from, and empties it.
func (m *Monitor) submit(ctx context.Context, run *crawlRun, from int, replies []Reply) ([]Reply, error) {
	if len(run.ids) == 0 {
		return replies, nil
	}
	res, err := m.crawls.Submit(ctx, &run.puts)
	if err != nil {
		return replies, fmt.Errorf("store %d crawl requests: %w", len(run.ids), err)
	}
	now := m.now().Unix()
	for i, id := range run.ids {
		verdict := run.puts.Verdict(i)
		if verdict == docindex.Refused {
			continue
		}
		if verdict == docindex.Dropped {
			m.figures.dropped.Add(1)
		}
		body := encode(taken{
			Action: "crawl", Status: statusWords[verdict],
			SpiderID: id.Spider, AppID: id.App, CrawlID: id.Crawl, ServerTime: now,
		})
		replies = append(replies, Reply{Of: from + i, App: id.App, Body: body, Quiet: true})
	}
	for _, r := range res.Refused {
		m.figures.refused.Add(1)
		replies = append(replies, refusal(&Refusal{App: run.ids[r.Index].App, cause: r.Err}, from+r.Index))
	}
	m.figures.crawl.Add(uint64(len(run.ids) - len(res.Refused)))
	*run = crawlRun{}
	return replies, nil
}

var statusWords = map[docindex.Verdict]string{
	docindex.New: "new", docindex.Same: "known", docindex.Changed: "known", docindex.Dropped: "dropped",
}

// answer does one message that is no crawl.
func (m *Monitor) answer(ctx context.Context, r *Request, bad error, stopped map[docindex.CrawlID]uint64) (Reply, error) {
	if why, ok := errors.AsType[*Refusal](bad); ok {
		m.figures.refused.Add(1)
		return refusal(why, 0), nil
	}
	if r.Verb == Stop {
		return m.stop(ctx, r, stopped)
	}
	s, err := m.crawls.Survey(ctx, r.ID, m.domains)
	if err != nil {
		return Reply{}, fmt.Errorf("info about %+v: %w", r.ID, err)
	}
	m.figures.info.Add(1)
	now := m.now().Unix()
	if r.ID.Crawl == "" {
		return Reply{App: r.ID.App, Body: appInfo(r, &s, now)}, nil
	}
	return Reply{App: r.ID.App, Body: crawlInfo(r, &s.Crawls[0], now)}, nil
}

func (m *Monitor) stop(ctx context.Context, r *Request, stopped map[docindex.CrawlID]uint64) (Reply, error) {
	purged, err := m.crawls.Stop(ctx, r.ID)
	if errors.Is(err, docindex.ErrTooManyStopped) {
		m.figures.refused.Add(1)
		return refusal(&Refusal{UUID: r.UUID, App: r.ID.App, cause: err}, 0), nil
	}
	if err != nil {
		return Reply{}, fmt.Errorf("stop %+v: %w", r.ID, err)
	}
	m.figures.stop.Add(1)
	purged -= min(purged, stopped[r.ID])
	stopped[r.ID] += purged
	told := func(ctx context.Context) { m.crawls.Told(ctx, r.ID) }
	return Reply{App: r.ID.App, told: told, Body: encode(ended{
		Action: wordStop, TotalPurged: &purged, UUID: r.UUID,
		SpiderID: r.ID.Spider, AppID: r.ID.App, CrawlID: r.ID.Crawl, ServerTime: m.now().Unix(),
	})}, nil
}

func refusal(r *Refusal, of int) Reply {
	return Reply{Of: of, App: r.App, Refused: true, Body: encode(refused{Error: r.Error(), UUID: r.UUID, AppID: r.App})}
}

// ExpiredNotice is the notice of a crawl that has expired.
func ExpiredNotice(id docindex.CrawlID, expired uint64, now time.Time) Reply {
	return Reply{Of: -1, App: id.App, Body: encode(ended{
		Action: "expired", TotalExpired: &expired,
		SpiderID: id.Spider, AppID: id.App, CrawlID: id.Crawl, ServerTime: now.Unix(),
	})}
}

// CompletedNotice is the notice of a crawl of which nothing is left.
func CompletedNotice(id docindex.CrawlID, done uint64, now time.Time) Reply {
	return Reply{Of: -1, App: id.App, Body: encode(ended{
		Action: "completed", TotalDone: &done,
		SpiderID: id.Spider, AppID: id.App, CrawlID: id.Crawl, ServerTime: now.Unix(),
	})}
}
