// Package export moves the content of a store to another store, of any kind, as lines of JSON; see
// FORMAT.md. The line of a URL is what URL Frontier clients write and read.
package export

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"

	"urlserver/docindex"
	"urlserver/docindex/internal/ndjson"
)

const (
	// maxLine bounds a line: the longest URL and extra, with every byte escaped, or the settings of a crawl, whose
	// scope may have 128 KiB.
	maxLine = 256 << 10

	// always is the date of what is due before all others, since 0 means never in the format.
	always = 1

	// priorityKey is the metadata for a priority that the metadata's own "priority" does not give.
	priorityKey = "urlserver.priority"

	// These are for a unique and a depth that the metadata's own "unique" and "depth" do not give, and
	// for a payload, in base64.
	uniqueKey  = "urlserver.unique"
	depthKey   = "urlserver.depth"
	payloadKey = "urlserver.payload"
)

// crawlWord is what is set by the line of a crawl's settings.
const crawlWord = "crawl"

var settingWords = [...]string{
	docindex.SetDelay: "delay", docindex.SetBlock: "block", docindex.SetLimit: "limit", docindex.SetActive: "active",
}

// appendDocument appends the line of a document. A document in transit is written as scheduled. A
// completed document has no metadata but its owner, no priority and no payload.
func appendDocument(dst []byte, d *docindex.Document) []byte {
	dst = ndjson.AppendString(append(dst, `{"known":{"info":{"url":`...), d.URL)
	dst = ndjson.AppendString(append(dst, `,"key":`...), d.Key)
	m := docindex.DecodeMetadata(d.Metadata)
	if d.State == docindex.Completed {
		m = docindex.DecodeMetadata(docindex.OwnerOf(d.Metadata))
	}
	dst = appendMetadata(dst, withOwn(m, d))
	dst = append(appendCrawl(append(dst, ','), d.Crawl), '}')
	if d.State != docindex.Completed {
		dst = appendNumber(append(dst, `,"refetchableFromDate":`...), uint64(max(d.Due, always)))
	}
	dst = ndjson.AppendString(append(dst, `},"ID":`...), d.DocID)
	if created := d.Created.Unix(); created > 0 {
		dst = appendNumber(append(dst, `,"creationDate":`...), uint64(created))
	}
	return append(dst, "}\n"...)
}

// withOwn adds the parts of a document to metadata that are not in its own metadata.
func withOwn(m map[string][]string, d *docindex.Document) map[string][]string {
	own := map[string]string{}
	if d.State != docindex.Completed && docindex.PriorityOf(m) != d.Priority {
		own[priorityKey] = strconv.Itoa(int(d.Priority))
	}
	unique, depth := docindex.IdentityIn(m)
	if string(unique) != string(d.Unique) {
		own[uniqueKey] = string(d.Unique)
	}
	if depth != d.Depth {
		own[depthKey] = strconv.Itoa(int(d.Depth))
	}
	if d.State != docindex.Completed && len(d.Payload) > 0 {
		own[payloadKey] = base64.StdEncoding.EncodeToString(d.Payload)
	}
	if m == nil && len(own) > 0 {
		m = map[string][]string{}
	}
	for key, value := range own {
		m[key] = []string{value}
	}
	return m
}

func appendMetadata(dst []byte, m map[string][]string) []byte {
	if len(m) == 0 {
		return dst
	}
	dst = append(dst, `,"metadata":{`...)
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(ndjson.AppendString(dst, []byte(key)), `:{"values":[`...)
		for j, value := range m[key] {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = ndjson.AppendString(dst, []byte(value))
		}
		dst = append(dst, "]}"...)
	}
	return append(dst, '}')
}

// appendSetting appends the line of a setting. A setting of all queues has no key; a setting of a
// host has the host instead.
func appendSetting(dst []byte, s *docindex.Setting) []byte {
	dst = ndjson.AppendString(append(dst, `{"set":`...), []byte(settingWords[s.Kind]))
	switch {
	case s.Host:
		dst = ndjson.AppendString(append(dst, `,"host":`...), s.Key)
	case len(s.Key) > 0:
		dst = ndjson.AppendString(append(dst, `,"key":`...), s.Key)
		dst = appendCrawl(append(dst, ','), s.Crawl)
	}
	dst = appendNumber(append(dst, `,"value":`...), s.Value)
	return append(dst, "}\n"...)
}

// appendCrawlSettings appends the line of a crawl's settings, which are JSON.
func appendCrawlSettings(dst []byte, crawl string, text []byte) []byte {
	dst = appendCrawl(append(dst, `{"set":"`+crawlWord+`",`...), []byte(crawl))
	return append(append(append(dst, `,"settings":`...), text...), "}\n"...)
}

// appendEnd appends the last line, which has the number of URLs before it.
func appendEnd(dst []byte, urls uint64) []byte {
	return append(appendNumber(append(dst, `{"end":`...), urls), "}\n"...)
}

func appendCrawl(dst, crawl []byte) []byte {
	if len(crawl) == 0 {
		crawl = []byte(docindex.DefaultCrawl)
	}
	return ndjson.AppendString(append(dst, `"crawlID":`...), crawl)
}

// appendNumber appends a number as a string, as protobuf writes 64 bits in JSON.
func appendNumber(dst []byte, n uint64) []byte {
	return append(strconv.AppendUint(append(dst, '"'), n, 10), '"')
}
