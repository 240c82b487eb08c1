package scope_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/internal/scope"
	"urlserver/internal/weburl"
)

func parse(t testing.TB, text string) *scope.Rules {
	t.Helper()
	s, err := scope.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	r, err := scope.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hostOf(t testing.TB, url string) []byte {
	u, err := weburl.Parse([]byte(url))
	if err != nil {
		t.Fatal(err)
	}
	return u.Host()
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		scope, url string
		depth      int
		want       scope.Rule
	}{
		{scope: `{}`, url: "http://any.example/", depth: 9},
		{scope: `{"domains":["Example.org"]}`, url: "http://example.org/"},
		{scope: `{"domains":["example.org"]}`, url: "https://a.b.example.org:8443/x"},
		{scope: `{"domains":["example.org"]}`, url: "http://a.example.org./"},
		{scope: `{"domains":["example.org"]}`, url: "http://badexample.org/", want: scope.Domain},
		{scope: `{"domains":["example.org"]}`, url: "http://org/", want: scope.Domain},
		{scope: `{"domains":["bücher.example"]}`, url: "http://www.xn--bcher-kva.example/"},
		{scope: `{"domains":["192.0.2.1"]}`, url: "http://192.0.2.1/x"},
		{scope: `{"domains":["[::1]"]}`, url: "http://[::1]:80/x"},
		{scope: `{"hosts":["example.org"]}`, url: "http://www.example.org/", want: scope.Domain},
		{scope: `{"hosts":["example.org"]}`, url: "http://example.org/"},
		{scope: `{"hosts":["a.example"],"domains":["b.example"]}`, url: "http://c.b.example/"},
		{scope: `{"surts":["http://(org,example,)/docs/"]}`, url: "https://example.org/Docs/a"},
		{scope: `{"surts":["http://(org,example,)/docs/"]}`, url: "http://example.org/doc", want: scope.Domain},
		{scope: `{"surts":["http://(org,example,)/docs/"]}`, url: "http://www.example.org/docs/",
			want: scope.Domain},
		{scope: `{"surts":["https://(org,example,"]}`, url: "http://www.example.org/x"},
		{scope: `{"surts":["http://(org,example,"]}`, url: "http://example.org:8080/x"},
		{scope: `{"surts":["http://(org,example,)"]}`, url: "http://example.org:8080/x", want: scope.Domain},
		{scope: `{"surts":["http://(org,example,:8080@me)/"]}`, url: "http://me@example.org:8080/x"},
		{scope: `{"surts":["http://(org,example,:80)/"]}`, url: "http://example.org:80/x"},
		{scope: `{"surts":["https://(org,example,:443@me)/"]}`, url: "https://me@example.org/x"},
		{scope: `{"surts":["http://(org,example,:443)/"]}`, url: "http://example.org:443/x"},
		{scope: `{"surts":["http://(org,example,:443)/"]}`, url: "http://example.org/x", want: scope.Domain},
		{scope: `{"surts":["http://(org,example,:80"]}`, url: "http://example.org:8080/x"},
		{scope: `{"surts":["http://(192.0.2.1)/"]}`, url: "http://192.0.2.1/"},
		{scope: `{"surts":["http://([::1],"]}`, url: "http://[::1]/"},
		{scope: `{"surts":["http://(org,a,","http://(org,a,)/x","http://(org,c,"]}`, url: "http://b.a.org/"},
		{scope: `{"max_depth":0}`, url: "http://a.example/"},
		{scope: `{"max_depth":0}`, url: "http://a.example/", depth: 1, want: scope.Depth},
		{scope: `{"deny":["/calendar/"]}`, url: "http://a.example/calendar/2020", want: scope.Deny},
		{scope: `{"deny":["(?i)/CALENDAR/\\d"]}`, url: "http://a.example/calendar/2020", want: scope.Deny},
		{scope: `{"deny":["sid=[0-9a-f]{8}"]}`, url: "http://a.example/?sid=xyz"},
		{scope: `{"deny":["^http://a\\."]}`, url: "http://a.example/", want: scope.Deny},
		{scope: `{"deny":["\\.(jpe?g|png)$"]}`, url: "http://a.example/x.jpeg", want: scope.Deny},
		{scope: `{"deny":["(a|b)+c*"]}`, url: "http://x.x/", want: scope.InScope},
		{scope: `{"allow":["/a/","/b/"]}`, url: "http://x.example/b/"},
		{scope: `{"allow":["/a/"]}`, url: "http://x.example/b/", want: scope.Allow},
		{scope: `{"deny_extensions":[".JPG","tar.gz"]}`, url: "http://a.example/x.Jpg?y=z", want: scope.Extension},
		{scope: `{"deny_extensions":["tar.gz"]}`, url: "http://a.example/x.tar.gz", want: scope.Extension},
		{scope: `{"deny_extensions":["gz"]}`, url: "http://a.example/?x.gz"},
		{scope: `{"deny_extensions":["example"]}`, url: "http://a.example"},
		{scope: `{"deny_extensions":["jpg"]}`, url: "http://a.example/x.jpg/"},
		{scope: `{"until":"1970-01-01T00:16:40Z"}`, url: "http://a.example/", want: scope.Until},
		{scope: `{"until":"1970-01-01T00:16:41Z"}`, url: "http://a.example/"},
	} {
		if got := parse(t, c.scope).Check([]byte(c.url), hostOf(t, c.url), c.depth, 1000); got != c.want {
			t.Errorf("%s: %s at depth %d: %v; want %v", c.scope, c.url, c.depth, got, c.want)
		}
	}
}

// A bad scope is refused with the place and the reason.
func TestBad(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for text, want := range map[string]string{
		``:                              "EOF",
		`[]`:                            "an object is wanted",
		`{"domain":["a"]}`:              `unknown field "domain"`,
		`{"domains":"a"}`:               "domains: a JSON string is of the wrong type",
		`{} {}`:                         "more behind",
		`{"domains":["a","http://b/"]}`: `domains[1]: "http://b/" is not a host name`,
		`{"domains":["*.b.example"]}`:   `domains[0]: "*.b.example": a domain covers all hosts below it; write "b.example"`,
		`{"hosts":["b:80"]}`:            "hosts[0]:",
		`{"surts":["http://org,a"]}`:    `surts[0]: "http://org,a" does not begin with http://(`,
		`{"surts":["http://(org,a)b"]}`: "surts[0]:",
		`{"surts":["http://(org/a)"]}`:  "surts[0]:",
		`{"surts":["http://(a.org)/"]}`: `surts[0]: "http://(a.org)/": the labels of a host are in reverse`,
		`{"allow":["a","("]}`:           "allow[1]: error parsing regexp: missing closing )",
		`{"deny":["` + long + `"]}`:     "deny[0]: the pattern has 3000 bytes; at most 1000",
		`{"deny":[""]}`:                 "deny[0]: the pattern is empty",
		`{"deny":["(\\d{900}|b){1,1}x{900}","(y|[0-9]{999}){1}` + strings.Repeat("[0-9]{999}", 30) + `"]}`: "deny[1]: the patterns of the scope are too complex",
		`{"deny_extensions":["a/b"]}`: "deny_extensions[0]:",
		`{"max_depth":-1}`:            "max_depth: -1 is not from 0",
		`{"max_depth":1.5}`:           "max_depth: a JSON number 1.5 is of the wrong type",
		`{"max_pages":-1}`:            "max_pages: -1",
		`{"max_pages_domain":-1}`:     "max_pages_domain: -1",
		`{"until":"tomorrow"}`: `until: "tomorrow" is no date and time as in RFC 3339, ` +
			"for instance 2030-01-01T00:00:00Z",
		`{"until":7}`:                                               "until: 7 is no date and time",
		`{"until":"0001-01-01T00:00:00Z"}`:                          "until: the first second of year 1 is no end of a crawl",
		`{"UNTIL":"0001-01-01T01:00:00+01:00"}`:                     "until: the first second of year 1",
		`{"domains":["a",1],"hosts":"b"}`:                           "domains[1]: a JSON number is of the wrong type",
		`{"x":"` + long + strings.Repeat("y", scope.MaxText) + `"}`: "at most 131072",
		`{"deny":[` + strings.Repeat(`"a",`, 1000) + `"b"]}`:        "deny: it has 1001 members; at most 1000",
	} {
		if _, err := scope.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v; want %s", text, err, want)
		}
	}
	_, err := scope.Parse([]byte(`{"deny":["ok","["]}`))
	if f, ok := errors.AsType[*scope.Fault](err); !ok || f.Member != "deny" || f.Index != 1 {
		t.Errorf("the fault is %+v", f)
	}
}

// A scope comes back as it was set, in its one form.
func TestNormal(t *testing.T) {
	text := `{"domains":["B.example","a.example.","b.example"],"hosts":["[::1]"],"surts":["HTTPS://(ORG,A,"],` +
		`"allow":["b","a"],"deny_extensions":[".GIF"],"max_depth":0,"max_pages":7,"until":"2030-01-01T01:00:00+01:00"}`
	want := `{"domains":["a.example","b.example"],"hosts":["::1"],"surts":["http://(org,a,"],"allow":["a","b"],` +
		`"deny":[],"deny_extensions":["gif"],"max_depth":0,"max_pages":7,"until":"2030-01-01T00:00:00Z"}`
	r := parse(t, text)
	if got := string(r.Scope.Text()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(parse(t, want).Scope.Text()); got != want {
		t.Errorf("the form is not one: %s", got)
	}
	if s := parse(t, "{}").Scope; !s.Empty() || r.Scope.Empty() {
		t.Error("an empty scope is not Empty, or another one is")
	}
}

// BenchmarkCheck is ten patterns, of which no URL matches any.
func BenchmarkCheck(b *testing.B) {
	var deny []string
	for i := range 10 {
		deny = append(deny, fmt.Sprintf(`/calendar%d/\d{4}`, i))
	}
	text, _ := json.Marshal(deny)
	r := parse(b, `{"domains":["example.org"],"max_depth":5,"deny":`+string(text)+`}`)
	url := []byte("https://www.example.org/some/folder/of/the/site/page-12345.html?id=77")
	host, now := hostOf(b, string(url)), time.Now().Unix()
	b.ReportAllocs()
	for b.Loop() {
		if r.Check(url, host, 3, now) != scope.InScope {
			b.Fatal("out of scope")
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	r := parse(t, `{"domains":["a.example"],"surts":["http://(org,example,","http://(org,f,"],
		"deny":["x\\d","\\dy"],"deny_extensions":["gif"]}`)
	url := []byte("https://www.example.org/some/page.html")
	host := hostOf(t, string(url))
	if n := testing.AllocsPerRun(100, func() { r.Check(url, host, 1, 1) }); n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}
