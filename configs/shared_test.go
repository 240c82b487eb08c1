package configs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuiltinShared reads the list in the program: each network once, and nothing that is no part
// of the internet.
func TestBuiltinShared(t *testing.T) {
	rules, err := parseShared("shared_networks.toml", builtinShared)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[netip.Prefix]string{}
	for _, r := range rules {
		if r.Name == "" {
			t.Errorf("%v has no name", r.Networks[0])
		}
		for _, n := range r.Networks {
			if seen[n] != "" {
				t.Errorf("%v is of %s and of %s", n, seen[n], r.Name)
			}
			if seen[n] = r.Name; n.Bits() < 8 || n.Addr().IsPrivate() || !n.Addr().IsGlobalUnicast() {
				t.Errorf("%s: %v is no network to share", r.Name, n)
			}
		}
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSharedNetworksFile replaces the list in the program by a file. Changes names the setting when
// the file's text has changed, too.
func TestSharedNetworksFile(t *testing.T) {
	load := func(list string) (Config, error) {
		path := writeFile(t, "list.toml", list)
		c, err := Load(writeFile(t, "u.toml", fmt.Sprintf("[politeness]\nshared_networks = %q\n", path)))
		c.Politeness.SharedNetworks = "list.toml" // a new folder each time is no change
		return c, err
	}
	one, err := load("[[rules]]\nnetworks = [\"192.0.2.0/24\"]\nshared = true\n")
	if err != nil {
		t.Fatal(err)
	}
	l := one.RuleSet().Limits([]byte("a.test"), netip.MustParseAddr("192.0.2.7"))
	if l.Shared == nil || *l.Shared != (SharedNetwork{"192.0.2.0/24", Pace{5, 10}}) {
		t.Errorf("192.0.2.7 is in %+v; want ten times the pace of a site", l.Shared)
	}
	two, err := load("[[rules]]\nnetworks = [\"192.0.2.0/24\"]\nshared = true\nper_sec = 7\n")
	if err != nil {
		t.Fatal(err)
	}
	if live, _ := Changes(one, two); fmt.Sprint(live) != "["+sharedKey+"]" || one.SameRules(two) {
		t.Errorf("another text of the file: Changes = %q, SameRules = %v", live, one.SameRules(two))
	}
	if live, _ := Changes(two, Apply(one, two)); len(live) > 0 || !two.SameRules(Apply(one, two)) {
		t.Errorf("after Apply there are changes: %q", live)
	}
	const network = "[[rules]]\nnetworks = [\"192.0.2.0/24\"]\n"
	for list, want := range map[string]string{
		network + "per_sec = 1\n":        "list.toml:1: rules: rule 1 has no shared = true",
		network + "block = \"shared\"\n": "list.toml:3: rules.block: is a string",
		"Queue_Len = 3\n": "list.toml:1: Queue_Len: a list of shared " +
			"networks has only [[rules]]",
		"[[rules]]\nnetworks = [\"x\"]\nshared = true\n": `list.toml:2: rules.networks: "x" is not a network`,
		"[[rules]]\nhosts = [\"a\"]\nshared = true\n": "list.toml:1: rules: a shared network has " +
			"networks and no hosts",
	} {
		if _, err := load(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %s", list, err, want)
		}
	}
	if _, err := Load(writeFile(t, "u.toml", "[politeness]\nshared_networks = \"/no/such\"\n")); err == nil ||
		!strings.HasPrefix(err.Error(), sharedKey+": ") {
		t.Errorf("no such file: %v", err)
	}
}

// TestLimits looks for what counts at each of the two levels.
func TestLimits(t *testing.T) {
	c := Default()
	c.Politeness.SharedNetworks = ""
	c.Rules = []HostRule{
		{Hosts: []string{"calm.test"}},                                       // 1: keeps later rules off the site
		{Networks: nets("192.0.2.0/25"), PerSec: 50, Concurrent: 20},         // 2
		{Hosts: []string{"fast.test"}, PerSec: 10},                           // 3
		{Networks: nets("192.0.2.0/24"), SitePerSec: 0.1},                    // 4
		{Hosts: []string{"*"}, Networks: nets("198.51.100.0/24"), PerSec: 3}, // 5
		{Networks: nets("198.51.100.0/24"), Block: true},                     // 6
		{Networks: nets("203.0.113.0/26"), Block: false},                     // 7: keeps later rules off both levels
		{Networks: nets("203.0.113.0/24", "2001:db8::/32"), Shared: true, Name: "cdn",
			Concurrent: 20}, // 8
		{Networks: nets("203.0.114.0/24"), Group: "one", PerSec: 9},   // 9
		{Networks: nets("203.0.115.0/24"), Shared: true, Name: "cdn"}, // 10
	}
	set := c.RuleSet()
	cdn := set.SharedNetworks()["cdn"]
	if cdn == nil || cdn.Pace != (Pace{5, 20}) {
		t.Fatalf("cdn is %+v; want the first rule's pace", cdn)
	}
	fast := HostLimits{Site: Pace{PerSec: 10}, Raises: true, SiteRule: 3}
	slow := HostLimits{Site: Pace{PerSec: 0.1}, SiteRule: 4}
	all := HostLimits{Site: Pace{PerSec: 3}, Raises: true, SiteRule: 5}
	at := func(l HostLimits, address Pace, n int) HostLimits {
		l.Address, l.AddressRule = address, n
		return l
	}
	in := func(l HostLimits, shared *SharedNetwork, n int) HostLimits {
		l.Shared, l.AddressRule = shared, n
		return l
	}
	for _, tc := range []struct {
		host, addr string
		want       HostLimits
	}{
		{"calm.test", "192.0.2.1", HostLimits{Raises: true, SiteRule: 1, Address: Pace{50, 20},
			AddressRule: 2}},
		{"fast.test", "192.0.2.1", at(fast, Pace{50, 20}, 2)},
		{"fast.test", "", fast},
		{"a.test", "192.0.2.1", at(slow, Pace{50, 20}, 2)},
		{"a.test", "192.0.2.200", at(slow, Pace{}, 4)},
		{"a.test", "198.51.100.1", at(all, Pace{PerSec: 3}, 5)},
		{"a.test", "10.0.0.1", all},
		{"a.test", "203.0.113.1", at(all, Pace{}, 7)},
		{"a.test", "203.0.113.200", in(all, cdn, 8)},
		{"a.test", "2001:db8::9", in(all, cdn, 8)},
		{"a.test", "203.0.115.1", in(all, cdn, 10)},
	} {
		addr, _ := netip.ParseAddr(tc.addr)
		if got := set.Limits([]byte(tc.host), addr); got != tc.want {
			t.Errorf("Limits(%s, %s) = %+v\nwant %+v", tc.host, tc.addr, got, tc.want)
		}
	}
	c.Rules = c.Rules[5:] // without the one for all hosts
	set = c.RuleSet()
	for addr, want := range map[string]HostLimits{
		"198.51.100.1": {Block: true, SiteRule: 1, AddressRule: 1},
		"203.0.113.1":  {SiteRule: 2, AddressRule: 2},
		"203.0.114.1":  {Group: "one", SiteRule: 4, Address: Pace{PerSec: 9}, AddressRule: 4},
		"10.0.0.1":     {},
	} {
		if got := set.Limits([]byte("a.test"), netip.MustParseAddr(addr)); got != want {
			t.Errorf("without names, %s: %+v\nwant %+v", addr, got, want)
		}
	}
}

// TestKnownSharedComeLast has a rule of the operator take addresses out of a shared network, and
// set its pace.
func TestKnownSharedComeLast(t *testing.T) {
	c := Default()
	c.Politeness.SitePerSec = 2
	c.Politeness.SharedNetworks = "list"
	c.shared = []HostRule{{Networks: nets("192.0.2.0/24"), Shared: true, Name: "cdn"}}
	limits := func(addr string) HostLimits {
		return c.RuleSet().Limits([]byte("a.test"), netip.MustParseAddr(addr))
	}
	if l := limits("192.0.2.1"); l.Shared == nil || l.Shared.Pace != (Pace{20, 10}) ||
		c.RuleSet().Name(l.AddressRule) != "shared network cdn" {
		t.Errorf("no rule: %+v", l)
	}
	c.Rules = []HostRule{
		{Networks: nets("192.0.2.9/32"), PerSec: 1},
		{Networks: nets("198.51.100.0/24"), Shared: true, Name: "cdn", PerSec: 3, Concurrent: 4},
	}
	if l := limits("192.0.2.9"); l.Shared != nil || l.Address != (Pace{PerSec: 1}) {
		t.Errorf("an address that a rule takes out: %+v", l)
	}
	if l := limits("192.0.2.8"); l.Shared == nil || l.Shared.Pace != (Pace{3, 4}) || l.AddressRule != 3 {
		t.Errorf("a network that a rule sets the pace of: %+v, %+v", l, l.Shared)
	}
	if name := c.RuleSet().Name(2); name != "[[rules]] 2 (cdn)" {
		t.Errorf("its rule is called %s", name)
	}
}
