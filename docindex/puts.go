package docindex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// MaxExtra bounds crawl, key and metadata of a document together, in bytes. With the longest URL
// they still fit one string of a store's arena.
const MaxExtra = 8000

// DefaultCrawl is the crawl of documents that name none, as in the URL Frontier API.
const DefaultCrawl = "DEFAULT"

// Put is a URL to be stored. Only URL is needed.
type Put struct {
	URL      []byte // absolute, http or https, stored as weburl serialises it; with AddExact anything
	DocID    []byte // 1 to 64 printable ASCII characters other than space; empty: the store gives one
	Priority int32  // higher first
	Crawl    []byte // empty: the same as DEFAULT
	Key      []byte // of its queue; empty: the same as its host
	Metadata []byte // a JSON object, string to list of strings; empty: none
	Unique   []byte // what it is known by instead of its URL, up to MaxUnique bytes; empty: its URL
	Payload  []byte // any bytes for the spider that gets it, up to MaxPayload; empty: none
	Depth    uint16 // links from where its crawl began; the first Put of a document counts
	// DOC_ID of the document that the link to it stood on, which says crawl, owner and depth; empty:
	// none. See package scoped, which resolves it
	Via []byte
	// URL of that page. Package scoped sets it instead of Via, and a store may let links on pages take turns by
	// their shapes. It is not stored
	Page []byte
	// seconds since 1970 from which on it may be handed out; Never: it is completed; 0 is before
	// all others
	Due int64
	// when its content changed last, as its site says, seconds since 1970; 0: not known. See package
	// scoped, which decides whether the URL goes out Sooner for it
	LastMod  int64
	Update   bool  // update the URL if it is known
	Sooner   bool  // if it is known and would go out later than Due, or not at all, it goes out at Due
	NoExpiry bool  // its crawl does not expire, whatever earlier Puts said, unless the metadata says when
	Created  int64 // when it was first put, seconds since 1970; 0: now. Ignored if the URL is known
}

// Values of Put.Due with a special meaning.
const (
	Never = math.MaxInt64 // the document is completed
	Now   = -1            // the second in which it is stored
)

// Puts holds checked URLs to be stored, in one growing buffer. The zero value is ready. It is not
// safe for concurrent use.
type Puts struct {
	Kept bool // they come from an index that had stored them: no scope of a crawl refuses them

	buf        []byte
	items      []item
	hasVia     bool
	hasDocID   bool
	hasLastMod bool
}

// item is where the parts of a Put are in the buffer, one after the other.
type item struct {
	at       int
	pageAt   int // of the page's URL, which several items may have in common
	due      int64
	created  int64
	lastMod  int64
	priority int32
	urlLen   uint16
	hostAt   uint16 // relative to at
	hostLen  uint16
	crawlLen uint16
	keyLen   uint16
	metaLen  uint16
	uniqLen  uint16
	loadLen  uint16
	pageLen  uint16
	depth    uint16
	idLen    uint8
	viaLen   uint8
	known    bool
	sooner   bool
	endless  bool
	verdict  Verdict
}

// Reset empties p and keeps its memory. What At returned before is no longer valid.
func (p *Puts) Reset() {
	p.buf, p.items = p.buf[:0], p.items[:0]
	p.hasVia, p.hasDocID, p.hasLastMod = false, false, false
}

// Grow makes room for about as much as another Puts has.
func (p *Puts) Grow(other *Puts) {
	p.buf = slices.Grow(p.buf, len(other.buf)+len(other.buf)/4)
	p.items = slices.Grow(p.items, len(other.items))
}

// Len returns the number of URLs.
func (p *Puts) Len() int { return len(p.items) }

// Size returns the number of bytes in p.
func (p *Puts) Size() int { return len(p.buf) }

// Add checks put and appends a copy of it in the form in which it is stored: the URL normalised and
// without fragment, the metadata compact. An error says what is wrong; then nothing is added.
func (p *Puts) Add(put Put) error {
	u, err := weburl.Parse(put.URL)
	if err != nil {
		return err
	}
	put.URL = u.Text()
	if len(put.URL) > protocol.MaxURL { // a line to a spider has this text
		return fmt.Errorf("url %.100q: it has %d bytes, %w; %d are taken", put.URL, len(put.URL),
			ErrTooLong, protocol.MaxURL)
	}
	if len(put.DocID) > 0 && !protocol.ValidDocID(put.DocID) {
		return fmt.Errorf("doc_id %.100q: not 1 to %d printable ASCII characters without space",
			put.DocID, protocol.MaxDocID)
	}
	if err := put.settle(u.Host()); err != nil {
		return err
	}
	p.add(&put, u.Host())
	return nil
}

// AddExact is Add for clients that want the URL back as it is: any text of up to protocol.MaxURL
// bytes. host is the host of its requests, or empty; then the Put needs a key. The metadata has to
// be compact, as [EncodeMetadata] writes it.
func (p *Puts) AddExact(put Put, host []byte) error {
	switch {
	case len(put.URL) == 0:
		return errors.New("the URL is empty")
	case len(put.URL) > protocol.MaxURL:
		return fmt.Errorf("url %.100q: it has %d bytes, %w; %d are taken", put.URL, len(put.URL),
			ErrTooLong, protocol.MaxURL)
	case len(put.Key) == 0 && len(host) == 0:
		return fmt.Errorf("url %.100q: has no host, and there is no key", put.URL)
	}
	if string(put.Crawl) == DefaultCrawl {
		put.Crawl = nil
	}
	if bytes.Equal(put.Key, host) {
		put.Key = nil
	}
	if err := put.checkExtra(); err != nil {
		return err
	}
	p.add(&put, host)
	return nil
}

// AddChecked appends a Put that At of some Puts has returned, or the Put of a Document, changed or
// not. host is where its requests go.
func (p *Puts) AddChecked(put Put, host []byte) { p.add(&put, host) }

// HasVia reports whether a URL has Via.
func (p *Puts) HasVia() bool { return p.hasVia }

// HasDocID reports whether a URL has DocID.
func (p *Puts) HasDocID() bool { return p.hasDocID }

// HasLastMod reports whether a URL has LastMod.
func (p *Puts) HasLastMod() bool { return p.hasLastMod }

// AddFrom appends URL i of another Puts.
func (p *Puts) AddFrom(from *Puts, i int) {
	put, host := from.At(i)
	p.add(&put, host)
}

// Verdict returns the verdict on URL i, once Put has returned.
func (p *Puts) Verdict(i int) Verdict { return p.items[i].verdict }

// SetVerdict sets the verdict on URL i. Stores call it.
func (p *Puts) SetVerdict(i int, v Verdict) { p.items[i].verdict = v }

// settle brings the parts that can be written in several ways into their one form.
func (put *Put) settle(host []byte) (err error) {
	if string(put.Crawl) == DefaultCrawl {
		put.Crawl = nil
	}
	if bytes.Equal(put.Key, host) {
		put.Key = nil
	}
	if put.Metadata, err = compactMetadata(put.Metadata); err != nil {
		return err
	}
	return put.checkExtra()
}

func (put *Put) checkExtra() error {
	if len(put.Via) > 0 && !protocol.ValidDocID(put.Via) {
		return fmt.Errorf("via %.100q: not a DOC_ID, 1 to %d printable ASCII characters without space",
			put.Via, protocol.MaxDocID)
	}
	if n := len(put.Crawl) + len(put.Key) + len(put.Metadata); n > MaxExtra {
		return fmt.Errorf("crawl, key and metadata have %d bytes, more than %d: %w", n, MaxExtra, ErrTooLong)
	}
	return put.checkPacked()
}

func (p *Puts) add(put *Put, host []byte) {
	it := item{
		at:       len(p.buf),
		due:      put.Due,
		created:  put.Created,
		lastMod:  put.LastMod,
		priority: put.Priority,
		urlLen:   uint16(len(put.URL)),
		hostLen:  uint16(len(host)),
		idLen:    uint8(len(put.DocID)),
		crawlLen: uint16(len(put.Crawl)),
		keyLen:   uint16(len(put.Key)),
		metaLen:  uint16(len(put.Metadata)),
		uniqLen:  uint16(len(put.Unique)),
		loadLen:  uint16(len(put.Payload)),
		depth:    put.Depth,
		viaLen:   uint8(len(put.Via)),
		known:    put.Update,
		sooner:   put.Sooner,
		endless:  put.NoExpiry,
	}
	p.buf = append(append(p.buf, put.URL...), put.DocID...)
	p.buf = append(append(append(p.buf, put.Crawl...), put.Key...), put.Metadata...)
	p.buf = append(append(append(p.buf, put.Unique...), put.Payload...), put.Via...)
	if at := bytes.Index(put.URL, host); at >= 0 { // the same bytes, wherever they stand
		it.hostAt = uint16(at)
	} else {
		it.hostAt = uint16(len(p.buf) - it.at)
		p.buf = append(p.buf, host...)
	}
	p.addPage(&it, put.Page)
	p.items = append(p.items, it)
	p.hasVia = p.hasVia || it.viaLen > 0
	p.hasDocID = p.hasDocID || it.idLen > 0
	p.hasLastMod = p.hasLastMod || it.lastMod != 0
}

// addPage adds the URL of the page of an item, unless the item before has the same.
func (p *Puts) addPage(it *item, page []byte) {
	if len(page) == 0 {
		return
	}
	it.pageAt, it.pageLen = len(p.buf), uint16(len(page))
	if n := len(p.items); n > 0 && bytes.Equal(p.pageOf(&p.items[n-1]), page) {
		it.pageAt = p.items[n-1].pageAt
	} else {
		p.buf = append(p.buf, page...)
	}
}

func (p *Puts) pageOf(it *item) []byte {
	end := it.pageAt + int(it.pageLen)
	return p.buf[it.pageAt:end:end]
}

// At returns URL i in the form in which it is stored, and its host. The slices alias p.
func (p *Puts) At(i int) (put Put, host []byte) {
	it := &p.items[i]
	rest := p.buf[it.at:]
	cut := func(n int) []byte {
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	put.Priority = it.priority
	put.URL = cut(int(it.urlLen))
	put.DocID = cut(int(it.idLen))
	put.Crawl = cut(int(it.crawlLen))
	put.Key = cut(int(it.keyLen))
	put.Metadata = cut(int(it.metaLen))
	put.Unique, put.Payload, put.Depth = cut(int(it.uniqLen)), cut(int(it.loadLen)), it.depth
	put.Via, put.Sooner = cut(int(it.viaLen)), it.sooner
	put.Due, put.Update, put.NoExpiry, put.Created = it.due, it.known, it.endless, it.created
	put.LastMod, put.Page = it.lastMod, p.pageOf(it)
	from := it.at + int(it.hostAt)
	return put, p.buf[from : from+int(it.hostLen) : from+int(it.hostLen)]
}

var errMetadata = errors.New("metadata is not an object of lists of strings")

// compactMetadata returns raw without space and with sorted keys, or nothing if it is empty.
func compactMetadata(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if isCompact(raw) {
		return raw, nil
	}
	var m map[string][]*string // pointers, to tell null from ""
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errMetadata
	}
	for _, list := range m {
		if list == nil {
			return nil, errMetadata
		}
		for _, text := range list {
			if text == nil {
				return nil, errMetadata
			}
		}
	}
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m)
}

// HostOf returns the host to which requests for a URL go, or nil if it has none.
func HostOf(url []byte) []byte {
	u, err := weburl.Parse(url)
	if err != nil {
		return nil
	}
	return u.Host()
}

// From completes the put of a link on a page: it gives put the page's crawl and owner, and a depth
// of one more. page is nil if the store does not have the document that Via names; From then
// returns ErrUnknown.
func (put *Put) From(page *Document) error {
	if page == nil {
		return fmt.Errorf("via %q: %w", put.Via, ErrUnknown)
	}
	put.Via, put.Crawl, put.Page = nil, page.Crawl, page.URL
	put.Metadata = WithOwner(put.Metadata, OwnerOf(page.Metadata))
	put.Depth = Deeper(page.Depth)
	return put.checkExtra()
}
