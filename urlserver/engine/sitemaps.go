package engine

import (
	"bytes"
	"slices"

	"urlserver/docindex"
)

// putsSitemaps reports whether the sitemaps that robots.txt names are put into the doc index. Only
// an embedded index takes them.
func (e *Engine) putsSitemaps() bool { return e.cfg.Robots.Sitemaps && e.opt.Exact }

// noteVia notes for which document a robots.txt is fetched: the one that is next at its origin.
func (e *Engine) noteVia(t *robotsFetch) {
	if !e.putsSitemaps() {
		return
	}
	e.slots.Origin(t.origin).Queued(1, func(id, _ []byte) bool {
		t.via = bytes.Clone(id)
		return false
	})
}

// putSitemaps makes the doc index take the sitemaps of a robots.txt that was read just now, as if
// the document that it was fetched for linked to them.
func (e *Engine) putSitemaps(t *robotsFetch, o *origin) {
	if !e.putsSitemaps() || len(t.via) == 0 || o.Failed() {
		return
	}
	for _, url := range o.Sitemaps() {
		e.Out.Sitemaps.Add(docindex.Outcome{DocID: t.via, Location: []byte(url)})
	}
}

// sitemaps returns the sitemaps that the robots.txt of a host's origins name, each once.
func (e *Engine) sitemaps(host uint32) (urls []string) {
	e.slots.Host(host).Origins(func(o uint32) {
		for _, url := range e.robots.entry(o).Sitemaps() {
			if !slices.Contains(urls, url) {
				urls = append(urls, url)
			}
		}
	})
	return urls
}
