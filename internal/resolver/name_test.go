package resolver

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	long := strings.Repeat("a", 63)
	tests := []struct {
		name string
		host string
		ok   bool
	}{
		{name: "plain", host: "www.example.com", ok: true},
		{name: "one label", host: "intranet", ok: true},
		{name: "digits", host: "3.14.example", ok: true},
		{name: "digits and letters last", host: "a.1b", ok: true},
		{name: "IDNA", host: "xn--bcher-kva.example", ok: true},
		{name: "hyphens at the ends", host: "-a-.example", ok: true},
		{name: "underscore", host: "_a.example", ok: true},
		{name: "longest label", host: long + ".example", ok: true},
		{name: "longest name", host: strings.Repeat(long+".", 3) + strings.Repeat("a", 61), ok: true},
		{name: "name too long", host: strings.Repeat(long+".", 3) + strings.Repeat("a", 62)},
		{name: "label too long", host: long + "a.example"},
		{name: "empty", host: ""},
		{name: "root", host: "."},
		{name: "empty label", host: "a..example"},
		{name: "leading dot", host: ".example"},
		{name: "two trailing dots", host: "a.example.."},
		{name: "space", host: "a b.example"},
		{name: "NUL", host: "a\x00.example"},
		{name: "newline", host: "a.example\n"},
		{name: "not ASCII", host: "bücher.example"},
		{name: "Kelvin sign", host: "\u212a.example"},
		{name: "percent", host: "a%20b.example"},
		{name: "port", host: "a.example:80"},
		{name: "brackets", host: "[2600::1]"},
		{name: "zone", host: "fe80::1%eth0"},
		{name: "number last", host: "1.2.3"},
		{name: "IPv4 out of range", host: "1.2.3.256"},
	}
	r := start(t, patient(serve(t, zone())))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := checkName(fold(tt.host)); (err == nil) != tt.ok || err != nil &&
				!errors.Is(err, ErrBadName) {
				t.Errorf("checkName(%q) = %v, want ok %v", tt.host, err, tt.ok)
			}
			want := ErrBadName
			if tt.ok {
				want = ErrNoHost // the server knows no names
			}
			if _, err := lookUp(t, r, tt.host); !errors.Is(err, want) {
				t.Errorf("Lookup(%q): %v, want %v", tt.host, err, want)
			}
		})
	}
}

func TestHugeName(t *testing.T) {
	r := start(t, patient(serve(t, zone())))
	host := strings.Repeat("a.", 1<<20)
	_, err := lookUp(t, r, host)
	if !errors.Is(err, ErrBadName) || len(err.Error()) > 500 {
		t.Errorf("a name of 2 MiB: %.600v", err)
	}
	if _, _, ok := r.Cached([]byte(host)); ok {
		t.Error("Cached knows it")
	}
}

func TestFold(t *testing.T) {
	for host, want := range map[string]string{"": "", ".": "", "A.b.": "a.b", "a.b": "a.b", "Ä.ß": "Ä.ß",
		"\u212aA": "\u212aa"} {
		got := fold(host)
		folded, ok := appendFolded(nil, []byte(host))
		if got != want || !ok || string(folded) != want {
			t.Errorf("fold(%q) = %q, appendFolded %q, %v; want %q", host, got, folded, ok, want)
		}
	}
}

func TestLiteral(t *testing.T) {
	tests := []struct {
		name    string
		host    string
		want    string
		wantErr error
	}{
		{name: "IPv4", host: "93.184.216.34", want: "93.184.216.34"},
		{name: "IPv6, whatever the family", host: "2600::1", want: "2600::1"},
		{name: "IPv4-mapped", host: "::ffff:93.184.216.34", want: "93.184.216.34"},
		{name: "IPv4-mapped private", host: "::ffff:10.0.0.1", wantErr: ErrRefused},
		{name: "loopback", host: "127.0.0.1", wantErr: ErrRefused},
		{name: "metadata", host: "169.254.169.254", wantErr: ErrRefused},
		{name: "leading zero is no IPv4", host: "093.184.216.34", wantErr: ErrBadName},
	}
	s := serve(t, zone())
	r := start(t, patient(s))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := lookUp(t, r, tt.host)
			if !errors.Is(err, tt.wantErr) || err == nil && got != netip.MustParseAddr(tt.want) {
				t.Fatalf("Lookup(%q) = %v, %v; want %s, %v", tt.host, got, err, tt.want, tt.wantErr)
			}
			if tt.wantErr == ErrBadName {
				return
			}
			again, err, ok := r.Cached([]byte(tt.host))
			if !ok || again != got || err != tt.wantErr {
				t.Errorf("then Cached = %v, %v, %v", again, err, ok)
			}
		})
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d queries, want none", n)
	}
}
