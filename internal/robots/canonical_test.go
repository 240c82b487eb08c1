package robots

import "testing"

func TestCanonical(t *testing.T) {
	for _, tc := range []struct {
		name   string
		target string
		closed string
		open   string // "": the same as closed
	}{
		{name: "plain", target: "/a-b._~/c?d=e&f", closed: "/a-b._~/c?d=e&f"},
		{name: "empty", target: "", closed: "/"},
		{name: "query only", target: "?a", closed: "/?a"},
		{name: "unreserved encoded", target: "/%62%61%7A%2D", closed: "/baz-"},
		{name: "reserved encoded", target: "/%3a%40%21%24%2A%5B", closed: "/:@!$*["},
		{name: "slash and question mark in a path", target: "/a%2fb%3fc", closed: "/a%2Fb%3Fc"},
		{name: "slash and question mark in a query", target: "/a%2f?b%2fc%3F", closed: "/a%2F?b%2Fc%3F",
			open: "/a%2F?b/c?"},
		{name: "raw octets", target: "/ツ\xff", closed: "/%E3%83%84%FF"},
		{name: "lower-case digits", target: "/%e3%83%84", closed: "/%E3%83%84"},
		{name: "neither reserved nor unreserved", target: "/a b\"<>\\^`{|}\x00\x7f",
			closed: "/a%20b%22%3C%3E%5C%5E%60%7B%7C%7D%00%7F"},
		{name: "the same encoded", target: "/a%20b%22%3c%3e%5c%5e%60%7b%7c%7d%00%7f",
			closed: "/a%20b%22%3C%3E%5C%5E%60%7B%7C%7D%00%7F"},
		{name: "percent sign", target: "/100%25", closed: "/100%25"},
		{name: "percent sign alone", target: "/100%", closed: "/100%25"},
		{name: "no hexadecimal digits", target: "/%zz%4", closed: "/%25zz%254"},
		{name: "decoded once only", target: "/%2541", closed: "/%2541"},
		{name: "half an escape before an escape", target: "/%%34%31", closed: "/%2541"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(appendTarget(nil, []byte(tc.target), false)); got != tc.closed {
				t.Errorf("%q becomes %q, want %q", tc.target, got, tc.closed)
			}
			if tc.open == "" {
				tc.open = tc.closed
			}
			if got := string(appendTarget(nil, []byte(tc.target), true)); got != tc.open {
				t.Errorf("%q opened becomes %q, want %q", tc.target, got, tc.open)
			}
		})
	}
}

func TestIsPlain(t *testing.T) {
	for c := range 256 {
		if got, want := isPlain(byte(c)), modelSymbol(byte(c), false) == string(rune(c)) && c < 128; got != want {
			t.Errorf("isPlain(%#02x) = %t, want %t", c, got, want)
		}
	}
}
