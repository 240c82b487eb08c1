package configs

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	c, err := Parse("x.toml", []byte(`[[canonical]]
hosts = ["*"]
drop = ["utm_*", "fbclid"]
[[crawls]]
id = "a"
[[Canonical]]
Drop = ["sid"]
Hosts = ["Bücher.example", "*.shop.example."]
[[rules]]
hosts = ["a.example"]
block = true
`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{hosts = ["*"], drop = ["utm_*", "fbclid"]}, ` +
		`{hosts = ["xn--bcher-kva.example", "*.shop.example"], drop = ["sid"]}]`
	if got := canonicals().text(c.Canonical); got != want || len(c.Rules) != 1 || len(c.Crawls) != 1 {
		t.Errorf("got %s; want %s", got, want)
	}
	again, err := Parse("x.toml", []byte("canonical = "+want))
	if got := canonicals().text(again.Canonical); err != nil || got != want {
		t.Errorf("read back as %s, %v", got, err)
	}
	if _, restart := Changes(Default(), c); !strings.Contains(strings.Join(restart, " "), canonicalKey) {
		t.Errorf("%q need a restart", restart)
	}
}

// Mistakes in [[canonical]] are named with their line, all at once.
func TestBadCanonical(t *testing.T) {
	_, err := Parse("x.toml", []byte(`[[canonical]]
hosts = ["*"]
drop = ["a",
  "b=c"]
[[canonical]]
hosts = ["*"]
[[canonical]]
hosts = ["a.*.example"]
drop = ["a"]
[[canonical]]
hosts = ["a.example"]
drop = "a"
[[canonical]]
keep = ["a"]
`))
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{
		`x.toml:3: canonical: drop[1]: "b=c": a parameter's name is printable ASCII`,
		"x.toml:5: canonical: hosts and drop are wanted", `x.toml:8: canonical: hosts: "a.*.example" is no host`,
		"x.toml:12: canonical: drop: ", "x.toml:14: canonical.keep: no such key",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is\n%v\nwithout %s", err, want)
		}
	}
	_, err = Parse("x.toml", []byte("docindex.kind = \"http\"\ndocindex.url = \"http://a.example/\"\n"+
		"[[canonical]]\nhosts = [\"*\"]\ndrop = [\"a\"]\n"))
	if err == nil || !strings.Contains(err.Error(), "an embedded index decides what URLs are known by") {
		t.Errorf("with an index elsewhere: %v", err)
	}
}
