package httpapi

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"urlserver/hostslots"
	"urlserver/internal/weburl"
	"urlserver/urlserver/engine"
	"urlserver/urlserver/explain"
)

const (
	defaultSlots = 100
	maxSlots     = 1000
	slotHosts    = 20 // names shown of a slot
)

// host is the answer of /api/hosts/{host}. Times are RFC 3339 or null.
type host struct {
	Host         string     `json:"host"`
	Group        *string    `json:"group"` // its group's name, itself on a shared network, or its IP; null: not resolved
	Slot         *int       `json:"slot"`  // null: in none
	Queued       int        `json:"queued"`
	InFlight     int        `json:"in_flight"`
	LastSend     *time.Time `json:"last_send"`
	NextSend     *time.Time `json:"next_send"` // not before
	Gap          float64    `json:"gap_s"`     // the longer one of its site's and its address'
	Site         level      `json:"site"`
	Address      level      `json:"address"` // or the shared network's that it is on
	BlockedUntil *time.Time `json:"blocked_until"`
	BlockedBy    *string    `json:"blocked_by"` // "operator" or "rule"; null: it is not blocked
	Fetched      fetched    `json:"fetched"`
	lastFetch               // once more, beside the counts
	Robots       robotsTxt  `json:"robots"`
	Sitemaps     []string   `json:"sitemaps"`       // that its robots.txt names
	Rule         *string    `json:"rule,omitempty"` // the [[rules]] entry for it; absent: none
	Why          string     `json:"why"`
}

// level is the pace of a site, an address or a shared network.
type level struct {
	Name     string     `json:"name"` // "": there is none, as the host is not resolved
	Gap      float64    `json:"gap_s"`
	Open     int        `json:"open"`
	MostOpen int        `json:"most_open"`
	LastSend *time.Time `json:"last_send"`
	NextSend *time.Time `json:"next_send"` // not before
	Backoff  float64    `json:"backoff_s"` // 0: it does not back off
	Why      string     `json:"why"`       // what holds it back; "": nothing does
}

type robotsTxt struct {
	State      string     `json:"state"` // as robots.Entry has it, or "disabled"
	FetchedAt  *time.Time `json:"fetched_at"`
	CrawlDelay float64    `json:"crawl_delay_s"`
}

func (s *Server) serveHost(w http.ResponseWriter, r *http.Request) error {
	name, err := hostName(r.PathValue("host"))
	if err != nil {
		return err
	}
	x, ok, err := s.daemon.Explain(r.Context(), name)
	if err != nil {
		return err
	}
	if !ok {
		return httpError{http.StatusNotFound,
			"host " + name + " is not known: nothing was offered for it, or it was forgotten since"}
	}
	writeJSON(w, http.StatusOK, s.hostOf(name, x))
	return nil
}

func (s *Server) hostOf(name string, x engine.Explanation) host {
	h := host{
		Host: name, Queued: x.Queued, InFlight: x.InFlight, Gap: seconds(max(x.Site.Gap, x.Address.Gap)), Why: x.Why,
		Site: s.levelOf(&x.Site, x.SiteWhy), Address: s.levelOf(&x.Address, x.AddressWhy),
		LastSend: s.moment(x.Site.Last), NextSend: s.moment(x.Next), BlockedUntil: s.moment(x.Blocked),
		BlockedBy: blockedBy(x.Blocked, x.Limits.Block), Fetched: s.fetchedOf(&x.Fetched), Robots: s.robotsOf(x),
		Sitemaps: s.sitemapsOf(x),
	}
	h.lastFetch = h.Fetched.lastFetch
	if x.Addr.IsValid() || x.Address.Level == hostslots.NetworkLevel {
		group := x.Addr.String()
		if x.Address.Level == hostslots.NetworkLevel {
			group = name
		}
		group = cmp.Or(x.Group, group)
		h.Group = &group
	}
	if x.Rule != "" {
		h.Rule = &x.Rule
	}
	if x.Slot >= 0 {
		h.Slot = &x.Slot
	}
	return h
}

func (s *Server) levelOf(l *hostslots.LevelView, why []explain.Reason) level {
	return level{
		Name: l.Name, Gap: seconds(l.Gap), Open: l.Open, MostOpen: l.MostOpen, LastSend: s.moment(l.Last),
		NextSend: s.moment(l.Next), Backoff: seconds(l.Backoff), Why: explain.Text(why),
	}
}

func (s *Server) robotsOf(x engine.Explanation) robotsTxt {
	if !s.daemon.Settings().Robots.Enabled {
		return robotsTxt{State: "disabled"}
	}
	t := robotsTxt{State: x.Robots.State(), CrawlDelay: seconds(x.Robots.CrawlDelay())}
	if at, ok := x.Robots.FetchedAt(); ok {
		date := s.date(at)
		t.FetchedAt = &date
	}
	return t
}

// sitemapsOf returns the sitemaps that the host's robots.txt names. It is never nil.
func (s *Server) sitemapsOf(x engine.Explanation) []string {
	if !s.daemon.Settings().Robots.Enabled || x.Sitemaps == nil {
		return []string{}
	}
	return x.Sitemaps
}

// heldBy names a level; nil: none.
func heldBy(level hostslots.Level) *string {
	if level == hostslots.NoLevel {
		return nil
	}
	name := level.String()
	return &name
}

// moment converts a time of the daemon's clock to a date; 0 is none.
func (s *Server) moment(t time.Duration) *time.Time {
	if t == 0 {
		return nil
	}
	date := s.date(t)
	return &date
}

func (s *Server) date(t time.Duration) time.Time {
	return s.daemon.Date(t).UTC().Truncate(time.Millisecond)
}

// hostName returns the host in the form that weburl writes. IPv6 addresses may have brackets.
func hostName(text string) (string, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
		text = "[" + text + "]"
	}
	bracketed := strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]")
	u, err := weburl.Parse([]byte("http://" + text + "/"))
	if err != nil || strings.ContainsFunc(text, isNoHost) || strings.Contains(text, ":") && !bracketed {
		return "", badRequestf("%.100q is no host: a name or an IP address is wanted, without port or path", text)
	}
	return string(u.Host()), nil
}

// isNoHost reports whether c would end a URL's host or be dropped from it.
func isNoHost(c rune) bool {
	return c <= ' ' || c == 0x7f || strings.ContainsRune(`/\?#@`, c)
}

// slotPage is the answer of /api/slots.
type slotPage struct {
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
	Slots  []slot `json:"slots"`
}

// slot is a host slot in use.
type slot struct {
	Slot     uint32     `json:"slot"`
	Group    string     `json:"group"`
	Hosts    []string   `json:"hosts"` // some of them
	Queued   int        `json:"queued"`
	Active   int        `json:"active"`
	NextSend *time.Time `json:"next_send"` // not before
	Gap      float64    `json:"gap_s"`
	HeldBy   *string    `json:"held_by"` // as of a hostRow
}

func (s *Server) serveSlots(w http.ResponseWriter, r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequestf("query: %v", err)
	}
	offset, err := number(query, "offset", 0, 0, 1<<31-1)
	if err != nil {
		return err
	}
	limit, err := number(query, "limit", defaultSlots, 1, maxSlots)
	if err != nil {
		return err
	}
	views, err := s.daemon.Slots(r.Context(), offset, limit, slotHosts)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, slotPage{Offset: offset, Limit: limit, Slots: s.slotsOf(views)})
	return nil
}

func (s *Server) slotsOf(views []hostslots.SlotView) []slot {
	slots := make([]slot, 0, len(views))
	for _, v := range views {
		slots = append(slots, slot{
			Slot: v.Slot, Group: v.Group, Hosts: append([]string{}, v.Hosts...),
			Queued: v.Queued, Active: v.Active, NextSend: s.moment(v.Next), Gap: seconds(v.Gap),
			HeldBy: heldBy(v.HeldBy),
		})
	}
	return slots
}

// number returns a parameter from least to most, or usual where it is absent.
func number(query url.Values, name string, usual, least, most int) (int, error) {
	if !query.Has(name) {
		return usual, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < least || n > most {
		return 0, badRequestf("%s is %.40q; a whole number from %d to %d is wanted", name, query.Get(name), least, most)
	}
	return n, nil
}
