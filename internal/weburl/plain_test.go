package weburl

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// plainURLs are URLs in serialised form except for fragments, of the usual kinds.
var plainURLs = []string{
	"http://a.example/",
	"https://www.example.com/a/b.html?c=d&e=%20f#g",
	"http://10-20.example:8080/~me/.a/.well-known/x%2ey/%zz|[]?a=b`{}^\\|/../",
	"https://x--n.xn.example/a//b/;p=1,2/@:!$&'()*+,=-._~",
	"http://a1.b2-.-c3.d4:65535/.x?",
	"http://e:0/???##",
}

// awkward is text that the standard treats specially somewhere.
var awkward = []string{
	"/.", "/..", "/%2e", "/.%2E", "/%2E%2e/", "/./", "//", "\\", "@", ":", ":80", ":0443", "xn--", "XN--", "0x1", ".1",
	".0x", "[", "]", "%", "%2", "%41", "ü", "\u00ad", "\u3002", " ", "\t", "\n", "\r", "\x00", "\x7f",
	"\xff", "#", "?", "'",
	"^", "`", "\"", "<", "{", "..", "-", "_", "K", "http:", "\u2260", "\uff0d1", "+1",
}

// checkFastPath checks that the fast path agrees with the standard, and that the result keeps the
// promises of URL.
func checkFastPath(t *testing.T, raw []byte) {
	t.Helper()
	checkModel(t, raw)
	slow, err := parseStandard(raw)
	if fast, ok := parsePlain(raw); ok {
		if err != nil {
			t.Fatalf("%q: fast path took what the standard refuses: %v", raw, err)
		}
		if got, want := partsOf(fast), partsOf(slow); got != want {
			t.Fatalf("%q\nfast path %+v\nstandard  %+v", raw, got, want)
		}
	}
	if err == nil {
		checkPromises(t, slow)
	}
}

func checkPromises(t *testing.T, u URL) {
	t.Helper()
	p := partsOf(u)
	for _, c := range []byte(p.text) {
		if c < 0x21 || c > 0x7e {
			t.Fatalf("%q contains byte %#x", p.text, c)
		}
	}
	if len(p.text) > MaxLen || p.scheme != "http" && p.scheme != "https" ||
		!strings.HasPrefix(p.text, p.scheme+"://") {
		t.Fatalf("%+v: bad length or scheme", p)
	}
	if p.host == "" || p.host != strings.ToLower(p.host) || strings.ContainsAny(p.host, "/?#@[]\\% ") {
		t.Fatalf("%+v: bad host", p)
	}
	if !strings.Contains(p.host, ":") && !fitsDNS(strings.TrimSuffix(p.host, ".")) {
		t.Fatalf("%+v: host does not fit DNS", p)
	}
	if !strings.HasPrefix(p.target, "/") || strings.Contains(p.target, "#") ||
		!strings.HasSuffix(p.text, p.target) {
		t.Fatalf("%+v: bad target", p)
	}
	again, err := Parse([]byte(p.text))
	if err != nil || partsOf(again) != p {
		t.Fatalf("%+v parsed again is %+v, %v", p, partsOf(again), err)
	}
	root, err := Parse([]byte(p.origin + "/"))
	if err != nil || string(root.Host()) != p.host || root.Port() != p.port ||
		string(root.Origin()) != p.origin {
		t.Fatalf("%+v: its origin means %+v, %v", p, partsOf(root), err)
	}
}

func TestPlainIsTakenAsItIs(t *testing.T) {
	for _, s := range plainURLs {
		raw := []byte(s)
		u, ok := parsePlain(raw)
		if !ok {
			t.Errorf("%q: the fast path refused it", s)
			continue
		}
		if &u.Text()[0] != &raw[0] {
			t.Errorf("%q: the text is a copy", s)
		}
		if want, _, _ := strings.Cut(s, "#"); string(u.Text()) != want {
			t.Errorf("%q: the text is %q", s, u.Text())
		}
		checkFastPath(t, raw)
		if n := testing.AllocsPerRun(10, func() { _, _ = Parse(raw) }); n != 0 {
			t.Errorf("%q: %v allocations; want none", s, n)
		}
	}
}

// Every byte of plain URLs is replaced by every byte, or removed, and awkward text is inserted at
// every place.
func TestFastPathOnMutations(t *testing.T) {
	for _, s := range plainURLs {
		for i := range s {
			for b := range 256 {
				checkFastPath(t, []byte(s[:i]+string([]byte{byte(b)})+s[i+1:]))
			}
			checkFastPath(t, []byte(s[:i]+s[i+1:]))
			checkFastPath(t, []byte(s[:i]))
			for _, a := range awkward {
				checkFastPath(t, []byte(s[:i]+a+s[i:]))
			}
		}
	}
}

// URLs are built from pieces, so that several awkward pieces meet.
func TestFastPathOnMixtures(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, seed))
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	pieces := append([]string{"a", "b.c", "/", "?", ".", "example", "1", "/x"}, awkward...)
	fast := 0
	for range 50_000 {
		raw := []byte(pick([]string{"http://", "https://", "http://a.example/", "http://a", "https://b.c:1"}))
		for range rnd.IntN(6) {
			raw = append(raw, pick(pieces)...)
		}
		checkFastPath(t, raw)
		if _, ok := parsePlain(raw); ok {
			fast++
		}
	}
	if fast < 2_500 {
		t.Errorf("seed %d: the fast path took %d of 50000 mixtures: too few to prove anything", seed, fast)
	}
}

func FuzzFastPath(f *testing.F) {
	for _, s := range plainURLs {
		f.Add([]byte(s))
	}
	for _, a := range awkward {
		f.Add([]byte("http://a.example" + a))
		f.Add([]byte("http://" + a + "a.example/" + a + "?" + a))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		checkFastPath(t, raw)
		if !bytes.Equal(raw, before) {
			t.Fatalf("parsing changed its input from %q to %q", before, raw)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	raw := []byte("https://www.example.com/section/article-12345/index.html?page=2&sort=asc")
	for _, path := range []struct {
		name  string
		parse func([]byte) (URL, error)
	}{
		{name: "plain", parse: Parse},
		{name: "standard", parse: parseStandard},
	} {
		b.Run(path.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := path.parse(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
