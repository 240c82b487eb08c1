package robots

import "slices"

// Bounds of the Sitemap lines that are kept of one file. A hostile file may have tens of thousands.
const (
	maxSitemapLines = 100      // later lines are ignored
	maxSitemapBytes = 16 << 10 // of all URLs together; those beyond are dropped
)

// sitemaps collects the URLs of Sitemap lines. These belong to no group, wherever they stand
// (sitemaps.org, "Informing search engine crawlers"; RFC 9309, section 2.2.4).
type sitemaps struct {
	urls         []string // in the order of the file, each once
	lines, bytes int
}

// add takes the value of a line. It drops a value that is not an absolute http or https URL.
func (s *sitemaps) add(value []byte) {
	if s.lines++; s.lines > maxSitemapLines || slices.ContainsFunc(value, isSpace) {
		return
	}
	text := string(value)
	url := resolveLocation(text, text)
	if url == "" || s.bytes+len(url) > maxSitemapBytes || slices.Contains(s.urls, url) {
		return
	}
	s.urls = append(s.urls, url)
	s.bytes += len(url)
}

// Sitemaps returns the URLs of the file's Sitemap lines: absolute, http or https, in the order of
// the file, each once. There are at most 100, of 16 KiB together. The caller must not change them.
func (r *Rules) Sitemaps() []string { return r.sitemaps }

// Sitemaps returns the result of [Rules.Sitemaps] for the rules in force; nil if nothing is known,
// or the rules were dropped.
func (e Entry) Sitemaps() []string {
	if e.rules == nil {
		return nil
	}
	return e.rules.sitemaps
}
