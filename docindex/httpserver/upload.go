package httpserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"urlserver/docindex/internal/ndjson"
	"urlserver/internal/scope"
	"urlserver/internal/w3cdate"

	"urlserver/docindex"
)

const (
	// maxPutLine bounds a line: the longest URL, DOC_ID and extra, with every byte escaped.
	maxPutLine = 128 << 10

	// maxPuts is how many URLs are collected before they are stored.
	maxPuts = 1000

	// maxPending is about how many bytes are collected before they are stored.
	maxPending = 1 << 20

	// maxErrors is how many invalid lines an answer names.
	maxErrors = 10
)

// uploadAnswer counts the lines of an upload.
type uploadAnswer struct {
	New     int `json:"new"`
	Known   int `json:"known"`
	Invalid int `json:"invalid"`
	Dropped int `json:"dropped,omitempty"` // their crawls were stopped or have expired
	// not in the scopes of their crawls, and these by the rule that refused them
	OutOfScope int            `json:"out_of_scope"`
	Rules      map[string]int `json:"rules"`
	Errors     []string       `json:"errors"`
}

// brokenUpload is the answer if the body broke off. The lines before that are stored.
type brokenUpload struct {
	failure
	uploadAnswer
}

// upload stores lines in batches as they come.
type upload struct {
	store  Store
	crawl  []byte // of lines that name none
	puts   docindex.Puts
	number []int // line numbers of puts
	answer uploadAnswer
}

// serveURLs stores any number of URLs. It counts and names invalid lines, and stores the others.
func serveURLs(store Store, w http.ResponseWriter, r *http.Request, body io.Reader) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	up := upload{store: store, crawl: []byte(query.Get("crawl")),
		answer: uploadAnswer{Rules: map[string]int{}, Errors: []string{}}}
	if err := up.readAll(r, body); err != nil {
		answerJSON(w, statusOf(err), brokenUpload{failureOf(r, err), up.answer})
		return nil
	}
	answerJSON(w, http.StatusOK, up.answer)
	return nil
}

func (u *upload) readAll(r *http.Request, body io.Reader) error {
	parse := lineParser(r.Header.Get("Content-Type"))
	in := ndjson.NewReader(body, maxPutLine)
	for {
		line, err := in.Next()
		switch {
		case err == io.EOF:
			return u.flush(r)
		case errors.Is(err, ndjson.ErrTooLong):
			u.invalid(in.Number(), fmt.Errorf("longer than %d bytes", maxPutLine))
		case err != nil:
			return errors.Join(u.flush(r), badf("body broke off after line %d: %w", in.Number(), err))
		default:
			u.add(in.Number(), line, parse)
		}
		if u.puts.Len() == maxPuts || u.puts.Size() > maxPending {
			if err := u.flush(r); err != nil {
				return err
			}
		}
	}
}

func (u *upload) add(number int, line []byte, parse func([]byte) (docindex.Put, error)) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	p, err := parse(line)
	if len(p.Crawl) == 0 && len(p.Via) == 0 {
		p.Crawl = u.crawl
	}
	if err == nil {
		err = u.puts.Add(p)
	}
	if err != nil {
		u.invalid(number, err)
		return
	}
	u.number = append(u.number, number)
}

func (u *upload) invalid(number int, err error) {
	u.answer.Invalid++
	if len(u.answer.Errors) < maxErrors {
		u.answer.Errors = append(u.answer.Errors, fmt.Sprintf("line %d: %v", number, err))
	}
}

// flush stores the URLs that were collected.
func (u *upload) flush(r *http.Request) error {
	res, err := u.store.Put(r.Context(), &u.puts)
	u.answer.New += res.New
	u.answer.Known += res.Known
	u.answer.Dropped += res.Dropped
	u.outOfScope(&res)
	for _, refusal := range res.Refused {
		u.invalid(u.number[refusal.Index], refusal.Err)
	}
	u.puts.Reset()
	u.number = u.number[:0]
	if err != nil {
		return fmt.Errorf("urls: %w", err)
	}
	return nil
}

// outOfScope counts URLs that are not in scope.
func (u *upload) outOfScope(res *docindex.PutResult) {
	u.answer.OutOfScope += res.OutOfScope
	for rule, n := range res.Rules {
		if n > 0 {
			u.answer.Rules[scope.Rule(rule).String()] += n
		}
	}
}

// lineParser chooses how to parse lines: as NDJSON or text/plain if the type says so. With any
// other type, such as curl sends by default, a line that begins with a brace is JSON, since no URL
// does.
func lineParser(contentType string) func(line []byte) (docindex.Put, error) {
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == "text/plain":
		return parsePlain
	case strings.HasSuffix(media, "json") || strings.HasSuffix(media, "jsonl"):
		return ParsePut
	}
	return func(line []byte) (docindex.Put, error) {
		if line[0] == '{' {
			return ParsePut(line)
		}
		return parsePlain(line)
	}
}

func parsePlain(line []byte) (docindex.Put, error) { return docindex.Put{URL: line}, nil }

// ParsePut parses one line of NDJSON as /docindex/urls takes it: a JSON object with at least a url.
// The slices of the Put may alias line.
func ParsePut(line []byte) (docindex.Put, error) {
	d, err := ndjson.ParseDocument(line)
	switch {
	case err != nil:
		return docindex.Put{}, err
	case len(d.URL) == 0:
		return docindex.Put{}, errors.New("no url")
	case d.PutError != nil:
		return docindex.Put{}, d.PutError
	case d.Depth < 0 || d.Depth > math.MaxUint16:
		return docindex.Put{}, fmt.Errorf("depth is not from 0 to %d", math.MaxUint16)
	}
	put := docindex.Put{URL: d.URL, DocID: d.DocID, Priority: d.Priority, Crawl: d.Crawl, Key: d.Key,
		Metadata: d.Metadata, Unique: d.Unique, Depth: uint16(d.Depth), Via: d.Via}
	if put.Payload, err = docindex.DecodePayload(d.Payload); err != nil {
		return docindex.Put{}, err
	}
	if put.Sooner = len(d.Due) > 0; put.Sooner {
		if put.Due, err = parseDue(string(d.Due)); err != nil {
			return docindex.Put{}, err
		}
	}
	if len(d.LastMod) > 0 {
		put.LastMod, err = parseLastMod(string(d.LastMod))
	}
	return put, err
}

// parseDue parses the moment from which on a URL may go out: "now" or RFC 3339.
func parseDue(text string) (int64, error) {
	if text == "now" {
		return docindex.Now, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf(`due is %.40q; it has to be "now" or a time as in RFC 3339`, text)
	}
	return max(0, at.Add(time.Second-1).Unix()), nil
}

// parseLastMod parses the moment at which a site says that a page changed. A moment before 1970
// counts as none: the result is 0.
func parseLastMod(text string) (int64, error) {
	at, ok := w3cdate.Parse(text)
	if !ok {
		return 0, fmt.Errorf("lastmod is %.40q; it has to be a date as sitemaps have it: RFC 3339, or a prefix like "+
			"2006-01-02", text)
	}
	return max(0, at.Unix()), nil
}
