package ndjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func TestParseOutcome(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	whole := Outcome{DocID: []byte("1"), URL: []byte("u"), Word: []byte("done"), Status: 200, Attempts: 2, At: at}
	for _, c := range []struct {
		name, line string
		want       Outcome
		bad        bool
	}{
		{name: "whole", want: whole,
			line: `{"doc_id": "1", "url": "u", "outcome": "done", "status": 200, "attempts": 2, "at": "2026-01-02T03:04:05Z"}`},
		{name: "other zone, escapes, more members", want: whole,
			line: `{"doc_id": 1, "url": "\u0075", "outcome": "done", "status": 200, "attempts": 2, "at": "2026-01-02T04:04:05+01:00", "x": []}`},
		{name: "little", line: `{"doc_id":"1","outcome":"dns"}`,
			want: Outcome{DocID: []byte("1"), Word: []byte("dns"), NoStatus: true}},
		{name: "nulls", line: `{"doc_id":"1","url":null,"outcome":"dns","status":null,"at":null,"changed":null}`,
			want: Outcome{DocID: []byte("1"), Word: []byte("dns"), NoStatus: true}},
		{name: "no answer", line: `{"doc_id":"1","status":0}`, want: Outcome{DocID: []byte("1")}},
		{name: "changed", line: `{"doc_id":"1","status":200,"changed":true}`,
			want: Outcome{DocID: []byte("1"), Status: 200, Changed: true, HasChanged: true}},
		{name: "not changed", line: `{"doc_id":"1","status":304, "changed" : false }`,
			want: Outcome{DocID: []byte("1"), Status: 304, HasChanged: true}},
		{name: "string for changed", line: `{"doc_id":"1","changed":"true"}`, bad: true},
		{name: "number for changed", line: `{"doc_id":"1","changed":1}`, bad: true},
		{name: "negative status", line: `{"status":-1}`, bad: true},
		{name: "string for a status", line: `{"status":"200"}`, bad: true},
		{name: "huge count", line: `{"attempts":1000000000}`, bad: true},
		{name: "fraction", line: `{"attempts":1.5}`, bad: true},
		{name: "no time", line: `{"at":"yesterday"}`, bad: true},
		{name: "empty time", line: `{"at":""}`, bad: true},
		{name: "number for a time", line: `{"at":1767323045}`, bad: true},
		{name: "list for an id", line: `{"doc_id":[]}`, bad: true},
		{name: "number for a word", line: `{"outcome":1}`, bad: true},
		{name: "no JSON", line: `done`, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseOutcome([]byte(c.line))
			if err != nil != c.bad || !c.bad && !sameOutcome(got, c.want) {
				t.Errorf("ParseOutcome(%s) = %+v, %v; want %+v, an error: %v", c.line, got, err, c.want, c.bad)
			}
		})
	}
}

func sameOutcome(a, b Outcome) bool {
	return bytes.Equal(a.DocID, b.DocID) && bytes.Equal(a.URL, b.URL) && bytes.Equal(a.Word, b.Word) &&
		a.Status == b.Status && a.NoStatus == b.NoStatus && a.Changed == b.Changed &&
		a.HasChanged == b.HasChanged && a.Attempts == b.Attempts && a.At.Equal(b.At)
}

// FuzzOutcome compares the fast parser with encoding/json.
func FuzzOutcome(f *testing.F) {
	f.Add([]byte(`{"doc_id": "1", "url": "u", "outcome": "done", "status": 200, "attempts": 2, "at": "2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"doc_id":1,"status":-0,"at":"2026-01-02T03:04:05.5+01:00"}`))
	f.Add([]byte(`{"outcome":"x","outcome":1}`))
	f.Add([]byte(`{"status":1,"changed":true,"status":null}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		fast, ok := fastOutcome(line)
		slow, err := slowOutcome(line)
		if ok && (err != nil || !sameOutcome(fast, slow)) {
			t.Errorf("%q is read as %+v, but is %+v, %v", line, fast, slow, err)
		}
	})
}

func TestAppend(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{name: "candidate", got: AppendCandidate(nil, []byte("1"), []byte("http://a/"), 0, nil, nil),
			want: `{"doc_id":"1","url":"http://a/"}`},
		{name: "priority", got: AppendCandidate(nil, []byte("1"), []byte("u"), -3, []byte("link"), []byte{251, 255}),
			want: `{"doc_id":"1","url":"u","priority":-3,"spiderid":"link","payload":"+/8="}`},
		{name: "characters to escape", got: AppendCandidate(nil, []byte(`a"b\c`), []byte("\n\xff"), 0, nil, nil),
			want: `{"doc_id":"a\"b\\c","url":"\n\ufffd"}`},
		{name: "outcome", got: AppendOutcome(nil, Outcome{DocID: []byte("1"), URL: []byte("u"),
			Word: []byte("done"), Status: 200, Attempts: 1, At: at}),
			want: `{"doc_id":"1","url":"u","outcome":"done","status":200,"attempts":1,"at":"2026-01-02T02:04:05Z"}`},
		{name: "outcome without time", got: AppendOutcome(nil, Outcome{DocID: []byte("1"), Word: []byte("dns")}),
			want: `{"doc_id":"1","url":"","outcome":"dns","status":0,"attempts":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if string(c.got) != c.want+"\n" {
				t.Errorf("got %s; want %s", c.got, c.want)
			}
			if !json.Valid(c.got) {
				t.Errorf("%s is not JSON", c.got)
			}
		})
	}
}

func BenchmarkParseOutcome(b *testing.B) {
	line := fmt.Appendf(nil,
		`{"doc_id":"%d","url":"http://www.example.com/%050d","outcome":"done","status":200,"attempts":1,"at":"2026-01-02T03:04:05Z"}`, 12345678, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseOutcome(line); err != nil {
			b.Fatal(err)
		}
	}
}
