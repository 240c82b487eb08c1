package weburl

import (
	"errors"
	"strings"
	"testing"
)

// parts are the parts of a URL as strings, to compare and print.
type parts struct {
	text, scheme, host, origin, target string
	port                               uint16
}

func partsOf(u URL) parts {
	return parts{
		text: string(u.Text()), scheme: string(u.Scheme()), host: string(u.Host()),
		origin: string(u.Origin()),
		target: string(u.Target()), port: u.Port(),
	}
}

// partsCases are URLs and their parts.
var partsCases = []struct {
	name, raw string
	want      parts
}{
	{
		name: "plain", raw: "http://a.example/x?y",
		want: parts{
			text: "http://a.example/x?y", scheme: "http", host: "a.example", origin: "http://a.example",
			target: "/x?y", port: 80,
		},
	}, {
		name: "plain with port", raw: "https://a.example:8443/",
		want: parts{
			text: "https://a.example:8443/", scheme: "https", host: "a.example",
			origin: "https://a.example:8443", target: "/", port: 8443,
		},
	}, {
		name: "plain with fragment", raw: "https://a.example/x#y z",
		want: parts{
			text: "https://a.example/x", scheme: "https", host: "a.example", origin: "https://a.example",
			target: "/x", port: 443,
		},
	}, {
		name: "to be normalised", raw: " HTTP://A.Example:080/b/../ü?'#f\n",
		want: parts{
			text: "http://a.example/%C3%BC?%27", scheme: "http", host: "a.example",
			origin: "http://a.example",
			target: "/%C3%BC?%27", port: 80,
		},
	}, {
		name: "user info", raw: "http://me:p@ss@a.example:81/x",
		want: parts{
			text: "http://me:p%40ss@a.example:81/x", scheme: "http", host: "a.example",
			origin: "http://a.example:81", target: "/x", port: 81,
		},
	}, {
		name: "at sign in the path only", raw: "http://a.example/@b",
		want: parts{
			text: "http://a.example/@b", scheme: "http", host: "a.example", origin: "http://a.example",
			target: "/@b", port: 80,
		},
	}, {
		name: "IPv4 in other words", raw: "http://0x7f.1/",
		want: parts{
			text: "http://127.0.0.1/", scheme: "http", host: "127.0.0.1", origin: "http://127.0.0.1",
			target: "/", port: 80,
		},
	}, {
		name: "IPv6", raw: "https://[2001:DB8::0:1]:444/x",
		want: parts{
			text: "https://[2001:db8::1]:444/x", scheme: "https", host: "2001:db8::1",
			origin: "https://[2001:db8::1]:444", target: "/x", port: 444,
		},
	}, {
		name: "IPv6 with user info", raw: "https://u@[::1]?q",
		want: parts{
			text: "https://u@[::1]/?q", scheme: "https", host: "::1", origin: "https://[::1]", target: "/?q",
			port: 443,
		},
	}, {
		name: "dot at the name's end", raw: "http://a.example./",
		want: parts{
			text: "http://a.example./", scheme: "http", host: "a.example.", origin: "http://a.example.",
			target: "/", port: 80,
		},
	}, {
		name: "underscore", raw: "http://a_b.example/",
		want: parts{
			text: "http://a_b.example/", scheme: "http", host: "a_b.example", origin: "http://a_b.example",
			target: "/", port: 80,
		},
	}, {
		name: "name in another script", raw: "http://Bücher.example/",
		want: parts{
			text: "http://xn--bcher-kva.example/", scheme: "http", host: "xn--bcher-kva.example",
			origin: "http://xn--bcher-kva.example", target: "/", port: 80,
		},
	}, {
		name: "caret is encoded in a path, not in a query", raw: "http://a.example/^?^",
		want: parts{
			text: "http://a.example/%5E?^", scheme: "http", host: "a.example", origin: "http://a.example",
			target: "/%5E?^", port: 80,
		},
	}, {
		name: "port zero", raw: "http://a.example:0/",
		want: parts{
			text: "http://a.example:0/", scheme: "http", host: "a.example", origin: "http://a.example:0",
			target: "/", port: 0,
		},
	},
}

func TestParts(t *testing.T) {
	for _, c := range partsCases {
		t.Run(c.name, func(t *testing.T) {
			u, err := Parse([]byte(c.raw))
			if err != nil {
				t.Fatalf("Parse(%q): %v", c.raw, err)
			}
			if got := partsOf(u); got != c.want {
				t.Errorf("Parse(%q)\n got %+v\nwant %+v", c.raw, got, c.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	label := strings.Repeat("a", 64)
	for _, c := range []struct {
		name, raw string
		want      error
	}{
		{name: "nothing", raw: "", want: ErrSyntax},
		{name: "relative", raw: "/x", want: ErrSyntax},
		{name: "another scheme", raw: "ftp://a.example/", want: ErrScheme},
		{name: "opaque", raw: "mailto:a@example", want: ErrScheme},
		{name: "no host", raw: "http://", want: ErrSyntax},
		{name: "user info but no host", raw: "http://u@/x", want: ErrSyntax},
		{name: "space in the host", raw: "http://a b/", want: ErrSyntax},
		{name: "control in the host", raw: "http://a%01b/", want: ErrSyntax},
		{name: "delete in the host", raw: "http://a%7Fb/", want: ErrSyntax},
		{name: "line feed in the host", raw: "http://a%0Ab/", want: ErrSyntax},
		{name: "empty label", raw: "http://a..example/", want: ErrHost},
		{name: "only a dot", raw: "http://./", want: ErrHost},
		{name: "long label", raw: "http://" + label + ".example/", want: ErrHost},
		{name: "long name", raw: "http://" + strings.Repeat("a.", 126) + "aa/", want: ErrHost},
		{name: "port over 16 bits", raw: "http://a.example:65536/", want: ErrSyntax},
		{name: "bad port", raw: "http://a.example:8x/", want: ErrSyntax},
		{name: "bracket too many", raw: "http://[[::1]/", want: ErrHost},
		{name: "zone", raw: "http://[fe80::1%25eth0]/", want: ErrSyntax},
		{name: "unclosed", raw: "http://[::1/", want: ErrSyntax},
		{name: "signed address", raw: "http://1.2.3.-4/", want: ErrHost},
		{name: "signed in the middle", raw: "http://1.+2.3.4/", want: ErrHost},
		{name: "signed, encoded", raw: "http://%2d1/", want: ErrHost},
		{name: "signed, wide", raw: "http://－1/", want: ErrHost},
		{name: "signed octal", raw: "http://0-1/", want: ErrHost},
		{name: "signed hexadecimal", raw: "http://0x-f/", want: ErrHost},
		{name: "signed and out of range", raw: "http://-99999999999999999999/", want: ErrHost},
		{name: "address out of range", raw: "http://256.1.1.1/", want: ErrSyntax},
		{name: "long user info", raw: "http://" + strings.Repeat("@", maxAuthority) + "a/",
			want: ErrAuthority},
		{name: "long user info, dressed up", raw: "\thttp:\n/\\\r" + strings.Repeat("@",
			maxAuthority) + "a?", want: ErrAuthority},
		{name: "long user info once encoded", raw: "http://" + strings.Repeat("@", maxAuthority/2) + "a/",
			want: ErrAuthority},
		{name: "long", raw: "http://a.example/" + strings.Repeat("x", MaxLen), want: ErrTooLong},
		{name: "long once encoded", raw: "http://a.example/" + strings.Repeat("ü", MaxLen/4),
			want: ErrTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := Parse([]byte(c.raw))
			if !errors.Is(err, c.want) {
				t.Fatalf("Parse(%.100q) = %.100q, %v; want %v", c.raw, u.Text(), err, c.want)
			}
			if len(err.Error()) > 700 {
				t.Errorf("the error is %d bytes long: %v", len(err.Error()), err)
			}
			if u.Text() != nil {
				t.Errorf("an error came with the URL %q", u.Text())
			}
		})
	}
}

// Names that look like signed numbers, but that every parser takes for names.
func TestNotSigned(t *testing.T) {
	for _, host := range []string{"-1.example", "-x", "10-20.example", "a-1", "+1.example", "1-2"} {
		u, err := Parse([]byte("http://" + host + "/"))
		if err != nil || string(u.Host()) != host {
			t.Errorf("host %q: got %q, %v", host, u.Host(), err)
		}
	}
}

func TestLimits(t *testing.T) {
	name := strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("a", 61)
	if len(name) != maxHost {
		t.Fatalf("the test's name has %d bytes", len(name))
	}
	for _, raw := range []string{
		"http://" + name + "/",
		"http://" + name + "./",
		"http://" + strings.Repeat("u", maxAuthority-1-maxHost) + "@" + name + "/",
		"http://u@" + name + "/" + strings.Repeat("x", MaxLen-len("http://u@/")-maxHost),
		"https://a.example/" + strings.Repeat("x", MaxLen-len("https://a.example/")),
	} {
		u, err := Parse([]byte(raw))
		if err != nil {
			t.Errorf("URL of %d bytes: %v", len(raw), err)
		} else if got := string(u.Text()); got != raw {
			t.Errorf("URL of %d bytes: got %d bytes: %.300q", len(raw), len(got), got)
		}
	}
}

func TestZeroURL(t *testing.T) {
	if got := partsOf(URL{}); got != (parts{}) {
		t.Errorf("parts of the zero URL: %+v; want none", got)
	}
}

// Appending to a part must not overwrite the URL's bytes.
func TestPartsAreCapped(t *testing.T) {
	for _, raw := range []string{"http://a.example/x#y", "http://u@a.example/x", "https://[::1]:1/"} {
		u, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		before := partsOf(u)
		for _, part := range [][]byte{u.Text(), u.Scheme(), u.Host(), u.Origin(), u.Target()} {
			_ = append(part, "!!!!"...)
		}
		if after := partsOf(u); after != before {
			t.Errorf("%q: appending to parts changed %+v to %+v", raw, before, after)
		}
	}
}
