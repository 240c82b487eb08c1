package spider

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// maxLinkBytes bounds the total length of the URLs made from one page's references: about 50,000
// URLs of usual length, as many as a sitemap may have. Otherwise a page with a long base and many
// short references would become gigabytes of URLs, and minutes of parsing.
const maxLinkBytes = 4 << 20

// linkSet is the links of a page, each once, in the order of the page.
type linkSet struct {
	urls    []string // as serialised by weburl; each fits a line of the protocol
	dropped int      // number of links beyond maxLinkBytes
	fault   error    // why a sitemap was not read to its end
	isIndex bool     // it is a sitemap index
	// when pages changed last, RFC 3339, by URL; only those of which a sitemap says it
	lastMod map[string]string
}

// linksOf returns the links of an answer, for a spider whose product token is agent:
//
//   - the Location of a redirect, which is fetched as a document of its own;
//   - of a success that is HTML, the references of a and area (but for rel=nofollow), iframe and frame,
//     link rel=canonical, next and prev (pages of the same kind; not alternate, which names feeds and
//     translations), and meta refresh. Images, scripts, styles and forms are no links;
//   - of a success that is a sitemap or feed, as type sitemap reads them, the URLs in it.
//
// X-Robots-Tag and meta robots with nofollow or none, for all or for agent, leave the page without
// links; a redirect is followed all the same. Only http and https URLs are links. The query of a
// page in a legacy encoding is encoded as UTF-8, not in that encoding.
func linksOf(a answer, agent string) linkSet {
	c := collector{seen: make(map[string]struct{})}
	if location := cleanRef(a.header.Get("Location")); a.status/100 == 3 && location != "" {
		c.add(a.url, location, "")
	}
	if a.status/100 != 2 || headerNoFollow(a.header.Values("X-Robots-Tag"), agent) {
		return c.set
	}
	p := page{agent: agent, seen: make(map[string]struct{})}
	p.read(decode(a.header, a.body, maxBody), a.header.Get("Content-Type"))
	if p.noFollow {
		return c.set
	}
	if !p.isHTML {
		media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
		s := sitemap{links: &c, own: a.url}
		c.set.fault = s.read(decode(a.header, a.body, maxSitemap+1), media)
		_, syntax := errors.AsType[*xml.SyntaxError](c.set.fault)
		if a.cut == cutLength && s.urls > 0 && (c.set.fault == nil || syntax) {
			c.set.fault = errSitemapBody
		}
		return c.set
	}
	base := p.baseURL(a.url)
	for _, ref := range p.refs {
		c.add(base, ref, "")
	}
	return c.set
}

// objects returns the links as the index takes them: JSON objects that name the document.
func (l *linkSet) objects(docID []byte) []string {
	all := make([]string, len(l.urls))
	for i, url := range l.urls {
		members := map[string]string{"url": url, "via": string(docID)}
		if at := l.lastMod[url]; at != "" {
			members["lastmod"] = at
		}
		object, _ := json.Marshal(members) // strings always can be
		all[i] = string(object)
	}
	return all
}

// collector turns references into a set of links.
type collector struct {
	set  linkSet
	seen map[string]struct{} // members of set
	work int                 // bytes of URLs parsed, also of those that are not links
}

// add adds the URL of ref to the set, if it can be fetched and is not in it. lastMod is when its
// page changed last; empty: not known. Of several for one URL the first lastMod counts.
func (c *collector) add(base weburl.URL, ref, lastMod string) {
	text, ok := join(base, ref)
	if !ok {
		return
	}
	if c.work += len(text); c.work > maxLinkBytes {
		c.set.dropped++
		return
	}
	u, err := weburl.Parse(text)
	if err != nil || !protocol.ValidURL(u.Text()) {
		return
	}
	link := string(u.Text())
	if _, known := c.seen[link]; !known {
		c.seen[link] = struct{}{}
		c.set.urls = append(c.set.urls, link)
	}
	if lastMod != "" && c.set.lastMod[link] == "" {
		if c.set.lastMod == nil {
			c.set.lastMod = map[string]string{}
		}
		c.set.lastMod[link] = lastMod
	}
}

// page has the references in the tags of an HTML page. They are resolved at the end of the page,
// because base and robots may follow the first link.
type page struct {
	agent    string
	base     string // href of the first base
	hasBase  bool
	noFollow bool
	isHTML   bool
	refs     []string // each once
	seen     map[string]struct{}
}

// read reads the page from r, as far as possible. It reads nothing if it is not HTML.
func (p *page) read(r io.Reader, contentType string) {
	in := bufio.NewReaderSize(r, 1024)
	if contentType == "" {
		start, _ := in.Peek(512)
		contentType = http.DetectContentType(start)
	}
	media, _, _ := mime.ParseMediaType(contentType)
	xhtml := media == "application/xhtml+xml"
	if media != "text/html" && !xhtml {
		return
	}
	p.isHTML = true
	text, err := charset.NewReader(in, contentType)
	if err != nil {
		return
	}
	z := html.NewTokenizer(text)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken:
			p.tag(z)
		case html.SelfClosingTagToken:
			p.tag(z)
			if xhtml { // in XHTML <script src="x"/> has no text
				z.NextIsNotRawText()
			}
		}
	}
}

// attributes are the attributes of a tag that matter here.
type attributes struct{ href, src, rel, name, content, httpEquiv string }

func (p *page) tag(z *html.Tokenizer) {
	name, more := z.TagName()
	if string(name) == "noscript" { // its content is for this spider, which runs no scripts
		z.NextIsNotRawText()
	}
	if !more {
		return
	}
	switch string(name) {
	case "a", "area":
		if t := attributesOf(z); !hasWord(t.rel, "nofollow") {
			p.link(t.href)
		}
	case "link":
		t := attributesOf(z)
		follow := hasWord(t.rel, "canonical") || hasWord(t.rel, "next") || hasWord(t.rel, "prev")
		if follow && !hasWord(t.rel, "nofollow") {
			p.link(t.href)
		}
	case "iframe", "frame":
		p.link(attributesOf(z).src)
	case "base":
		if t := attributesOf(z); t.href != "" && !p.hasBase {
			p.hasBase = true
			p.base = cleanRef(t.href)
		}
	case "meta":
		p.meta(attributesOf(z))
	}
}

// meta handles a meta tag about robots or a refresh.
func (p *page) meta(t attributes) {
	if strings.EqualFold(t.httpEquiv, "refresh") {
		p.link(refreshTarget(t.content))
	}
	if t.name != "" && (strings.EqualFold(t.name, "robots") || strings.EqualFold(t.name, p.agent)) {
		p.noFollow = p.noFollow || saysNoFollow(t.content)
	}
}

// link adds a reference. An empty one, or one that is only a fragment, leads to the page itself.
func (p *page) link(ref string) {
	ref = cleanRef(ref)
	if ref == "" || ref[0] == '#' {
		return
	}
	if _, known := p.seen[ref]; !known {
		p.seen[ref] = struct{}{}
		p.refs = append(p.refs, ref)
	}
}

// baseURL returns the URL that references are relative to. The page came from own.
func (p *page) baseURL(own weburl.URL) weburl.URL {
	if text, ok := join(own, p.base); ok && p.base != "" {
		if u, err := weburl.Parse(text); err == nil {
			return u
		}
	}
	return own
}

// attributesOf returns the attributes of z's tag. Of several with one name the first counts.
func attributesOf(z *html.Tokenizer) (t attributes) {
	var seen attributes // "+" for each name that was seen, since its value may be empty
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		field, mark := t.field(string(key)), seen.field(string(key))
		if field != nil && *mark == "" {
			*field, *mark = string(value), "+"
		}
	}
	return t
}

func (t *attributes) field(key string) *string {
	switch key {
	case "href":
		return &t.href
	case "src":
		return &t.src
	case "rel":
		return &t.rel
	case "name":
		return &t.name
	case "content":
		return &t.content
	case "http-equiv":
		return &t.httpEquiv
	}
	return nil
}

// hasWord reports whether word is among the words of list, in any case.
func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// refreshTarget returns the URL of a meta refresh like "5; url='x'", or "".
func refreshTarget(content string) string {
	i := strings.IndexAny(content, ";,")
	if i < 0 {
		return ""
	}
	key, target, ok := strings.Cut(content[i+1:], "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(key), "url") {
		return ""
	}
	target = strings.TrimSpace(target)
	if target != "" && (target[0] == '\'' || target[0] == '"') {
		target, _, _ = strings.Cut(target[1:], target[:1])
	}
	return target
}
