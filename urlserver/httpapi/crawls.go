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
	crawlBytes   = 10_000 // of its JSON: 2 KB a second for a page that asks every five seconds
	maxCrawlText = 256    // bytes of the parameter text

	// lastExpiry is the last second of the year 9999, after which JSON has no dates. Metadata may name any number.
	lastExpiry = 253402300799
)

// crawlRow is a crawl in a list.
type crawlRow struct {
	SpiderID  string     `json:"spiderid"`
	AppID     string     `json:"appid"`
	CrawlID   string     `json:"crawlid"`
	State     string     `json:"state"` // running, ended, stopped or expired
	Scheduled uint64     `json:"scheduled"`
	AtSlots   uint64     `json:"at_slots"`   // given to the slots and their spiders
	Clients   uint64     `json:"at_clients"` // given to URL Frontier clients
	Done      uint64     `json:"done"`
	Purged    uint64     `json:"purged"`
	Dropped   uint64     `json:"dropped"`
	Expires   *time.Time `json:"expires"`
}

// crawlList is the reply of /api/crawls.
type crawlList struct {
	Crawls []crawlRow `json:"crawls"`
	All    int        `json:"all"`
	Note   string     `json:"note,omitempty"` // why there is no list
}

const noCrawls = "This daemon lists no crawls: its doc index is elsewhere, or does not keep them in a " +
	"way that it can list."

// serveCrawls lists crawls, those with most pending documents first.
func (s *Server) serveCrawls(w http.ResponseWriter, r *http.Request) error {
	if s.crawls == nil {
		writeJSON(w, http.StatusOK, crawlList{Crawls: []crawlRow{}, Note: noCrawls})
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequestf("query: %v", err)
	}
	text := query.Get("text")
	if len(text) > maxCrawlText {
		return badRequestf("text has %d bytes; at most %d are looked for", len(text), maxCrawlText)
	}
	list, err := s.crawls.get(r.Context(), text)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// newCrawlLists returns the lists of crawls by a part of their names, each shared by all who ask.
func newCrawlLists(lister docindex.CrawlLister) *kept[string, crawlList] {
	return newKept(func(ctx context.Context, text string) (crawlList, error) {
		some, all, err := lister.ListCrawls(ctx, text, crawlRows)
		return crawlList{Crawls: crawlRowsOf(some, text), All: all}, err
	})
}

// crawlRowsOf returns the rows that crawlBytes allows. A row that is longer than what is left of them is left
// out, and shorter ones behind it are not. The crawls whose ID is the text that somebody looks for are always
// there.
func crawlRowsOf(some []docindex.CrawlState, text string) []crawlRow {
	rows, left := []crawlRow{}, crawlBytes
	for i := range some {
		row := crawlRowOf(&some[i])
		line, _ := json.Marshal(row) // strings, numbers and times always can be
		if n := len(line) + len(","); n <= left || row.CrawlID == text {
			left -= n
			rows = append(rows, row)
		}
	}
	return rows
}

func crawlRowOf(c *docindex.CrawlState) crawlRow {
	row := crawlRow{
		SpiderID: c.Spider, AppID: c.App, CrawlID: c.Crawl, State: "running",
		Scheduled: c.Scheduled, AtSlots: c.AtSlots, Clients: c.AtClients, Done: c.Done, Purged: c.Purged,
		Dropped: c.Dropped,
	}
	switch {
	case c.Stopped:
		row.State = c.Why.String()
	case c.Scheduled+c.AtSlots+c.AtClients == 0:
		row.State = "ended"
	}
	if c.Expires != 0 {
		at := time.Unix(min(c.Expires, lastExpiry), 0).UTC()
		row.Expires = &at
	}
	return row
}
