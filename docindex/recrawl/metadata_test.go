package recrawl

import (
	"strings"
	"testing"

	"urlserver/docindex"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, metadata string
		want           schedule
		ok             bool
	}{
		{name: "nothing"},
		{name: "others", metadata: `{"a":["1","2","3"]}`},
		{name: "whole", metadata: `{"a":["b"],"refetch":["3600","2","1767323045000"]}`, ok: true,
			want: schedule{interval: hour, errors: 2, ended: 1767323045000}},
		{name: "zeros", metadata: `{"refetch":["0","0","0"]}`, ok: true},
		{name: "bounds", metadata: `{"refetch":["31536000","1000","9223372036854775807"]}`, ok: true,
			want: schedule{interval: longest, errors: maxRow, ended: 1<<63 - 1}},
		{name: "longer", metadata: `{"refetch":["31536001","0","0"]}`},
		{name: "more errors", metadata: `{"refetch":["1","1001","0"]}`},
		{name: "negative", metadata: `{"refetch":["-1","0","0"]}`},
		{name: "huge", metadata: `{"refetch":["1","0","9223372036854775808"]}`},
		{name: "too few", metadata: `{"refetch":["1","0"]}`},
		{name: "too many", metadata: `{"refetch":["1","0","0","0"]}`},
		{name: "empty", metadata: `{"refetch":[]}`},
		{name: "a word", metadata: `{"refetch":["1h","0","0"]}`},
		{name: "no JSON", metadata: `refetch`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := read([]byte(c.metadata)); got != c.want || ok != c.ok {
				t.Errorf("read(%s) = %+v, %v; want %+v, %v", c.metadata, got, ok, c.want, c.ok)
			}
		})
	}
}

func TestWith(t *testing.T) {
	s := schedule{interval: hour, errors: 2, ended: 7}
	for _, c := range []struct{ name, before, after string }{
		{name: "nothing", after: `{"refetch":["3600","2","7"]}`},
		{name: "empty", before: `{}`, after: `{"refetch":["3600","2","7"]}`},
		{name: "others", before: `{"<":["\u003c"],"empty":[],"z":["1","2"]}`,
			after: `{"\u003c":["\u003c"],"empty":[],"refetch":["3600","2","7"],"z":["1","2"]}`},
		{name: "the one before", before: `{"a":["b"],"refetch":["1","0","9"]}`,
			after: `{"a":["b"],"refetch":["3600","2","7"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := s.with(&docindex.Document{Put: docindex.Put{Metadata: []byte(c.before)}}); string(
				got) != c.after {
				t.Errorf("%s becomes %s; want %s", c.before, got, c.after)
			}
		})
	}
}

// No document gets more than it may have.
func TestWithNoRoom(t *testing.T) {
	own := len(`"refetch":["3600","2","7"],`)
	for _, extra := range []int{0, 1} {
		long := `{"x":["` + strings.Repeat("x", docindex.MaxExtra-len(`{"x":[""]}kkkccc`)-own+extra) + `"]}`
		d := docindex.Document{Put: docindex.Put{Metadata: []byte(long), Key: []byte("kkk"), Crawl: []byte("ccc")}}
		got := schedule{interval: hour, errors: 2, ended: 7}.with(&d)
		if kept := len(got) == len(long)+own; kept != (extra == 0) || !kept && string(got) != long {
			t.Errorf("%d bytes of metadata become %d", len(long), len(got))
		}
	}
}
