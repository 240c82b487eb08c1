package crawlcontrol

import (
	"cmp"
	"slices"
	"strconv"

	"urlserver/docindex"
)

// appInfo returns the reply to an info request for an application. The reply may list thousands of
// crawls and domains. It is built without encoding/json, whose maps and reflection take longer than
// the count itself (BenchmarkInfo).
func appInfo(r *Request, s *docindex.PendingReport, now int64) []byte {
	room := 512
	for i := range s.Crawls {
		room += 192 + roomOfDomain*len(s.Crawls[i].Domains)
	}
	t := about(r, now, room)
	t = t.number("total_pending", s.Total).number("total_domains",
		uint64(s.Domains)).number("total_crawlids", uint64(s.Count))
	t = t.open("crawlids")
	for _, c := range byKey(s.Crawls, func(c *docindex.CrawlPending) string { return c.Crawl }) {
		t = t.open(c.Crawl).number("total", c.Total).span(&c.Pending).expires(c.Expires)
		t = t.number("distinct_domains", uint64(c.Distinct)).domains(c).end()
	}
	t = t.end()
	if s.Count > len(s.Crawls) {
		t = t.truth("crawlids_truncated")
	}
	return t.end()
}

// crawlInfo returns the reply to an info request for a crawl.
func crawlInfo(r *Request, c *docindex.CrawlPending, now int64) []byte {
	t := about(r, now, 512+roomOfDomain*len(c.Domains)).text("crawlid", r.ID.Crawl)
	t = t.number("total_pending", c.Total).number("total_domains", uint64(c.Distinct))
	if c.Total > 0 {
		t = t.span(&c.Pending)
	}
	return t.expires(c.Expires).domains(c).end()
}

const roomOfDomain = 96 // bytes of a domain in a reply, about

// about returns the start of an info reply, with capacity for so many bytes.
func about(r *Request, now int64, room int) jsonBuf {
	return append(make(jsonBuf, 0, room), '{').integer("server_time", now).text("uuid",
		r.UUID).text("appid", r.ID.App).text("spiderid", r.ID.Spider)
}

// byKey returns pointers to the list's items in the order of their keys. The list itself does not
// change.
func byKey[T any](list []T, key func(*T) string) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	slices.SortFunc(out, func(a, b *T) int { return cmp.Compare(key(a), key(b)) })
	return out
}

// jsonBuf is JSON text with an open object. Its methods append a field each.
type jsonBuf []byte

func (w jsonBuf) key(name string) jsonBuf {
	if w[len(w)-1] != '{' {
		w = append(w, ',')
	}
	return append(appendText(w, name), ':')
}

func (w jsonBuf) open(name string) jsonBuf { return append(w.key(name), '{') }

func (w jsonBuf) end() jsonBuf { return append(w, '}') }

func (w jsonBuf) text(name, value string) jsonBuf { return appendText(w.key(name), value) }

func (w jsonBuf) number(name string, n uint64) jsonBuf { return strconv.AppendUint(w.key(name), n, 10) }

func (w jsonBuf) integer(name string, n int64) jsonBuf { return strconv.AppendInt(w.key(name), n, 10) }

func (w jsonBuf) truth(name string) jsonBuf { return append(w.key(name), "true"...) }

func (w jsonBuf) span(p *docindex.Pending) jsonBuf {
	return w.integer("low_priority", int64(p.Low)).integer("high_priority", int64(p.High))
}

func (w jsonBuf) expires(at int64) jsonBuf {
	if at == 0 {
		return w
	}
	return w.text("expires", strconv.FormatInt(at, 10))
}

func (w jsonBuf) domains(c *docindex.CrawlPending) jsonBuf {
	w = w.open("domains")
	for _, d := range byKey(c.Domains, func(d *docindex.DomainPending) string { return d.Domain }) {
		w = w.open(d.Domain).number("total", d.Total).span(&d.Pending).end()
	}
	w = w.end()
	if c.Distinct > len(c.Domains) {
		w = w.truth("domains_truncated")
	}
	return w
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, encode(s)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
