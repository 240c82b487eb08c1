package configs

import (
	"strings"
	"testing"
)

func TestCrawls(t *testing.T) {
	const text = `[[crawls]]
id = "books"
domains = ["Example.org"]
max_depth = 0
until = 2030-01-01T01:00:00+01:00

[[Crawls]]
ID = "all \" of them"
until = "2030-01-01T00:00:00Z"
[[rules]]
hosts = ["a.example"]
block = true
`
	c, err := Parse("x.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{id = "books", domains = ["example.org"], max_depth = 0, until = 2030-01-01T00:00:00Z}, ` +
		`{id = "all \" of them", until = 2030-01-01T00:00:00Z}]`
	if got := crawls().text(c.Crawls); got != want || len(c.Rules) != 1 {
		t.Errorf("got %s; want %s", got, want)
	}
	again, err := Parse("x.toml", []byte("crawls = "+want))
	if got := crawls().text(again.Crawls); err != nil || got != want {
		t.Errorf("read back as %s, %v", got, err)
	}
}

// Mistakes in [[crawls]] are named with their line, all at once.
func TestBadCrawls(t *testing.T) {
	const text = `[[crawls]]
id = "a"
deny = ["ok",
  "("]
[[crawls]]
domains = ["b.example"]
[[crawls]]
id = "c"
depth = 3
[[crawls]]
id = "d"
max_depth = "x"
[[crawls]]
id = "e"
until = "tomorrow"
[[crawls]]
id = "f\u0000"
[[crawls]]
id = "g"
until = 0001-01-01T00:00:00Z
[[crawls]]
id = "h"
until = 12:00:00
`
	_, err := Parse("x.toml", []byte(text))
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{
		"x.toml:3: crawls: deny[1]: error parsing regexp: missing closing )", "x.toml:5: crawls: id is wanted",
		"x.toml:9: crawls.depth: no such key",
		"x.toml:12: crawls: max_depth: a JSON string is of the wrong type",
		"x.toml:15: crawls: until: \"tomorrow\" is no date and time",
		"x.toml:16: crawls: id is wanted", "x.toml:20: crawls: until: the first second of year 1",
		"x.toml:23: crawls: until: 12:00:00 has no date",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is\n%v\nwithout %s", err, want)
		}
	}
	_, err = Parse("x.toml", []byte("docindex.kind = \"http\"\ndocindex.url = \"http://a.example/\"\n"+
		"[[crawls]]\nid = \"a\"\n"))
	if err == nil || !strings.Contains(err.Error(), "an embedded index keeps the scopes") {
		t.Errorf("with an index elsewhere: %v", err)
	}
}
