package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"urlserver/docindex"
)

const (
	crawlRows    = 50     // in a list
	crawlBytes   = 10_000 // of its JSON: a page asks each five seconds, and has 2 KB a second for it
	maxCrawlText = 256    // bytes of a name that is looked for
	maxLooks     = 16     // lists kept

	// A list is shown again for so long at least, and for so many times what it took to make: however many look at it, it
	// takes a hundredth of a core.
	looksFresh   = 2 * time.Second
	looksCheaply = 100
)

// crawlRow is a crawl for people.
type crawlRow struct {
	SpiderID  string     `json:"spiderid"`
	AppID     string     `json:"appid"`
	CrawlID   string     `json:"crawlid"`
	State     string     `json:"state"` // running, ended, stopped or expired
	Scheduled uint64     `json:"scheduled"`
	AtSlots   uint64     `json:"at_slots"`   // out at the slots and their spiders
	Clients   uint64     `json:"at_clients"` // out at URL Frontier clients
	Done      uint64     `json:"done"`
	Purged    uint64     `json:"purged"`
	Dropped   uint64     `json:"dropped"`
	Expires   *time.Time `json:"expires"`
}

// crawlList is the answer of /api/crawls.
type crawlList struct {
	Crawls []crawlRow `json:"crawls"`
	All    int        `json:"all"`
	Note   string     `json:"note,omitempty"` // why there can be none
}

const noCrawls = "This daemon lists no crawls: its doc index is elsewhere, or does not keep them in a way that it can list."

// serveCrawls lists crawls, those with most open documents first.
func (s *Server) serveCrawls(w http.ResponseWriter, r *http.Request) error {
	if s.crawls == nil {
		answer(w, http.StatusOK, crawlList{Crawls: []crawlRow{}, Note: noCrawls})
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badf("query: %v", err)
	}
	text := query.Get("text")
	if len(text) > maxCrawlText {
		return badf("text has %d bytes; at most %d are looked for", len(text), maxCrawlText)
	}
	list, err := s.crawls.list(r.Context(), text)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, list)
	return nil
}

// crawlLooks lists crawls for all who look. Safe for concurrent use.
type crawlLooks struct {
	lister docindex.CrawlLister

	turn  chan struct{} // holds one while somebody is at what is below; while a list is made, too, so that it is made once
	looks map[string]crawlLook
}

func newCrawlLooks(lister docindex.CrawlLister) *crawlLooks {
	return &crawlLooks{lister: lister, turn: make(chan struct{}, 1), looks: map[string]crawlLook{}}
}

type crawlLook struct {
	list  crawlList
	err   error
	until time.Time // it is fresh
}

// list is the list for a text, as it was a moment ago.
func (c *crawlLooks) list(ctx context.Context, text string) (crawlList, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return crawlList{}, ctx.Err()
	}
	defer func() { <-c.turn }()
	began := time.Now()
	if look, ok := c.looks[text]; ok && began.Before(look.until) {
		return look.list, look.err
	}
	some, all, err := c.lister.ListCrawls(ctx, text, crawlRows)
	if ctx.Err() != nil {
		return crawlList{}, ctx.Err()
	}
	look := crawlLook{list: crawlList{Crawls: crawlRowsOf(some), All: all}, err: err}
	now := time.Now()
	fresh := looksFresh
	if err == nil {
		fresh = max(fresh, looksCheaply*now.Sub(began))
	}
	look.until = now.Add(fresh)
	c.makeRoom(now)
	c.looks[text] = look
	return look.list, look.err
}

// makeRoom forgets what is not fresh, and one list where all are.
func (c *crawlLooks) makeRoom(now time.Time) {
	for text, look := range c.looks {
		if now.After(look.until) {
			delete(c.looks, text)
		}
	}
	for text := range c.looks {
		if len(c.looks) < maxLooks {
			return
		}
		delete(c.looks, text)
	}
}

// crawlRowsOf are as many rows as there is room for.
func crawlRowsOf(some []docindex.CrawlState) []crawlRow {
	rows, left := []crawlRow{}, crawlBytes
	for i := range some {
		row := crawlRowOf(&some[i])
		text, _ := json.Marshal(row) // strings, numbers and times always can be
		if left -= len(text) + len(","); left < 0 {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

func crawlRowOf(c *docindex.CrawlState) crawlRow {
	row := crawlRow{
		SpiderID: c.Spider, AppID: c.App, CrawlID: c.Crawl, State: "running",
		Scheduled: c.Scheduled, AtSlots: c.AtSlots, Clients: c.AtClients, Done: c.Done, Purged: c.Purged, Dropped: c.Dropped,
	}
	switch {
	case c.Refused:
		row.State = docindex.Kind(c.Why).String()
	case c.Scheduled+c.AtSlots+c.AtClients == 0:
		row.State = "ended"
	}
	if c.Expires != 0 {
		at := time.Unix(c.Expires, 0).UTC()
		row.Expires = &at
	}
	return row
}
