package ndjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

func TestParseDocument(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       Document
		bad        bool
	}{
		{name: "plain", line: `{"doc_id":"1","url":"http://a/"}`, want: doc("1", "http://a/", 0)},
		{name: "spaces", line: ` { "doc_id" : "1" ,	"url": "u" } `, want: doc("1", "u", 0)},
		{name: "other order", line: `{"priority":-7,"url":"u","doc_id":"1"}`, want: doc("1", "u", -7)},
		{name: "numeric id", line: `{"doc_id":123,"url":"u"}`, want: doc("123", "u", 0)},
		{name: "huge numeric id", line: `{"doc_id":123456789012345678901234567890,"url":"u"}`,
			want: doc("123456789012345678901234567890", "u", 0)},
		{name: "negative id", line: `{"doc_id":-5,"url":"u"}`, want: doc("-5", "u", 0)},
		{name: "fraction for an id", line: `{"doc_id":1.5,"url":"u"}`, want: doc("", "u", 0), bad: true},
		{name: "exponent in an id", line: `{"doc_id":1e3,"url":"u"}`, want: doc("", "u", 0), bad: true},
		{name: "list for an id", line: `{"doc_id":[1],"url":"u"}`, want: doc("", "u", 0), bad: true},
		{name: "leading zero", line: `{"doc_id":01,"url":"u"}`, bad: true},
		{name: "escapes", line: `{"doc_id":"\u0031\"","url":"a\/b"}`, want: doc(`1"`, "a/b", 0)},
		{name: "escaped key", line: `{"\u0075rl":"u"}`, want: doc("", "u", 0)},
		{name: "key in capitals", line: `{"URL":"u"}`, want: doc("", "u", 0)},
		{name: "not ASCII", line: `{"url":"ü"}`, want: doc("", "ü", 0)},
		{name: "null", line: `{"doc_id":null,"url":null,"priority":null}`},
		{name: "twice", line: `{"url":"a","url":"b"}`, want: doc("", "b", 0)},
		{name: "unknown members", line: `{"x":{"y":[1,"}"]},"url":"u","z":1.5e9}`, want: doc("", "u", 0)},
		{name: "huge priority", line: `{"priority":99999999999999999999}`, want: doc("", "", math.MaxInt32)},
		{name: "tiny priority", line: `{"priority":-2147483649}`, want: doc("", "", math.MinInt32)},
		{name: "fraction for a priority", line: `{"doc_id":"1","url":"u","priority":1.5}`,
			want: doc("1", "u", 0), bad: true},
		{name: "string for a priority", line: `{"doc_id":"1","url":"u","priority":"1"}`,
			want: doc("1", "u", 0), bad: true},
		{name: "number for a URL", line: `{"doc_id":"1","url":5}`, want: doc("1", "", 0), bad: true},
		{name: "number for a key", line: `{"doc_id":"1","url":"u","key":5}`, want: doc("1", "u", 0), bad: true},
		{name: "extra", line: `{"url":"u","crawl":"c","key":"k","metadata":{"a": ["b"]}}`,
			want: Document{URL: []byte("u"), Crawl: []byte("c"), Key: []byte("k"), Metadata: []byte(`{"a": ["b"]}`)}},
		{name: "empty object", line: `{}`},
		{name: "empty line", line: ``, bad: true},
		{name: "list", line: `[{"url":"u"}]`, bad: true},
		{name: "two objects", line: `{"url":"u"}{"url":"v"}`, bad: true},
		{name: "cut off", line: `{"doc_id":"1","url":"htt`, bad: true},
		{name: "trailing comma", line: `{"url":"u",}`, bad: true},
		{name: "no comma", line: `{"url":"u" "doc_id":"1"}`, bad: true},
		{name: "control character", line: "{\"url\":\"u\x01\"}", bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseDocument([]byte(c.line))
			if !sameDocument(got, c.want) || err != nil != c.bad {
				t.Errorf("ParseDocument(%s) = %s, %v; want %s, an error: %v", c.line, show(got), err,
					show(c.want), c.bad)
			}
		})
	}
}

// TestNoObject wants errors that name what a line is, without types of Go.
func TestNoObject(t *testing.T) {
	for line, want := range map[string]string{
		`["http://a.example/"]`: "not a JSON object but array",
		`"http://a.example/"`:   "not a JSON object but string",
		`{"url":`:               "not a JSON object: unexpected end of JSON input",
	} {
		if _, err := ParseDocument([]byte(line)); err == nil || err.Error() != want {
			t.Errorf("ParseDocument(%s) = %v; want %s", line, err, want)
		}
		if _, err := ParseOutcome([]byte(line)); err == nil || err.Error() != want {
			t.Errorf("ParseOutcome(%s) = %v; want %s", line, err, want)
		}
	}
}

// TestFast checks that the fast parser takes the lines that are common.
func TestFast(t *testing.T) {
	for _, line := range []string{
		`{"doc_id": "123", "url": "http://c.example/x?y=z&a=%20"}`,
		`{"url":"http://c.example/","doc_id":123,"priority":-5}`,
		`{"url":"http://c.example/","crawl":"c","key":"k","spiderid":"link"}`,
		`{"url":"http://c.example/","unique":"u","depth":3,"due":"now","payload":"aGk+/w=="}`,
	} {
		if _, ok := fastDocument([]byte(line)); !ok {
			t.Errorf("%s is not read the fast way", line)
		}
	}
	if _, ok := fastOutcome(
		[]byte(`{"doc_id": "1", "url": "u", "outcome": "done", "status": 200, "attempts": 1, "at": "2026-01-02T03:04:05Z"}`)); !ok {
		t.Error("an outcome is not read the fast way")
	}
}

func doc(id, url string, priority int32) Document {
	return Document{DocID: []byte(id), URL: []byte(url), Priority: priority}
}

func sameDocument(a, b Document) bool {
	return bytes.Equal(a.DocID, b.DocID) && bytes.Equal(a.URL, b.URL) && a.Priority == b.Priority &&
		bytes.Equal(a.Crawl, b.Crawl) && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.SpiderID, b.SpiderID) &&
		bytes.Equal(a.Metadata, b.Metadata) && bytes.Equal(a.Payload, b.Payload) && bytes.Equal(a.Unique, b.Unique) &&
		bytes.Equal(a.Due, b.Due) && a.Depth == b.Depth && (a.PutError != nil) == (b.PutError != nil)
}

func show(d Document) string { return fmt.Sprintf("%q", d) }

// FuzzDocument compares the fast parser with encoding/json.
func FuzzDocument(f *testing.F) {
	for _, line := range []string{
		`{"doc_id":"1","url":"http://a/","priority":3}`,
		`{"doc_id":1,"crawl":"c","key":"k","spiderid":"link","doc_id":"2"}`,
		`{"doc_id" : -0 , "priority":-99999999999}`,
		`{"url":"\u0061","URL":"x"}`,
		`{"url":"u","unique":"\u0061","depth":-1,"due":"2030-01-01T00:00:00Z","payload":"aGk="}`,
		`{"url":"u","unique":1,"depth":"x","due":{},"payload":[]}`,
		`{}`, `{"url":"u",}`, `{"a":1}`, "{\"url\":\"\x7f\"}",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		fast, ok := fastDocument(line)
		slow, err := slowDocument(line)
		if ok && (err != nil || !sameDocument(fast, slow)) {
			t.Errorf("%q is read as %s, but is %s, %v", line, show(fast), show(slow), err)
		}
		if err != nil || len(slow.DocID) == 0 || !json.Valid(line) {
			return
		}
		// A document that is parsed, written and parsed again is the same.
		again, err := ParseDocument(bytes.TrimSuffix(AppendCandidate(nil, slow.DocID, slow.URL,
			slow.Priority, slow.SpiderID, nil), []byte("\n")))
		want := Document{DocID: slow.DocID, URL: slow.URL, Priority: slow.Priority, SpiderID: slow.SpiderID}
		if err != nil || !sameDocument(again, want) {
			t.Errorf("%s is written so that it reads %s, %v", show(want), show(again), err)
		}
	})
}

func BenchmarkParseDocument(b *testing.B) {
	line := AppendCandidate(nil, []byte("12345678"),
		[]byte("http://www.example.com/some/path/to/a/page-0000000000000000001234.html"), 0, nil, nil)
	line = bytes.TrimSuffix(line, []byte("\n"))
	for _, c := range []struct {
		name  string
		parse func([]byte) (Document, error)
	}{
		{name: "ours", parse: ParseDocument},
		{name: "encoding/json", parse: slowDocument},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d, err := c.parse(line); err != nil || len(d.URL) != 70 {
					b.Fatal(d, err)
				}
			}
		})
	}
}
