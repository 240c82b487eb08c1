package weburl

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/nlnwa/whatwg-url/url"
)

// whole is the library's parser for whole URLs, configured for today's standard: paths encode "^"
// since March 2025.
var whole = url.NewParser(
	url.WithPathPercentEncodeSet(url.PathPercentEncodeSet.Set('^')),
	url.WithPreParseHostFunc(strictHost),
)

// parseByLibrary is the model of parseStandard. The library also parses path and query.
func parseByLibrary(raw []byte) (URL, error) {
	if len(raw) > MaxLen {
		return URL{}, ErrTooLong
	}
	if len(rawAuthority(raw)) > maxAuthority {
		return URL{}, ErrAuthority
	}
	std, err := whole.Parse(string(raw))
	if err != nil {
		return URL{}, fmt.Errorf("%w%s", ErrSyntax, reason(err))
	}
	if s := std.Scheme(); s != "http" && s != "https" {
		return URL{}, ErrScheme
	}
	return locate([]byte(std.Href(true)))
}

// checkModel compares parseStandard with its model.
func checkModel(t *testing.T, raw []byte) {
	t.Helper()
	got, err := parseStandard(raw)
	want, wantErr := parseByLibrary(raw)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || partsOf(got) != partsOf(want) {
		t.Fatalf("%q\n    got %+v, %v\nlibrary %+v, %v", raw, partsOf(got), err, partsOf(want), wantErr)
	}
}

// TestTargetsAsTheLibrary tries paths and queries with characters that the standard treats
// specially.
func TestTargetsAsTheLibrary(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, seed))
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	pieces := append([]string{
		"/a", "/a", "/..", "/.", "\\..\\", "/%2E.", "/.%2e/", "/...", "/%2e%2E%2e", "%2", "%2f", "\xc3",
		"\xbc", "\xed\xa0\x80", "\U0010ffff", "a", "?", "#",
	}, awkward...)
	for range 30_000 {
		raw := []byte(pick([]string{"http://a.example", "HTTPS:\\\\a.example", "http:b",
			"http:////u:p@a.example:80", "ftp://a", "x:", "", "//a"}))
		for range rnd.IntN(12) {
			raw = append(raw, pick(pieces)...)
		}
		checkModel(t, raw)
	}
}

// The memory for parsing a URL is bounded by a multiple of its length, for any URL.
func TestLongestIsNoDearer(t *testing.T) {
	const most = 400 // bytes per byte of the URL
	for _, piece := range append([]string{"/a", "/a/..", "/%2e%2E", "\\", "/ ", "/\xff", "/%zz"},
		awkward...) {
		for _, before := range []string{"http:", "http://", "http://a", "http://a.example/",
			"http://a.example/?", "http://a.example/%#", "x:", "x://", "file:///", ""} {
			raw := []byte(before + strings.Repeat(piece, (MaxLen-len(before))/len(piece)))
			var was, is runtime.MemStats
			runtime.ReadMemStats(&was)
			_, _ = parseStandard(raw)
			runtime.ReadMemStats(&is)
			if n := is.TotalAlloc - was.TotalAlloc; n > most*MaxLen {
				t.Errorf("%q and %d times %q: %d bytes of memory for a URL of %d", before,
					(MaxLen-len(before))/len(piece), piece, n, len(raw))
			}
		}
	}
}

func FuzzStandard(f *testing.F) {
	for _, s := range plainURLs {
		f.Add([]byte(s))
	}
	for _, a := range awkward {
		f.Add([]byte("http://a.example" + a))
		f.Add([]byte("HTTP:\\" + a + "a.example/" + a + "/b" + a + "?" + a))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { checkModel(t, raw) })
}

// BenchmarkLongest parses URLs of several lengths, up to the longest. The time per byte must be the
// same.
func BenchmarkLongest(b *testing.B) {
	for _, piece := range []string{"/a", "/a/..", "/.", "\\", "%", "@", "\xc3\xbc", "/\xff"} {
		for _, n := range []int{1 << 10, MaxLen / 3, MaxLen} {
			raw := []byte("HTTP://a.example/" + strings.Repeat(piece,
				(n-len("http://a.example/"))/len(piece)))
			b.Run(fmt.Sprintf("%q/%d", piece, n), func(b *testing.B) {
				for b.Loop() {
					_, _ = parseStandard(raw)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/byte")
			})
		}
	}
}
