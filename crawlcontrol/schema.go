package crawlcontrol

import (
	"encoding/json"
	"math"
)

// kind is the type of a field's value.
type kind uint8

const (
	text    kind = iota // a string of least to most characters
	integer             // from least to most
	list                // of strings, at most most
	object              // of any content
)

// field is one field of a request. Both the reader and the JSON Schema use this definition only.
type field struct {
	name        string
	kind        kind
	least, most int64
	required    bool
	preset      any      // value of a missing field; nil: none
	words       []string // the allowed values; nil: any
	about       string
}

// requestSchema is the schema of one kind of request.
type requestSchema struct {
	name   string
	about  string
	fields []field
}

const (
	maxName  = 40 // characters of appid, crawlid, spiderid and uuid
	maxList  = 1000
	lastYear = 253402300799 // the last second of the year 9999
)

// crawlSchema is the schema of a request to crawl a URL.
var crawlSchema = requestSchema{
	name:  "crawl",
	about: "Crawl a URL.",
	fields: []field{
		{name: "url", kind: text, least: 1, most: 8000, required: true,
			about: "Absolute, http or https; without a scheme it is http."},
		{name: "appid", kind: text, least: 3, most: maxName, required: true,
			about: "The application that asks."},
		{name: "crawlid", kind: text, least: 1, most: maxName, required: true,
			about: "Which of the application's crawls this is."},
		{name: "spiderid", kind: text, least: 1, most: maxName, preset: "link",
			about: "The sort of spider that fetches it."},
		{name: "priority", kind: integer, least: 1, most: 100, preset: 1,
			about: "Higher goes first in a host's queue."},
		{name: "maxdepth", kind: integer, least: 0, most: 100, preset: 0,
			about: "How many links away from the URL the crawl goes; 0: no link is followed."},
		{name: "expires", kind: integer, least: 0, most: lastYear, preset: 0,
			about: "Seconds since 1970 at which the whole crawl ends; 0: never."},
		{name: "allowed_domains", kind: list, most: maxList,
			about: "Domains, each with all hosts below it; none: any."},
		{name: "allow_regex", kind: list, most: maxList,
			about: "RE2; a URL has to match one of them; none: any."},
		{name: "deny_regex", kind: list, most: maxList,
			about: "RE2; a URL must match none of them."},
		{name: "deny_extensions", kind: list, most: maxList,
			about: "Extensions of paths that are not crawled, such as jpg."},
		{name: "useragent", kind: text, most: 4000, about: "For the spider."},
		{name: "cookie", kind: text, most: 4000, about: "For the spider."},
		{name: "domain_max_pages", kind: integer, least: 0, most: math.MaxInt32,
			about: "Documents of the crawl on one registered domain; 0: any number."},
		{name: "attrs", kind: object, about: "For the spider; anything."},
	},
}

var actionWords = []string{wordInfo, wordStop}

// infoSchema is the schema of a request to count the pending documents of an application or a
// crawl.
var infoSchema = requestSchema{
	name:   wordInfo,
	about:  "Count what is pending of an application, or of one of its crawls.",
	fields: actionFields(wordInfo, false),
}

// stopSchema is the schema of a request to stop a crawl for good.
var stopSchema = requestSchema{
	name:   wordStop,
	about:  "End a crawl for good.",
	fields: actionFields(wordStop, true),
}

func actionFields(word string, crawlNeeded bool) []field {
	return []field{
		{name: "action", kind: text, least: 1, most: maxName, required: true, words: []string{word}},
		{name: "appid", kind: text, least: 3, most: maxName, required: true,
			about: "The application that asks."},
		{name: "uuid", kind: text, least: 1, most: maxName, required: true,
			about: "Comes back with the reply."},
		{name: "spiderid", kind: text, least: 1, most: maxName, required: true, about: "The sort of spider."},
		{name: "crawlid", kind: text, least: 1, most: maxName, required: crawlNeeded, about: "The crawl."},
	}
}

// Schema returns the JSON Schema of all requests.
func Schema() []byte {
	var shapes []map[string]any
	for _, s := range []requestSchema{crawlSchema, infoSchema, stopSchema} {
		shapes = append(shapes, s.schema())
	}
	out, _ := json.MarshalIndent(map[string]any{ // strings and numbers always can be encoded
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Requests of crawl control",
		"description": "One JSON object a message, UTF-8. Optional fields may be null, which is the " +
			"same as leaving them out.",
		"oneOf": shapes,
	}, "", "  ")
	return append(out, '\n')
}

func (s *requestSchema) schema() map[string]any {
	fields, required := map[string]any{}, []string{}
	for i := range s.fields {
		f := &s.fields[i]
		fields[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	return map[string]any{
		"title": s.name, "description": s.about, "type": "object",
		"properties": fields, "required": required, "additionalProperties": false,
	}
}

var kindWords = [...]string{text: "string", integer: "integer", list: "array", object: "object"}

func (f *field) schema() map[string]any {
	m := map[string]any{"type": kindWords[f.kind]}
	if !f.required {
		m["type"] = []string{kindWords[f.kind], "null"}
	}
	if f.about != "" {
		m["description"] = f.about
	}
	if f.preset != nil {
		m["default"] = f.preset
	}
	switch f.kind {
	case text:
		m["minLength"], m["maxLength"] = f.least, f.most
	case integer:
		m["minimum"], m["maximum"] = f.least, f.most
	case list:
		m["items"], m["maxItems"] = map[string]any{"type": "string"}, f.most
	}
	if f.words != nil {
		m["enum"] = f.words
	}
	return m
}
