package weburl

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// stricter lists the standard's cases that are refused here: DNS has no empty labels, and no
// registry accepts these signs.
var stricter = []string{"http://./", "http://../", "http://foo.09..", "http://foo.09../", "≠", "≮", "≯"}

// standardCase is a case of testdata/urltestdata.json. It has no href if the standard refuses the
// input.
type standardCase struct {
	Input, Href, Hostname, Port, Origin, Target string
	Failure                                     bool
}

func TestStandardCases(t *testing.T) {
	cases := load[standardCase](t, "urltestdata.json")
	fast := 0
	for _, c := range cases {
		t.Run(c.Input, func(t *testing.T) { checkStandard(t, c) })
		checkFastPath(t, []byte(c.Input))
		if _, ok := parsePlain([]byte(c.Input)); ok {
			fast++
		}
	}
	if fast < len(cases)/10 {
		t.Errorf("the fast path took %d of %d cases: too few to prove anything", fast, len(cases))
	}
}

func checkStandard(t *testing.T, c standardCase) {
	u, err := Parse([]byte(c.Input))
	if c.Failure || slices.Contains(stricter, c.Input) {
		if err == nil {
			t.Errorf("Parse(%q) = %q; want an error", c.Input, u.Text())
		}
		return
	}
	if err != nil {
		t.Fatalf("Parse(%q): %v; want %q", c.Input, err, c.Href)
	}
	if got, want := partsOf(u), c.parts(t); got != want {
		t.Errorf("Parse(%q)\n got %+v\nwant %+v", c.Input, got, want)
	}
}

// parts returns the parts that the case expects.
func (c standardCase) parts(t *testing.T) parts {
	scheme, _, _ := strings.Cut(c.Href, ":")
	p := parts{
		text: c.Href, scheme: scheme, host: strings.Trim(c.Hostname, "[]"),
		origin: scheme + "://" + c.Hostname,
		target: c.Target, port: map[string]uint16{"http": 80, "https": 443}[scheme],
	}
	if c.Port != "" {
		port, err := strconv.ParseUint(c.Port, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		p.origin, p.port = p.origin+":"+c.Port, uint16(port)
	}
	if c.Origin != "" && c.Origin != p.origin {
		t.Fatalf("the case contradicts itself: origin %q, from its parts %q", c.Origin, p.origin)
	}
	return p
}

func TestDomainToASCII(t *testing.T) {
	for _, c := range load[struct {
		Input  string
		Output *string
	}](t, "toascii.json") {
		t.Run(c.Input, func(t *testing.T) {
			raw := []byte("https://" + c.Input + "/")
			checkFastPath(t, raw)
			u, err := Parse(raw)
			if c.Output == nil || !fitsDNS(*c.Output) || slices.Contains(stricter, c.Input) {
				if err == nil {
					t.Errorf("host of %q = %q; want an error", raw, u.Host())
				}
			} else if err != nil || string(u.Host()) != *c.Output {
				t.Errorf("host of %q = %q, %v; want %q", raw, u.Host(), err, *c.Output)
			}
		})
	}
}

func fitsDNS(name string) bool {
	labels := strings.Split(name, ".")
	return len(name) <= 253 && !slices.ContainsFunc(labels,
		func(l string) bool { return l == "" || len(l) > 63 })
}

func load[T any](t *testing.T, name string) (cases []T) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return cases
}
