package crawllog

import (
	"bytes"
	"encoding/json"
	"time"

	"urlserver/docindex"
)

// line is one line of the log. The order of its members is that of docs/reference/formats.md.
type line struct {
	At       string   `json:"at"` // RFC 3339 in UTC, with milliseconds
	URL      string   `json:"url"`
	DocID    string   `json:"doc_id"`
	Crawl    string   `json:"crawl"`
	Outcome  string   `json:"outcome"`
	Status   *int     `json:"status"`  // null: it is not known
	Fetch    *float64 `json:"fetch_s"` // null: no fetch ended with DONE
	Attempts int      `json:"attempts"`
	Via      string   `json:"via"`
}

const timeForm = "2006-01-02T15:04:05.000Z07:00"

// appendLine appends the line of an outcome.
func appendLine(dst []byte, o *docindex.Outcome) []byte {
	l := line{
		At: o.At.UTC().Format(timeForm), URL: string(o.URL), DocID: string(o.DocID), Crawl: crawlOf(o),
		Outcome: o.Kind.String(), Attempts: o.Attempts,
	}
	if !o.NoStatus {
		l.Status = &o.Status
	}
	if o.Kind == docindex.Done {
		l.Fetch = new(float64(o.Took.Round(time.Microsecond)) / float64(time.Second))
	}
	out := bytes.NewBuffer(dst)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(&l) // texts and finite numbers always can be
	return out.Bytes()
}

func countLines(text []byte) int { return bytes.Count(text, []byte("\n")) }
