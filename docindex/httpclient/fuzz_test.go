package httpclient

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/internal/ndjson"
	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// FuzzCandidates reads any answer of an index: whatever comes, what is handed on keeps to the
// protocol, each line counts once, and what is good is read the same again.
func FuzzCandidates(f *testing.F) {
	f.Add([]byte("{\"doc_id\":\"1\",\"url\":\"http://a.example/x\"}\r\n\n" +
		"{\"doc_id\":2,\"url\":\"http://B.example\",\"priority\":7}"))
	f.Add([]byte("{\"doc_id\":\"a " +
		"b\",\"url\":\"http://a.example/x\"}\n{\"doc_id\":\"3\",\"url\":\"x\\u000ay\"}\nx\n[]\n"))
	f.Add([]byte(`{"doc_id":"1","url":"http://[::1]/\\ü?\"q=\u00fc #f"}`))
	f.Add([]byte(`{"doc_id":"1","url":"http://a.example/","payload":"aGk=","unique":1,"depth":"x"}` +
		"\n" + `{"doc_id":"2","url":"http://a.example/","payload":"?"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		const max = 3
		var b docindex.Batch
		if err := readCandidates(bytes.NewReader(body), "application/x-ndjson", max, &b); err != nil &&
			!errors.Is(err, ErrSurplus) {
			t.Errorf("error %v", err)
		}
		if n, all := b.Len()+b.EndedLen()+b.Skipped(), bytes.Count(body, []byte("\n"))+1; n > all || n > surplus*max {
			t.Errorf("%d lines are counted of %d", n, all)
		}
		var again []byte
		for i := range b.Len() {
			c := b.At(i)
			u, err := weburl.Parse(c.URL)
			if err != nil || !bytes.Equal(u.Text(), c.URL) || !protocol.ValidURL(c.URL) ||
				!protocol.ValidDocID(c.DocID) {
				t.Errorf("candidate %q %q breaks the protocol: %v", c.DocID, c.URL, err)
			}
			again = ndjson.AppendCandidate(again, c.DocID, c.URL, c.Priority, c.Spider, c.Payload)
		}
		for i := range b.EndedLen() {
			if id := b.EndedAt(i).DocID; !protocol.ValidDocID(id) {
				t.Errorf("an outcome is asked for DOC_ID %q", id)
			}
		}
		wantSame(t, &b, again)
	})
}

// wantSame reads text and compares it with the good ones of b.
func wantSame(t *testing.T, b *docindex.Batch, text []byte) {
	var got docindex.Batch
	if err := readCandidates(bytes.NewReader(text), "application/x-ndjson", max(b.Len(), 1),
		&got); err != nil || got.Len() != b.Len() {
		t.Fatalf("%q is read again as %d, %v; want %d", text, got.Len(), err, b.Len())
	}
	for i := range b.Len() {
		x, y := b.At(i), got.At(i)
		if !bytes.Equal(x.DocID, y.DocID) || !bytes.Equal(x.URL, y.URL) || x.Priority != y.Priority ||
			!bytes.Equal(x.Spider, y.Spider) || !bytes.Equal(x.Payload, y.Payload) {
			t.Errorf("%q is read again as %q", x, y)
		}
	}
}

func BenchmarkReadCandidates(b *testing.B) {
	var text []byte
	for i := range 1000 {
		url := "http://www.example.com/some/path/to/a/page-" + strings.Repeat("0", 20) + ".html"
		text = ndjson.AppendCandidate(text, []byte{'1', byte('0' + i%10)}, []byte(url), 0, nil, nil)
	}
	var batch docindex.Batch
	var in bytes.Reader
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		in.Reset(text)
		if err := readCandidates(&in, "application/x-ndjson", 1000, &batch); err != nil || batch.Len() != 1000 {
			b.Fatal(err, batch.Len())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/line")
}
