package recrawl

import (
	"strconv"
	"time"

	"urlserver/docindex"
)

// Key is the metadata that has a document's schedule: the interval in seconds after which it comes
// back when all is well, the errors in a row, and when it last ended, in ms since 1970; 0 is not
// known.
const Key = "refetch"

// read parses a document's schedule from its metadata. Anything else there, which a client may have
// put, is no schedule.
func read(metadata []byte) (s schedule, ok bool) {
	list := docindex.DecodeMetadata(metadata)[Key]
	if len(list) != 3 {
		return schedule{}, false
	}
	var n [3]int64
	for i, most := range [3]int64{int64(longest / time.Second), maxRow, 1<<63 - 1} {
		v, err := strconv.ParseInt(list[i], 10, 64)
		if err != nil || v < 0 || v > most {
			return schedule{}, false
		}
		n[i] = v
	}
	return schedule{interval: time.Duration(n[0]) * time.Second, errors: int(n[1]), ended: n[2]}, true
}

// with returns a document's metadata with a schedule. If that is longer than allowed, the metadata
// stays as it was: the document then comes back as if it had never ended before.
func (s schedule) with(d *docindex.Document) []byte {
	m := docindex.DecodeMetadata(d.Metadata)
	if m == nil {
		m = map[string][]string{}
	}
	m[Key] = []string{
		strconv.FormatInt(int64(s.interval/time.Second), 10),
		strconv.Itoa(s.errors),
		strconv.FormatInt(max(s.ended, 0), 10),
	}
	text := docindex.EncodeMetadata(m)
	if len(d.Crawl)+len(d.Key)+len(text) > docindex.MaxExtra {
		return d.Metadata
	}
	return text
}
