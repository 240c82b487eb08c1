package ndjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Document is a line that offers or puts a document. Fields that are absent, null or
// empty strings are empty.
type Document struct {
	DocID    []byte // of a number: its digits
	URL      []byte
	Priority int32 // saturated
	Crawl    []byte
	Key      []byte
	SpiderID []byte
	Metadata []byte // JSON of any kind, as it stood in the line
	Payload  []byte // base64, not checked

	// The rest is of puts alone, and so is PutError: what is wrong with unique, depth, due, via
	// and lastmod.
	Unique   []byte
	Via      []byte // a DOC_ID, as DocID
	Due      []byte
	LastMod  []byte
	Depth    int32 // saturated
	PutError error
}

// ParseDocument parses a line. It ignores members that Document has no field for. With an error it
// still returns the fields that it could parse, so that the caller can answer for the DocID. The
// slices may alias line.
func ParseDocument(line []byte) (Document, error) {
	if d, ok := fastDocument(line); ok {
		return d, nil
	}
	return slowDocument(line)
}

// fastDocument parses a valid line that flat can read, with the same result as slowDocument. ok is
// false for all other lines.
func fastDocument(line []byte) (d Document, ok bool) {
	f := open(line)
	for key, v, more := f.next(true); more; key, v, more = f.next(false) {
		switch string(key) {
		case "doc_id":
			d.DocID = v.text
			continue
		case "via":
			d.Via = v.text
			continue
		case "priority":
			if d.Priority, ok = saturated(v.text); v.quoted || !ok {
				return Document{}, false
			}
			continue
		case "depth":
			if d.Depth, ok = saturated(v.text); v.quoted || !ok {
				return Document{}, false
			}
			continue
		}
		field := d.text(string(key))
		if field == nil || !v.quoted {
			return Document{}, false
		}
		*field = v.text
	}
	return d, !f.bad
}

// text returns the field for a member whose value is a string. It returns nil for any other member.
func (d *Document) text(key string) *[]byte {
	switch key {
	case "url":
		return &d.URL
	case "crawl":
		return &d.Crawl
	case "key":
		return &d.Key
	case "spiderid":
		return &d.SpiderID
	case "payload":
		return &d.Payload
	case "unique":
		return &d.Unique
	case "due":
		return &d.Due
	case "lastmod":
		return &d.LastMod
	}
	return nil
}

func slowDocument(line []byte) (d Document, err error) {
	var raw struct {
		DocID    json.RawMessage `json:"doc_id"`
		URL      json.RawMessage `json:"url"`
		Priority json.RawMessage `json:"priority"`
		Crawl    json.RawMessage `json:"crawl"`
		Key      json.RawMessage `json:"key"`
		SpiderID json.RawMessage `json:"spiderid"`
		Metadata json.RawMessage `json:"metadata"`
		Payload  json.RawMessage `json:"payload"`
		Unique   json.RawMessage `json:"unique"`
		Depth    json.RawMessage `json:"depth"`
		Due      json.RawMessage `json:"due"`
		Via      json.RawMessage `json:"via"`
		LastMod  json.RawMessage `json:"lastmod"`
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return d, notObject(err)
	}
	var errs [5]error
	d.DocID, errs[0] = idOf("doc_id", raw.DocID)
	d.URL, errs[1] = textOf("url", raw.URL)
	d.Priority, errs[2] = integerOf("priority", raw.Priority)
	d.Crawl, errs[3] = textOf("crawl", raw.Crawl)
	d.Key, errs[4] = textOf("key", raw.Key)
	d.SpiderID, _ = textOf("spiderid", raw.SpiderID) // anything but a string counts as absent
	var bad [6]error
	d.Payload, bad[0] = textOf("payload", raw.Payload)
	d.Unique, bad[1] = textOf("unique", raw.Unique)
	d.Depth, bad[2] = integerOf("depth", raw.Depth)
	d.Due, bad[3] = textOf("due", raw.Due)
	d.Via, bad[4] = idOf("via", raw.Via)
	d.LastMod, bad[5] = textOf("lastmod", raw.LastMod)
	d.PutError = cmp.Or(bad[:]...)
	if !absent(raw.Metadata) {
		d.Metadata = raw.Metadata
	}
	return d, cmp.Or(errs[:]...)
}

// notObject returns the error of a line that is no JSON object: what is wrong with its JSON, or what
// it is instead.
func notObject(err error) error {
	if kind, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("not a JSON object but %s", kind.Value)
	}
	return fmt.Errorf("not a JSON object: %w", err)
}

// absent reports whether a member is missing or null.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func idOf(name string, raw json.RawMessage) ([]byte, error) {
	if n := integer(raw); n > 0 && n == len(raw) {
		return raw, nil
	}
	text, err := textOf(name, raw)
	if err != nil {
		return nil, fmt.Errorf("%s is neither a string nor an integer", name)
	}
	return text, nil
}

func textOf(name string, raw json.RawMessage) ([]byte, error) {
	if absent(raw) {
		return nil, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("%s is not a string", name)
	}
	return []byte(text), nil
}

func integerOf(name string, raw json.RawMessage) (int32, error) {
	if absent(raw) {
		return 0, nil
	}
	if n := integer(raw); n == 0 || n != len(raw) {
		return 0, fmt.Errorf("%s is not an integer", name)
	}
	p, _ := saturated(raw)
	return p, nil
}

// saturated parses a JSON integer. A number beyond the range of int32 becomes the nearest int32.
func saturated(digits []byte) (int32, bool) {
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int32(max(math.MinInt32, min(n, math.MaxInt32))), true
}
