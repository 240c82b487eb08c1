package robots

import (
	"fmt"
	"strings"
	"testing"
)

func TestFetch(t *testing.T) {
	redirect := func(to string) Response { return Response{Status: 301, Location: to} }
	for _, tc := range []struct {
		name    string
		answers []Response
		urls    []string // requested, in order
		final   int      // status of the final response
	}{
		{name: "straight", answers: []Response{{Status: 200}},
			urls: []string{"http://a.test/robots.txt"}, final: 200},
		{name: "no answer", answers: []Response{{}}, urls: []string{"http://a.test/robots.txt"}, final: 0},
		{
			name: "another authority",
			answers: []Response{redirect("https://www.a.test/robots.txt"),
				redirect("https://b.test/r"), {Status: 404}},
			urls: []string{"http://a.test/robots.txt", "https://www.a.test/robots.txt",
				"https://b.test/r"}, final: 404,
		},
		{
			name: "the fifth redirect is followed",
			answers: []Response{redirect("http://a.test/1"), redirect("http://a.test/2"),
				redirect("http://a.test/3"), redirect("http://a.test/4"),
				redirect("http://a.test/5"), {Status: 200}},
			urls: []string{"http://a.test/robots.txt", "http://a.test/1", "http://a.test/2",
				"http://a.test/3", "http://a.test/4", "http://a.test/5"}, final: 200,
		},
		{
			name: "the sixth is not",
			answers: []Response{redirect("http://a.test/1"), redirect("http://a.test/2"),
				redirect("http://a.test/3"), redirect("http://a.test/4"), redirect("http://a.test/5"),
				redirect("http://a.test/6")},
			urls: []string{"http://a.test/robots.txt", "http://a.test/1", "http://a.test/2",
				"http://a.test/3", "http://a.test/4", "http://a.test/5"}, final: 301,
		},
		{name: "to nowhere", answers: []Response{redirect("")},
			urls: []string{"http://a.test/robots.txt"}, final: 301},
		{name: "to another scheme", answers: []Response{redirect("ftp://a.test/")},
			urls: []string{"http://a.test/robots.txt"}, final: 301},
		{name: "no redirect has a Location", answers: []Response{{Status: 201,
			Location: "http://a.test/1"}}, urls: []string{"http://a.test/robots.txt"}, final: 201},
		{name: "other 3xx", answers: []Response{{Status: 300, Location: "http://a.test/1"}},
			urls: []string{"http://a.test/robots.txt"}, final: 300},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fetch := NewFetch("http://a.test")
			for i, resp := range tc.answers {
				if got := fetch.URL(); got != tc.urls[i] {
					t.Errorf("request %d is for %s, want %s", i, got, tc.urls[i])
				}
				next, final, done := fetch.Answer(resp)
				if want := i == len(tc.answers)-1; done != want {
					t.Fatalf("answer %d: done = %t, want %t", i, done, want)
				}
				if done && final.Status != tc.final {
					t.Errorf("ends with %d, want %d", final.Status, tc.final)
				}
				fetch = next
			}
			if got := fetch.Origin(); got != "http://a.test" {
				t.Errorf("the rules are for %s", got)
			}
		})
	}
}

func TestEveryRedirectStatus(t *testing.T) {
	followed := ""
	for status := range 1000 {
		if _, _, done := NewFetch("http://a.test").
			Answer(Response{Status: status, Location: "http://b.test/"}); !done {
			followed += fmt.Sprint(status, " ")
		}
	}
	if want := "301 302 303 307 308 "; followed != want {
		t.Errorf("followed: %s; want %s", followed, want)
	}
}

func TestResolveLocation(t *testing.T) {
	const base = "http://a.test:8080/robots.txt"
	for _, tc := range []struct {
		name     string
		location string
		want     string
	}{
		{name: "absolute", location: "https://b.test/r", want: "https://b.test/r"},
		{name: "path", location: "/r?q", want: "http://a.test:8080/r?q"},
		{name: "relative", location: "r", want: "http://a.test:8080/r"},
		{name: "host", location: "//b.test", want: "http://b.test/"},
		{name: "default port and upper case", location: "HTTP://B.Test:80/R", want: "http://b.test/R"},
		{name: "fragment", location: "/r#f", want: "http://a.test:8080/r"},
		{name: "credentials", location: "http://u:p@b.test/", want: "http://b.test/"},
		{name: "spaces", location: " /a b ", want: "http://a.test:8080/a%20b"},
		{name: "bytes", location: "/ツ", want: "http://a.test:8080/%E3%83%84"},
		{name: "name in Unicode", location: "http://bücher.test/", want: "http://xn--bcher-kva.test/"},
		{name: "IPv6", location: "http://[::1]:81/", want: "http://[::1]:81/"},
		{name: "none", location: "", want: ""},
		{name: "file", location: "file:///etc/passwd", want: ""},
		{name: "script", location: "javascript:alert(1)", want: ""},
		{name: "no host", location: "http://", want: ""},
		{name: "port out of range", location: "http://a.test:99999/", want: ""},
		{name: "too long", location: "/" + strings.Repeat("a", maxLocation), want: ""},
		{name: "too long when encoded", location: "/" + strings.Repeat(" ", maxLocation/2) + "x", want: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := resolveLocation(base, tc.location); got != tc.want {
				t.Errorf("%.40q leads to %.60q, want %q", tc.location, got, tc.want)
			}
		})
	}
}
