package spider

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"urlserver/internal/w3cdate"
	"urlserver/internal/weburl"
)

// Bounds of a sitemap. The first two are those of sitemaps.org.
const (
	maxSitemap      = 50 << 20 // bytes, unpacked
	maxSitemapURLs  = 50_000
	maxSitemapToken = 1 << 20 // bytes of one tag, text or comment, which are in memory at once
	maxSitemapDepth = 100     // elements within each other
)

var (
	errSitemapLong   = errors.New("it has more than 50 MiB, unpacked")
	errSitemapBody   = errors.New("it has more than 10 MiB, as sent")
	errSitemapURLs   = errors.New("it has more than 50,000 URLs")
	errSitemapToken  = errors.New("a tag or text in it has more than 1 MiB")
	errSitemapDepth  = errors.New("its elements are nested more than 100 deep")
	errSitemapEntity = errors.New("it declares entities")
)

// sitemap reads a sitemap: XML or text as sitemaps.org has it, a feed (RSS or Atom), any of them
// also as a gzip file. Of a sitemap index it reads the URLs of the sitemaps. It does not expand
// entities that the file declares.
type sitemap struct {
	links *collector
	own   weburl.URL
	urls  int
	entry struct{ ref, date string } // of the page in XML that is being read
}

// read adds the links of the sitemap in body. A body that is no sitemap has no links and no error;
// an error says why a sitemap was not read to its end.
func (s *sitemap) read(body io.Reader, media string) error {
	in := &meter{in: bufio.NewReader(body), left: maxSitemap, token: maxSitemapToken}
	text := media == "text/plain"
	if start, _ := in.in.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in.in)
		if err != nil {
			return nil
		}
		in.in, text = bufio.NewReader(unpacked), true
	}
	if start, _ := in.in.Peek(3); string(start) == "\xef\xbb\xbf" {
		in.in.Discard(3)
	}
	start, _ := in.in.Peek(256)
	switch start = bytes.TrimLeft(start, " \t\r\n"); {
	case len(start) == 0:
		return nil
	case start[0] == '<':
		return s.readXML(in)
	case text:
		return s.readText(in)
	}
	return nil
}

// readText reads one URL a line, up to the first line that is none.
func (s *sitemap) readText(in *meter) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		in.token = maxSitemapToken
		switch ref := cleanRef(lines.Text()); {
		case ref == "":
		case !isAbsolute(ref):
			return nil
		default:
			if err := s.add(ref, ""); err != nil {
				return err
			}
		}
	}
	if s.urls == 0 || errors.Is(lines.Err(), bufio.ErrTooLong) { // a line of 64 KiB is no URL
		return nil
	}
	return lines.Err()
}

// isAbsolute reports whether ref begins as an http or https URL does, and has no space in it.
func isAbsolute(ref string) bool {
	scheme, rest, ok := cutScheme(ref)
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) &&
		strings.HasPrefix(rest, "//") && !strings.ContainsAny(ref, " \t")
}

// readXML reads tags up to the end, or to the first one if that is of no sitemap. A page counts when
// its URL was read to its end.
func (s *sitemap) readXML(in *meter) error {
	err := s.readTags(in)
	return cmp.Or(err, s.endEntry())
}

func (s *sitemap) readTags(in *meter) error {
	d := xml.NewDecoder(in)
	d.Strict, d.CharsetReader = false, charset.NewReaderLabel
	var open []string        // names of the open elements
	var text strings.Builder // of the innermost open element, if it is of use
	for {
		in.token = maxSitemapToken
		token, err := d.RawToken()
		switch {
		case err == io.EOF, err != nil && len(open) == 0 && s.urls == 0:
			return nil
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.Directive:
			if bytes.Contains(t, []byte("<!ENTITY")) {
				return errSitemapEntity
			}
		case xml.StartElement:
			if len(open) == 0 && !isSitemapRoot(t.Name.Local) {
				return nil
			}
			if len(open) == 0 {
				s.links.set.isIndex = t.Name.Local == "sitemapindex"
			}
			if open = append(open, t.Name.Local); len(open) > maxSitemapDepth {
				return errSitemapDepth
			}
			text.Reset()
			if err := s.located(atomLink(open, t)); err != nil {
				return err
			}
		case xml.CharData:
			if useOf(open) != useNone && text.Len() <= weburl.MaxLen {
				text.Write(t)
			}
		case xml.EndElement:
			if err := s.ended(open, text.String()); err != nil {
				return err
			}
			open = open[:max(len(open)-1, 0)]
		}
	}
}

// ended takes the end of the innermost open element, which has text.
func (s *sitemap) ended(open []string, text string) error {
	switch useOf(open) {
	case useRef:
		return s.located(text)
	case useDate:
		s.entry.date = text
	case useEntry:
		return s.endEntry()
	}
	return nil
}

// located takes the reference of an entry; an empty one is none. If an entry has several, each is
// one of the sitemap.
func (s *sitemap) located(ref string) error {
	if ref = cleanRef(ref); ref == "" {
		return nil
	}
	if s.entry.ref != "" {
		if err := s.add(s.entry.ref, s.entry.date); err != nil {
			return err
		}
	}
	s.entry.ref = ref
	return nil
}

// endEntry adds the entry that was begun last.
func (s *sitemap) endEntry() error {
	ref, date := s.entry.ref, s.entry.date
	s.entry.ref, s.entry.date = "", ""
	return s.add(ref, date)
}

// add adds a reference and when its page changed last; an empty reference is none.
func (s *sitemap) add(ref, date string) error {
	if ref = cleanRef(ref); ref == "" {
		return nil
	}
	if s.urls++; s.urls > maxSitemapURLs {
		return errSitemapURLs
	}
	s.links.add(s.own, ref, moment(date))
	return nil
}

// dateForms are forms of dates in sitemaps and feeds beside those of package w3cdate: without a zone,
// and as in RSS.
var dateForms = []string{
	"2006-01-02T15:04:05", "2006-01-02 15:04:05", "Mon, 2 Jan 2006 15:04:05 -0700",
	"Mon, 2 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 MST",
}

// moment returns the moment that a date of a sitemap or feed names, in RFC 3339, or "". A time
// without a zone is taken for UTC.
func moment(date string) string {
	date = strings.TrimSpace(date)
	if date == "" || len(date) > 100 {
		return ""
	}
	at, ok := w3cdate.Parse(date)
	for _, layout := range dateForms {
		if !ok {
			var err error
			at, err = time.Parse(layout, date)
			ok = err == nil
		}
	}
	if !ok {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func isSitemapRoot(name string) bool {
	switch name {
	case "urlset", "sitemapindex", "rss", "RDF", "feed":
		return true
	}
	return false
}

// use says what the text or the end of an element means.
type use uint8

const (
	useNone  use = iota
	useRef       // its text is the URL of a page
	useDate      // its text says when the page changed last
	useEntry     // its end is the end of a page's entry
)

var uses = map[[2]string]use{ // by the names of the element around it and of its own
	{"url", "loc"}: useRef, {"sitemap", "loc"}: useRef, {"item", "link"}: useRef,
	{"url", "lastmod"}: useDate, {"sitemap", "lastmod"}: useDate, {"item", "pubDate"}: useDate,
	{"item", "date"}: useDate, {"entry", "updated"}: useDate,
}

// useOf returns the use of the innermost open element. Images and videos of a page are one level
// deeper.
func useOf(open []string) use {
	if len(open) < 2 {
		return useNone
	}
	switch name := open[len(open)-1]; name {
	case "url", "sitemap", "item", "entry":
		return useEntry
	default:
		return uses[[2]string{open[len(open)-2], name}]
	}
}

// atomLink returns the reference of the innermost open element, t, if it is the link to an entry's
// page, or "".
func atomLink(open []string, t xml.StartElement) (ref string) {
	if len(open) < 2 || open[len(open)-2] != "entry" || t.Name.Local != "link" {
		return ""
	}
	for _, a := range t.Attr {
		switch {
		case a.Name.Local == "href":
			ref = a.Value
		case a.Name.Local == "rel" && a.Value != "alternate":
			return ""
		}
	}
	return ref
}

// meter bounds the bytes that are read in all, and for one token.
type meter struct {
	in          *bufio.Reader
	left, token int
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.over(); err != nil || len(p) == 0 {
		return 0, err
	}
	n, err := m.in.Read(p[:min(len(p), m.left, m.token)])
	m.left, m.token = m.left-n, m.token-n
	return n, err
}

// ReadByte makes package xml read no further than it has to.
func (m *meter) ReadByte() (byte, error) {
	if err := m.over(); err != nil {
		return 0, err
	}
	c, err := m.in.ReadByte()
	m.left, m.token = m.left-1, m.token-1
	return c, err
}

// over returns why no more may be read. A file that ends at the bound is not over it.
func (m *meter) over() error {
	if m.left > 0 && m.token > 0 {
		return nil
	}
	if _, err := m.in.Peek(1); err != nil {
		return err
	}
	if m.left <= 0 {
		return errSitemapLong
	}
	return errSitemapToken
}
