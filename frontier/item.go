package frontier

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
)

// maxKey is the most UTF-16 units of a key.
const maxKey = 255

var (
	errEmpty   = errors.New("no URL")
	errKey     = errors.New("key longer than 255 UTF-16 units")
	errCrawl   = fmt.Errorf("crawl ID longer than %d bytes", docindex.MaxExtra)
	errUnicode = errors.New("text that is not UTF-8")
	errNoKey   = errors.New("no key, and no host in the URL to take for one")
)

// crawlID returns the store's name of a crawl. Blank means DEFAULT, which is "" in the store.
func crawlID(id string) string {
	if strings.TrimSpace(id) == "" || id == defaultCrawl {
		return ""
	}
	return id
}

// shownCrawl is the inverse of crawlID.
func shownCrawl(id string) string {
	if id == "" {
		return defaultCrawl
	}
	return id
}

const defaultCrawl = "DEFAULT"

// hostOf returns the host of a URL by the WHATWG URL standard. If that finds none, it is the text
// between "://" and the next of :/?&.
func hostOf(url string) []byte {
	if host := docindex.HostOf(view(url)); len(host) > 0 {
		return host
	}
	if _, rest, found := strings.Cut(url, "://"); found {
		url = rest
	}
	if end := strings.IndexAny(url, ":/?&"); end >= 0 {
		url = url[:end]
	}
	return []byte(url)
}

// queueOf returns the queue of a crawl and key. Without a key, the URL determines it.
func queueOf(crawl, key, url string) (docindex.Scope, error) {
	s := docindex.Scope{Crawl: view(crawlID(crawl)), Key: view(key)}
	if key == "" {
		s.Key = hostOf(url)
	}
	switch {
	case len(s.Key) == 0:
		return s, errNoKey
	case tooLong(string(s.Key)):
		return s, errKey
	}
	return s, nil
}

// view returns the bytes of a text without a copy. They are read only. A copy of each URL would
// cost noticeable time.
func view(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// text is the inverse of view. The bytes do not change while the text is in use.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func tooLong(key string) bool {
	if len(key) <= maxKey {
		return false
	}
	units := 0
	for _, r := range key {
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return units > maxKey
}

// item is the content of a URLItem.
type item struct {
	info  *pb.URLInfo
	due   int64
	known bool
}

// read reads a URLItem. One that is neither discovered nor known has an empty URL.
func read(in *pb.URLItem) item {
	switch it := in.Item.(type) {
	case *pb.URLItem_Discovered:
		return item{info: it.Discovered.GetInfo(), due: docindex.Now}
	case *pb.URLItem_Known:
		return item{info: it.Known.GetInfo(), due: dueOf(it.Known.GetRefetchableFromDate()), known: true}
	}
	return item{}
}

// dueOf converts a date to the store's form, where 0 means never again.
func dueOf(date uint64) int64 {
	if date == 0 {
		return docindex.Never
	}
	return int64(min(date, math.MaxInt64-1))
}

// addTo adds the item to a batch of puts. The error says why it cannot be stored.
func (it *item) addTo(p *docindex.Puts) error {
	info := it.info
	if info.GetUrl() == "" {
		return errEmpty
	}
	queue, err := queueOf(info.CrawlID, info.Key, info.Url)
	if err != nil {
		return err
	}
	if !utf8.ValidString(info.Url) || !utf8.ValidString(info.Key) || !utf8.ValidString(info.CrawlID) {
		return errUnicode
	}
	put := docindex.Put{
		URL: view(info.Url), Key: queue.Key, Crawl: queue.Crawl,
		Due: it.due, Update: it.known,
	}
	if len(info.Metadata) > 0 {
		m := lists(info.Metadata)
		put.Metadata, put.Priority = docindex.EncodeMetadata(m), docindex.PriorityOf(m)
		put.Unique, put.Depth = docindex.IdentityIn(m)
		if !it.known {
			put.Via, put.LastMod = docindex.FoundIn(m)
		}
	}
	return p.AddExact(put, docindex.HostOf(put.URL))
}

func lists(m map[string]*pb.StringList) map[string][]string {
	all := make(map[string][]string, len(m))
	for k, v := range m {
		all[k] = v.GetValues()
	}
	return all
}

// addIdentity adds unique and depth to the metadata of a message, unless the metadata has them. The
// client gives them back when it reports the URL.
func addIdentity(info *pb.URLInfo, p *docindex.Put) {
	add := func(key, value string) {
		if info.Metadata == nil {
			info.Metadata = map[string]*pb.StringList{}
		}
		if info.Metadata[key] == nil {
			info.Metadata[key] = &pb.StringList{Values: []string{value}}
		}
	}
	if len(p.Unique) > 0 {
		add(docindex.UniqueKey, string(p.Unique))
	}
	if p.Depth > 0 {
		add(docindex.DepthKey, strconv.Itoa(int(p.Depth)))
	}
}

// fill writes a document's data into a message, which aliases p.
func fill(info *pb.URLInfo, p *docindex.Put) {
	info.Url, info.Key, info.CrawlID = text(p.URL), text(p.Key), shownCrawl(text(p.Crawl))
	info.Metadata = nil
	if m := docindex.DecodeMetadata(p.Metadata); m != nil {
		info.Metadata = make(map[string]*pb.StringList, len(m))
		for k, v := range m {
			info.Metadata[k] = &pb.StringList{Values: v}
		}
	}
	addIdentity(info, p)
}

// known returns a document in the form of GetURLStatus and ListURLs.
func known(d *docindex.Document) *pb.URLItem {
	info := &pb.URLInfo{}
	fill(info, &d.Put)
	info.Url, info.Key, info.CrawlID = strings.Clone(info.Url), strings.Clone(info.Key), strings.Clone(info.CrawlID)
	k := &pb.KnownURLItem{Info: info}
	created := uint64(d.Created.Unix())
	switch {
	case d.State == docindex.Completed:
		info.Metadata = nil
	case d.Due <= 0: // due at any time; 0 would mean completed
		k.RefetchableFromDate = created
	default:
		k.RefetchableFromDate = uint64(d.Due)
	}
	return &pb.URLItem{Item: &pb.URLItem_Known{Known: k}, CreationDate: created}
}
