package configs

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	const text = `Queue_Len = 9
[[rules]]
hosts = ["Example.ORG.", "*.bücher.example", "[2001:DB8::1]", "*"]
per_sec = 0.1 # slow
concurrent = 9
[http]
token = "x"
[[Rules]]
Networks = ["192.0.2.0/24", "2001:db8::/32"]
block = true
[[rules]]
hosts = ['10.1.2.3']
block = false
[[rules]]
hosts = ["a.test"]
group = "Some_group-1"
[[rules]]
networks = ["203.0.113.0/24"]
shared = true
name = "cdn"
site_per_sec = 2
site_concurrent = 3
`
	want := []HostRule{
		{Hosts: []string{"example.org", "*.xn--bcher-kva.example", "2001:db8::1", "*"}, PerSec: 0.1,
			Concurrent: 9},
		{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"),
			netip.MustParsePrefix("2001:db8::/32")}, Block: true},
		{Hosts: []string{"10.1.2.3"}},
		{Hosts: []string{"a.test"}, Group: "Some_group-1"},
		{Networks: nets("203.0.113.0/24"), Shared: true, Name: "cdn", SitePerSec: 2, SiteConcurrent: 3},
	}
	c, err := Parse("u.toml", []byte(text))
	if err != nil || !reflect.DeepEqual(c.Rules, want) || c.HTTP.Token != "x" {
		t.Fatalf("got %+v, %v; want %+v", c.Rules, err, want)
	}
	again, err := Parse("again.toml", []byte(c.String()))
	if err != nil || !reflect.DeepEqual(again.Rules, want) {
		t.Errorf("String comes back as %+v, %v; want %+v", again.Rules, err, want)
	}
	if live, restart := Changes(Default(), c); fmt.Sprint(live, restart) != "[Queue_Len rules] [http.token]" {
		t.Errorf("Changes = %q, %q", live, restart)
	}
}

// badRules are settings with mistakes in rules.
var badRules = []struct {
	name, text string
	want       []string // "line: key: problem"
}{
	{name: "each rule by itself", text: `[[rules]]
hosts = ["a..b"]
per_sec = 0
[[rules]]
networks = ["10.0.0.1/8", "x"]
colour = "red"
per_sek = 1
[[rules]]
hosts = []
networks = ["10.0.0.1/8"]
concurrent = 1025
block = "yes"
group = "a b"
`, want: []string{
		`2: rules.hosts: "a..b" is no host`, `3: rules.per_sec: 0 is too small`,
		`5: rules.networks: "x" is not a network`, `6: rules.colour: no such key`,
		`7: rules.per_sek: no such key; did you mean rules.per_sec`,
		`9: rules.hosts: is empty`,
		`10: rules.networks: 10.0.0.1/8 has bits set behind its length: is 10.0.0.0/8 meant?`,
		`11: rules.concurrent: 1025 is too large`, `12: rules.block: is a string`,
		`13: rules.group: "a b" is no name of a group`,
	}},
	{name: "rules that lack something",
		text: "[[rules]]\nper_sec = 1\n[[rules]]\nhosts = [\"a.test\"]\n\n[[rules]]\n", want: []string{
			"1: rules: this rule is for no host", "3: rules: this rule says nothing",
			"6: rules: this rule is for no host",
		}},
	{name: "patterns", text: `rules = [{hosts = ["*.10.0.0.1"], block = true}]`,
		want: []string{`1: rules: rule 1: hosts "*.10.0.0.1": there is nothing below an IP address`}},
	{name: "a star within", text: "[[rules]]\nblock = true\nhosts = [\"a.*.test\"]",
		want: []string{`3: rules.hosts: "a.*.test" is no host`}},
	{name: "half a label", text: "[[rules]]\nblock = true\nhosts = [\"*a.test\"]",
		want: []string{`3: rules.hosts: "*a.test" is no host`}},
	{name: "a port", text: "[[rules]]\nblock = true\nhosts = [\"a.test:80\"]",
		want: []string{`3: rules.hosts: "a.test:80" is no host`}},
	{name: "nothing below", text: "[[rules]]\nblock = true\nhosts = [\"*.\"]",
		want: []string{`3: rules.hosts: "*." is no host`}},
	{name: "twice the same key", text: "[[rules]]\nblock = true\nBLOCK = true\nhosts = [\"a\"]",
		want: []string{"3: rules.block: already set on line 2"}},
	{name: "a table", text: "[rules]\nblock = true", want: []string{"1: rules: is a table here"}},
	{name: "an inline table", text: "rules = {block = true}", want: []string{"1: rules: is a table here"}},
	{name: "both forms", text: "rules = []\n[[rules]]\nhosts = [\"a\"]\nblock = true",
		want: []string{"2: rules: already set on line 1"}},
	{name: "no list", text: "rules = 7", want: []string{"1: rules: is a whole number"}},
	{name: "inline, says nothing", text: `rules = [{hosts = ["a"]}]`,
		want: []string{"1: rules: rule 1: this rule says nothing"}},
	{name: "inline, no such key", text: `rules = [{hosts = ["a"], blok = true}]`,
		want: []string{"1: rules: rule 1: no such key as blok"}},
	{name: "more than the queue", text: "Queue_Len = 4\n[[rules]]\nhosts = [\"a\"]\nconcurrent = 5",
		want: []string{
			"2: rules: rule 1: concurrent (5) is more than Queue_Len (4): the active " +
				"range is part of the queue"}},
	{name: "rules at odds with themselves", text: `[[rules]]
hosts = ["a"]
site_per_sec = 1
[[rules]]
hosts = ["a"]
networks = ["192.0.2.0/24"]
shared = true
[[rules]]
networks = ["192.0.2.0/24"]
group = "g"
shared = true
[[rules]]
networks = ["192.0.2.0/24"]
name = "n"
`, want: []string{
		"1: rules: site_per_sec and site_concurrent are for networks; in a rule with hosts, per_sec and " +
			"concurrent are the site's",
		"4: rules: a shared network has networks and no hosts; give the hosts a rule of their own",
		"8: rules: group makes one site of all hosts there, and shared says that " +
			"they are many strangers' sites",
		"12: rules: name is for a rule with shared = true",
	}},
	{name: "one name twice", text: `rules = [{networks = ["192.0.2.0/25"], shared = true, name = "n"},` +
		`{networks = ["192.0.2.128/25"], shared = true, name = "n"}]`,
		want: []string{`1: rules: rule 2: the shared network of rule 1 has the name "n" already`}},
	{name: "sites at odds with the queue", text: `Queue_Len = 4
[politeness]
site_concurrent = 5
[[rules]]
networks = ["192.0.2.0/24"]
site_concurrent = 6
concurrent = 1024
shared = true
`, want: []string{
		"3: politeness.site_concurrent: politeness.site_concurrent (5) is more than Queue_Len (4): " +
			"the active range is part of the queue",
		"4: rules: rule 1: site_concurrent (6) is more than Queue_Len (4): the active " +
			"range is part of the queue"}},
	{name: "no TOML in one", text: "[[rules]]\nhosts = [\"a\"\nblock = true\n", want: nil},
	{name: "no value in one", text: "[[rules]]\nhosts =\nblock = true\n",
		want: []string{"2: rules.hosts: no value behind the ="}},
}

// All mistakes in rules are told at once, each with its line.
func TestMistakesInRules(t *testing.T) {
	for _, tc := range badRules {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("u.toml", []byte(tc.text))
			all, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v; want mistakes", err)
			}
			if tc.want == nil {
				return
			}
			var got []string
			for _, m := range all.Mistakes {
				got = append(got, fmt.Sprintf("%d: %s: %s", m.Line, m.Key, m.Problem))
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("mistakes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestTooManyRules(t *testing.T) {
	c := Default()
	for range maxRules {
		c.Rules = append(c.Rules, HostRule{Hosts: []string{"a"}, Block: true})
	}
	if err := c.Validate(); err != nil {
		t.Errorf("%d rules: %v", maxRules, err)
	}
	c.Rules = append(c.Rules, c.Rules[0])
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "10001 rules are too many") {
		t.Errorf("one more: %v", err)
	}
}

func TestValidateRules(t *testing.T) {
	c := Default()
	c.Rules = []HostRule{{Hosts: []string{"a.test"}, Block: true}, {Hosts: []string{"A.test"}}}
	if err := c.Validate(); err == nil ||
		err.Error() != `rules: rule 2: hosts: "A.test" is no host in normal form; allowed: [[rules]] tables, up to 10000` {
		t.Errorf("Validate = %v", err)
	}
}
