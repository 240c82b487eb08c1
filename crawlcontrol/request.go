package crawlcontrol

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"urlserver/docindex"
)

// Verb is the kind of a request.
type Verb uint8

const (
	Crawl Verb = iota
	Info       // of a crawl, or of an application if ID has no Crawl
	Stop
)

const (
	wordInfo = "info"
	wordStop = "stop"
)

// Request is one request.
type Request struct {
	Verb Verb
	ID   docindex.CrawlID
	UUID string        // of info and stop
	Put  docindex.Puts // of crawl: the URL to store

	bounds bounds // of crawl
}

// Refusal is the error of a message that is not a valid request.
type Refusal struct {
	UUID, App string // if they could be read
	cause     error
}

func (r *Refusal) Error() string { return r.cause.Error() }

func (r *Refusal) Unwrap() error { return r.cause }

// Parse reads a message. An error is a *[Refusal].
func Parse(message []byte) (Request, error) {
	all, err := readFields(message)
	if err != nil {
		return Request{}, &Refusal{cause: err}
	}
	r, err := parse(all)
	if err != nil {
		return Request{}, &Refusal{UUID: all.peek(&infoSchema, "uuid"), App: all.peek(&infoSchema, "appid"),
			cause: err}
	}
	return r, nil
}

// parse finds the kind of the request by its fields.
func parse(all fields) (Request, error) {
	switch {
	case all["action"] != nil:
		return parseAction(all)
	case all["url"] != nil:
		return parseCrawl(all)
	}
	return Request{}, errors.New(`message has neither "action" nor "url": it is neither an action nor a crawl`)
}

func parseAction(all fields) (Request, error) {
	word := all.peek(&anyAction, "action")
	requestSchema, verb := &infoSchema, Info
	switch word {
	case wordInfo:
	case wordStop:
		requestSchema, verb = &stopSchema, Stop
	default:
		return Request{}, fmt.Errorf("action: %.40s is not one; there are %q", all["action"], actionWords)
	}
	v, err := requestSchema.read(all)
	if err != nil {
		return Request{}, err
	}
	return Request{Verb: verb, ID: idOf(v), UUID: v["uuid"].text}, nil
}

// anyAction reads the action of a request, whichever it is.
var anyAction = requestSchema{fields: []field{{name: "action", kind: text, least: 1, most: maxName,
	words: actionWords}}}

func idOf(v values) docindex.CrawlID {
	return docindex.CrawlID{Spider: v["spiderid"].text, App: v["appid"].text, Crawl: v["crawlid"].text}
}

func parseCrawl(all fields) (Request, error) {
	v, err := crawlSchema.read(all)
	if err != nil {
		return Request{}, err
	}
	r := Request{Verb: Crawl, ID: idOf(v)}
	if r.bounds, err = boundsOf(v); err != nil {
		return Request{}, err
	}
	err = r.Put.Add(docindex.Put{
		URL:      []byte(withScheme(v["url"].text)),
		Priority: int32(v["priority"].number),
		Crawl:    []byte(v["crawlid"].text),
		Metadata: metadataOf(v),
		NoExpiry: true, // the last put counts: without an expiry the crawl never ends
	})
	if err != nil {
		return Request{}, fmt.Errorf("crawl: %w", err)
	}
	return r, nil
}

// withScheme puts http:// before a URL without scheme, as Scrapy Cluster does. In "host:80/" the
// part before the colon is no scheme. A path without a host stays as it is.
func withScheme(url string) string {
	name, rest, found := strings.Cut(url, ":")
	switch {
	case strings.HasPrefix(url, "/"):
		return url
	case found && isScheme(name) && (rest == "" || rest[0] < '0' || rest[0] > '9'):
		return url
	}
	return "http://" + strings.TrimLeft(url, " \t\r\n")
}

func isScheme(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return false
		}
	}
	return name != ""
}

// metadataOf returns the metadata of a crawl request's document.
func metadataOf(v values) []byte {
	m := map[string][]string{"spiderid": {v["spiderid"].text}}
	for i := range crawlSchema.fields {
		f := &crawlSchema.fields[i]
		one := v[f.name]
		if f.name == "url" || f.name == "crawlid" || f.name == "priority" || !one.given {
			continue
		}
		switch f.kind {
		case integer:
			m[f.name] = []string{strconv.FormatInt(one.number, 10)}
		case list:
			m[f.name] = one.list
		default:
			m[f.name] = []string{one.text}
		}
	}
	if v["expires"].number == 0 {
		delete(m, "expires")
	}
	return docindex.EncodeMetadata(m)
}
