package demo

import (
	"slices"
	"testing"

	"github.com/nlnwa/whatwg-url/url"
)

func TestLinks(t *testing.T) {
	tests := []struct {
		name string
		a    answer
		want []string
	}{
		{name: "page", a: page("", `<a href="x.html">`), want: []string{"http://a.test/d/x.html"}},
		{name: "text", a: answer{status: 200, kind: "text/plain", body: []byte(`<a href="x.html">`)}},
		{name: "error page", a: answer{status: 404, kind: "text/html", body: []byte(`<a href="x.html">`)}},
		{name: "redirect", a: goTo(301, "../x"), want: []string{"http://a.test/x"}},
		{name: "all kinds",
			a: page("", `<area href=1><iframe src=2></iframe><frame src=3><link rel=next href=4><link rel="a canonical" href=5><link rel=prev href=6>`),
			want: []string{"http://a.test/d/1", "http://a.test/d/2", "http://a.test/d/3",
				"http://a.test/d/4", "http://a.test/d/5", "http://a.test/d/6"}},
		{name: "what is no link",
			a: page("", `<img src=1><script src=2></script><link rel=stylesheet href=3><form action=4></form><a name=5><a href=""><a href="#x">`)},
		{name: "nofollow", a: page("", `<a rel="x NOFOLLOW" href=1><a href=2>`),
			want: []string{"http://a.test/d/2"}},
		{name: "meta nofollow", a: page("", `<meta name=Robots content="noindex,NoFollow"><a href=1>`)},
		{name: "meta none", a: page("", `<a href=1><meta name=urlserver content=none>`)},
		{name: "meta of another", a: page("", `<meta name=otherbot content=none><a href=1>`),
			want: []string{"http://a.test/d/1"}},
		{name: "header", a: answer{status: 200, kind: "text/html", robotsTag: "nofollow",
			body: []byte(`<a href=1>`)}},
		{name: "base behind the link", a: page("", `<a href=1><base href="/e/"><base href="/f/">`),
			want: []string{"http://a.test/e/1"}},
		{name: "refresh", a: page("", `<meta http-equiv=Refresh content="3; URL='x'">`),
			want: []string{"http://a.test/d/x"}},
		{name: "refresh of itself", a: page("", `<meta http-equiv=refresh content="3">`)},
		{name: "legacy encoding", a: answer{status: 200, kind: "text/html; charset=iso-8859-1",
			body: []byte("<a href=\xe4>")}, want: []string{"http://a.test/d/%C3%A4"}},
		{name: "without fragment", a: page("", `<a href="1#x">`), want: []string{"http://a.test/d/1"}},
	}
	base, err := url.Parse("http://a.test/d/page")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := links(base, test.a); !slices.Equal(got, test.want) {
				t.Errorf("links of %s = %q, want %q", test.a.body, got, test.want)
			}
		})
	}
}

// FuzzLinks checks that links returns only normalised URLs, and none for a page that forbids to
// follow links.
func FuzzLinks(f *testing.F) {
	for _, seed := range []string{`<a href=x>`, `<base href="//b.test"><a href='y?z'>`,
		`<meta http-equiv=refresh content="1,url=x">`, "<a href=\xff>", "<link rel=next href"} {
		f.Add([]byte(seed))
	}
	base, err := url.Parse("http://a.test/d/page")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := answer{status: 200, kind: "text/html; charset=utf-8", body: body}
		for _, link := range links(base, a) {
			if _, err := url.Parse(link); err != nil {
				t.Errorf("%q in %q is no URL: %v", link, body, err)
			}
		}
		a.robotsTag = "nofollow"
		if got := links(base, a); len(got) != 0 {
			t.Errorf("links %q of a page that forbids to follow", got)
		}
	})
}
