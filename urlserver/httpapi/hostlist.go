package httpapi

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
	"urlserver/urlserver/explain"
)

const (
	defaultHosts = 25
	maxHosts     = 100
	maxHostText  = 255 // bytes of a part of a name that is looked for
)

// hostRow is a host in a list.
type hostRow struct {
	Host         string     `json:"host"`
	Held         int        `json:"held"` // documents that the daemon holds
	InFlight     int        `json:"in_flight"`
	Waiting      uint64     `json:"waiting"` // documents that are not at a spider, of the embedded index, too
	Done         uint64     `json:"done"`    // fetched, well or not, since the daemon has known the host
	Fetched      fetched    `json:"fetched"`
	NextSend     *time.Time `json:"next_send"` // not before
	HeldBy       *string    `json:"held_by"`   // the level that holds it back: site, address or network
	Why          string     `json:"why"`       // what holds that level back; "": nothing does
	BlockedUntil *time.Time `json:"blocked_until"`
	BlockedBy    *string    `json:"blocked_by"` // "operator" or "rule"; null: it is not blocked
	Rule         string     `json:"rule,omitempty"`
	Budget       string     `json:"budget,omitempty"` // that its domain is over, and until when
}

// hostList is the answer of /api/hosts.
type hostList struct {
	Hosts   []hostRow `json:"hosts"`
	Matched int       `json:"matched"` // hosts that belong in the list, those not shown among them
	All     int       `json:"all"`     // hosts that the slots know, and one of the index that is named
}

// hostSorts are the orders of a list, by the parameter sort. The largest is first, but of names.
var hostSorts = map[string]engine.HostOrder{
	"waiting": engine.ByHeld,
	"done":    engine.ByDone,
	"fetch":   engine.ByFetchTime,
	"next":    engine.ByNext,
	"error":   engine.ByErrorTime,
	"host":    engine.ByHostName,
	"2xx":     engine.HostOrder(docindex.Class2xx),
	"3xx":     engine.HostOrder(docindex.Class3xx),
	"4xx":     engine.HostOrder(docindex.Class4xx),
	"5xx":     engine.HostOrder(docindex.Class5xx),
	"none":    engine.HostOrder(docindex.ClassNone),
	"robots":  engine.HostOrder(docindex.ClassRobots),
	"dns":     engine.HostOrder(docindex.ClassDNS),
	"timeout": engine.HostOrder(docindex.ClassTimeout),
}

// hostQuery is what a list is asked for.
type hostQuery struct {
	text, sort, only string
	reverse          bool
	limit            int
}

// serveHosts lists hosts that the slots know, sorted, at most maxHosts of them. One that waits in
// the embedded index only, where a million may, is found by its whole name.
func (s *Server) serveHosts(w http.ResponseWriter, r *http.Request) error {
	q, err := parseHostQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	list, err := s.hostLists.get(r.Context(), q)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func parseHostQuery(raw string) (q hostQuery, err error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return q, badRequestf("query: %v", err)
	}
	q.text, q.only = strings.ToLower(query.Get("text")), query.Get("only")
	q.sort = cmp.Or(query.Get("sort"), "waiting")
	if address, ok := strings.CutPrefix(q.text, "["); ok && address != "" && address != "]" {
		q.text = strings.TrimSuffix(address, "]") // an IPv6 address, which is known without brackets
	}
	if len(q.text) > maxHostText {
		return q, badRequestf("text has %d bytes; at most %d are looked for", len(q.text), maxHostText)
	}
	if _, ok := hostSorts[q.sort]; !ok {
		return q, badRequestf("sort is %.40q; one of %s is wanted", q.sort,
			strings.Join(slices.Sorted(maps.Keys(hostSorts)), ", "))
	}
	if !slices.Contains([]string{"", "failed", "blocked"}, q.only) {
		return q, badRequestf("only is %.40q; failed or blocked is wanted", q.only)
	}
	switch order := query.Get("order"); order {
	case "", "first":
	case "last":
		q.reverse = true
	default:
		return q, badRequestf("order is %.40q; first or last is wanted", order)
	}
	q.limit, err = number(query, "limit", defaultHosts, 1, maxHosts)
	return q, err
}

// listHosts makes a list.
func (s *Server) listHosts(ctx context.Context, q hostQuery) (hostList, error) {
	walk := engine.HostWalk{
		Text: []byte(q.text), Failed: q.only == "failed", Blocked: q.only == "blocked",
		Order: hostSorts[q.sort], Reverse: q.reverse, Limit: q.limit,
	}
	if err := s.daemon.Hosts(ctx, &walk); err != nil {
		return hostList{}, err
	}
	list := hostList{Hosts: make([]hostRow, 0, len(walk.Rows)), Matched: walk.Matched, All: walk.All}
	for i := range walk.Rows {
		list.Hosts = append(list.Hosts, s.hostRowOf(ctx, &walk.Rows[i]))
	}
	if q.sort == "waiting" { // the daemon holds a part only of what waits
		sort.SliceStable(list.Hosts, func(i, j int) bool {
			if q.reverse {
				i, j = j, i
			}
			return list.Hosts[i].Waiting > list.Hosts[j].Waiting
		})
	}
	if q.only == "" && !walk.Exact && s.store != nil {
		s.addIndexed(ctx, &list, q)
	}
	return list, nil
}

// addIndexed adds to a list the host that the query names, if documents of it are in the embedded
// index. It is before all others, as what was looked for. A part of an address may be another address,
// as 127.1 is 127.0.0.1: text that weburl writes otherwise names no host.
func (s *Server) addIndexed(ctx context.Context, list *hostList, q hostQuery) {
	name, err := hostName(q.text)
	if err != nil || name != q.text {
		return
	}
	row := s.hostRowOf(ctx, &engine.HostRow{Name: name})
	if row.Waiting == 0 {
		return
	}
	list.Hosts = slices.Insert(list.Hosts[:min(len(list.Hosts), q.limit-1)], 0, row)
	list.Matched++
	list.All++
}

func (s *Server) hostRowOf(ctx context.Context, r *engine.HostRow) hostRow {
	row := hostRow{
		Host: r.Name, Held: r.Held, InFlight: r.InFlight,
		Waiting: uint64(max(0, r.Held-r.InFlight)), Done: r.Fetched.Done(),
		Fetched: s.fetchedOf(&r.Fetched), NextSend: s.moment(r.Next), HeldBy: heldBy(r.HeldBy), Why: r.Why,
		BlockedUntil: s.moment(r.BlockedUntil), BlockedBy: blockedBy(r.BlockedUntil, r.RuleBlocked),
		Rule: r.Rule,
	}
	if s.store == nil {
		return row
	}
	look, err := s.store.HostStatus(ctx, []byte(r.Name))
	if err != nil {
		return row
	}
	open := look.Scheduled + look.InTransit
	row.Waiting = max(row.Waiting, open-min(open, uint64(r.InFlight)))
	if look.Scheduled > 0 && look.AtSlots.Wait.Rule == docindex.WaitOverBudget {
		row.Budget = explain.Available(&look.AtSlots, "").String()
	}
	if row.BlockedBy == nil && !look.Blocked.IsZero() {
		until := look.Blocked.UTC()
		row.BlockedUntil, row.BlockedBy = &until, blockedBy(1, false)
	}
	return row
}
