package spider

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nlnwa/whatwg-url/url"

	"urlserver/internal/weburl"
)

// joined returns the URL of ref on a page of base, by join; "" if it is no link.
func joined(base weburl.URL, ref string) string {
	text, ok := join(base, cleanRef(ref))
	if !ok {
		return ""
	}
	u, err := weburl.Parse(text)
	if err != nil {
		return ""
	}
	return string(u.Text())
}

// parsed returns the same by the standard's parser with a base.
func parsed(t testing.TB, base weburl.URL, ref string) string {
	b, err := url.Parse(string(base.Text()))
	if err != nil {
		t.Fatalf("base %q: %v", base.Text(), err)
	}
	absolute, err := b.Parse(ref)
	if err != nil {
		return ""
	}
	u, err := weburl.Parse([]byte(absolute.Href(true)))
	if err != nil {
		return ""
	}
	return string(u.Text())
}

var bases = []string{
	"http://a.test/dir/page?q", "https://a.test/", "http://a.test:81/a/b/c/?x/y#z", "http://me:it@a.test/x",
	"https://[2001:db8::1]:444//x//",
}

var references = []string{
	"", "#", "#x", "?", "?x=/..", "x", "x/y", "./x", "../x", "../../../x", ".", "..", "x/.", "%2e%2E/x",
	"/", "/x", "//", "//b.test",
	"//b.test:80/x", "///b.test/x", `\x`, `\\b.test\x`, `/\b.test/x`, `\/b.test`, "http:", "http:x",
	"http:/x", "http://b.test", "http:///b.test",
	"http:?x", "http:#x", "HTTP:x", "HTTPS:x", "https:x", "https:/x", "https://b.test:443",
	"hTTps:\\\\b.test", "ftp://b.test", "mailto:x",
	"javascript:x", "a:b", "1:b", "a+b-c.d:e", ":x", "://x", " x ", "\tx\ny\r", "ht\ntp://b.test",
	"h\ttp:x", "x y", "ü", "//ü.test", "x#y#z", "x?y#z",
	"x|y", "x:y", "./x:y", "\x00x", "x\x00", "\x1f", "\xd5\r\xa1", "\xff", "@", "//@b.test", "//x@b.test",
	"//b.test:x", "//b.test:99999", "%", "%zz", "'\"<>`{}^",
}

func TestJoinIsTheStandards(t *testing.T) {
	links := 0
	for _, text := range bases {
		base := mustURL(t, "%s", text)
		for _, ref := range references {
			got, want := joined(base, ref), parsed(t, base, ref)
			if got != want {
				t.Errorf("%q on %s means %q; want %q", ref, base.Text(), got, want)
			}
			if got != "" {
				links++
			}
		}
	}
	if links < len(bases)*len(references)/2 {
		t.Errorf("only %d of %d are links", links, len(bases)*len(references))
	}
}

func TestJoinIsBounded(t *testing.T) {
	base := mustURL(t, "http://a.test/")
	if got := joined(base, strings.Repeat("x", weburl.MaxLen+1)); got != "http://a.test/" {
		t.Errorf("too long a reference means %.50q", got)
	}
	if got := joined(base, strings.Repeat("x", weburl.MaxLen)); got != "" {
		t.Errorf("too long a URL is %.50q", got)
	}
}

// FuzzJoin compares join with its model, the standard's parser. weburl refuses some hosts that the
// model accepts if the reference itself names them ("+0" for the address 0.0.0.0).
func FuzzJoin(f *testing.F) {
	for i, ref := range references {
		f.Add(bases[i%len(bases)], ref)
	}
	f.Add("http://0.0.0.0/", "//+0")
	f.Fuzz(func(t *testing.T, page, ref string) {
		base, err := weburl.Parse([]byte(page))
		if err != nil || len(page)+len(ref) > 1000 {
			return
		}
		got, want := joined(base, ref), parsed(t, base, ref)
		if got == "" && want != "" && namesHost(base, ref) {
			return
		}
		if got != want {
			t.Errorf("%q on %s means %q; want %q", ref, base.Text(), got, want)
		}
	})
}

// namesHost reports whether ref is a link that keeps at most the scheme of base.
func namesHost(base weburl.URL, ref string) bool {
	text, ok := join(base, cleanRef(ref))
	rest, kept := bytes.CutPrefix(text, base.Text()[:len(base.Text())-len(base.Target())])
	return ok && !(kept && len(rest) > 0 && isSlash(rest[0]))
}
