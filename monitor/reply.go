package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"urlserver/docindex"
)

// Reply is what comes of a message, or of a crawl's end.
type Reply struct {
	Of      int    // the message's place in the batch; of notices -1
	App     string // the application it is for; empty where that is not known
	Body    []byte // JSON
	Refused bool   // the message was no good request
	Quiet   bool   // who sent the message does not wait for it: a crawl that was taken

	told func(context.Context) // nil: nothing depends on who knows of it
}

// Acknowledged says that the reply has got to whoever asked, and will not be made again. Until then, who asks for the same
// stop again is answered as much.
func (r *Reply) Acknowledged(ctx context.Context) {
	if r.told != nil {
		r.told(ctx)
	}
}

type infoApp struct {
	ServerTime    int64               `json:"server_time"`
	UUID          string              `json:"uuid"`
	AppID         string              `json:"appid"`
	SpiderID      string              `json:"spiderid"`
	TotalPending  uint64              `json:"total_pending"`
	TotalDomains  int                 `json:"total_domains"`
	TotalCrawlIDs int                 `json:"total_crawlids"`
	CrawlIDs      map[string]crawlSum `json:"crawlids"`
	Truncated     bool                `json:"crawlids_truncated,omitempty"`
}

type crawlSum struct {
	Total           uint64 `json:"total"`
	LowPriority     int32  `json:"low_priority"`
	HighPriority    int32  `json:"high_priority"`
	Expires         string `json:"expires,omitempty"`
	DistinctDomains int    `json:"distinct_domains"`
	domains
}

type domains struct {
	Domains   map[string]domainSum `json:"domains"`
	Truncated bool                 `json:"domains_truncated,omitempty"`
}

type domainSum struct {
	Total        uint64 `json:"total"`
	LowPriority  int32  `json:"low_priority"`
	HighPriority int32  `json:"high_priority"`
}

type infoCrawl struct {
	ServerTime   int64  `json:"server_time"`
	UUID         string `json:"uuid"`
	AppID        string `json:"appid"`
	SpiderID     string `json:"spiderid"`
	CrawlID      string `json:"crawlid"`
	TotalPending uint64 `json:"total_pending"`
	TotalDomains int    `json:"total_domains"`
	LowPriority  *int32 `json:"low_priority,omitempty"`
	HighPriority *int32 `json:"high_priority,omitempty"`
	Expires      string `json:"expires,omitempty"`
	domains
}

// ended is the reply to stop, and the notices of what has ended by itself.
type ended struct {
	Action       string  `json:"action"`
	TotalPurged  *uint64 `json:"total_purged,omitempty"`
	TotalExpired *uint64 `json:"total_expired,omitempty"`
	TotalDone    *uint64 `json:"total_done,omitempty"`
	UUID         string  `json:"uuid,omitempty"`
	SpiderID     string  `json:"spiderid"`
	AppID        string  `json:"appid"`
	CrawlID      string  `json:"crawlid"`
	ServerTime   int64   `json:"server_time"`
}

// taken is the answer to a crawl, where one is wanted.
type taken struct {
	Action     string `json:"action"`
	Status     string `json:"status"` // new, known or dropped
	SpiderID   string `json:"spiderid"`
	AppID      string `json:"appid"`
	CrawlID    string `json:"crawlid"`
	ServerTime int64  `json:"server_time"`
}

type refused struct {
	Error string `json:"error"`
	UUID  string `json:"uuid,omitempty"`
	AppID string `json:"appid,omitempty"`
}

// encode writes a reply as it goes out.
func encode(v any) []byte {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // strings and numbers always can be
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func appInfo(r *Request, s *docindex.Survey, now int64) infoApp {
	out := infoApp{
		ServerTime: now, UUID: r.UUID, AppID: r.ID.App, SpiderID: r.ID.Spider,
		TotalPending: s.Total, TotalDomains: s.Domains, TotalCrawlIDs: s.Count,
		CrawlIDs: make(map[string]crawlSum, len(s.Crawls)), Truncated: s.Count > len(s.Crawls),
	}
	for i := range s.Crawls {
		c := &s.Crawls[i]
		out.CrawlIDs[c.Crawl] = crawlSum{
			Total: c.Total, LowPriority: c.Low, HighPriority: c.High,
			Expires: expiresText(c.Expires), DistinctDomains: c.Distinct, domains: domainsOf(c),
		}
	}
	return out
}

func crawlInfo(r *Request, c *docindex.CrawlPending, now int64) infoCrawl {
	out := infoCrawl{
		ServerTime: now, UUID: r.UUID, AppID: r.ID.App, SpiderID: r.ID.Spider, CrawlID: r.ID.Crawl,
		TotalPending: c.Total, TotalDomains: c.Distinct, Expires: expiresText(c.Expires), domains: domainsOf(c),
	}
	if c.Total > 0 {
		out.LowPriority, out.HighPriority = &c.Low, &c.High
	}
	return out
}

func domainsOf(c *docindex.CrawlPending) domains {
	d := domains{Domains: make(map[string]domainSum, len(c.Domains)), Truncated: c.Distinct > len(c.Domains)}
	for _, one := range c.Domains {
		d.Domains[one.Domain] = domainSum{Total: one.Total, LowPriority: one.Low, HighPriority: one.High}
	}
	return d
}

func expiresText(at int64) string {
	if at == 0 {
		return ""
	}
	return strconv.FormatInt(at, 10)
}

// Instead is an error in the place of a reply that cannot be sent.
func (r Reply) Instead(why error) Reply {
	var was struct {
		UUID string `json:"uuid"`
	}
	_ = json.Unmarshal(r.Body, &was) // it is our own
	return refusal(&Refusal{UUID: was.UUID, App: r.App, cause: why}, r.Of)
}
