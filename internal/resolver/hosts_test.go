package resolver

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseHosts(t *testing.T) {
	text := "# a comment\n" +
		"93.184.216.34 www.example www # after it\r\n" +
		"\t2600::1\twww.EXAMPLE.\n" +
		"::ffff:9.9.9.9 mapped\n" +
		"fe80::1%lo0 zone\n" +
		"not-an-address a\n" +
		"1.2.3 b\n" +
		"8.8.8.8\n" +
		"#9.9.9.9 commented\n" +
		"8.8.4.4 bad/name good -- a..b " + strings.Repeat("x", 64) + "\n" +
		"\x00\xff 1\n\n" +
		"1.1.1.1 last.without.newline"
	want := map[string]string{
		"www.example":          "93.184.216.34 2600::1",
		"www":                  "93.184.216.34",
		"mapped":               "9.9.9.9",
		"good":                 "8.8.4.4",
		"--":                   "8.8.4.4",
		"last.without.newline": "1.1.1.1",
	}
	got := parseHosts([]byte(text))
	for name, addrs := range want {
		var text []string
		for _, a := range got[name] {
			text = append(text, a.String())
		}
		if strings.Join(text, " ") != addrs {
			t.Errorf("%s: %v, want %s", name, text, addrs)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d names, want %d: %v", len(got), len(want), got)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHostsRefresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	write(t, path, "9.9.9.9 a\n")
	h, err := openHosts(path)
	if err != nil {
		t.Fatal(err)
	}
	step := func(what string, now time.Duration, want string, wantErr bool) {
		t.Helper()
		err := h.refresh(now)
		var names []string
		for name := range h.names {
			names = append(names, name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want || (err != nil) != wantErr {
			t.Errorf("%s: knows %q, error %v; want %q", what, got, err, want)
		}
	}
	step("at first", 0, "a", false)
	write(t, path, "9.9.9.9 a b\n")
	step("changed, but it is soon", hostsCheck-1, "a", false)
	step("changed", hostsCheck, "a b", false)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	step("gone", 2*hostsCheck, "", false)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	step("not readable", 3*hostsCheck, "", true)
	step("the error stays", 3*hostsCheck+1, "", true)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, "9.9.9.9 c\n")
	step("back", 4*hostsCheck, "c", false)
	if err := os.Truncate(path, maxConfigFile+1); err != nil {
		t.Fatal(err)
	}
	step("too large", 5*hostsCheck, "c", true)
	write(t, path, "9.9.9.9 d\n")
	step("small again", 6*hostsCheck, "d", false)
}

func TestOpenHosts(t *testing.T) {
	if _, err := openHosts(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a named file that is missing: %v", err)
	}
	if h, err := openHosts("-"); err != nil || h.refresh(time.Hour) != nil || len(h.names) != 0 {
		t.Errorf("no file: %v", err)
	}
	if _, err := openHosts(""); err != nil {
		t.Errorf("the default file: %v", err)
	}
}

func TestLocalNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	write(t, path, `
93.184.216.34 good.example
9.9.9.9       good.example
10.0.0.1      private.example
10.0.0.1      mixed.example
8.8.8.8       mixed.example
2600::1       six.example
0.0.0.0       blocked.example
127.0.0.9     localhost
`)
	tests := []struct {
		name, host, family, allow string
		want                      string
		wantErr                   error
	}{
		{name: "from the file", host: "GOOD.example", want: "9.9.9.9"},
		{name: "refused", host: "private.example", wantErr: ErrRefused},
		{name: "allowed", host: "private.example", allow: "10.0.0.0/8", want: "10.0.0.1"},
		{name: "refused ones are dropped", host: "mixed.example", want: "8.8.8.8"},
		{name: "block list", host: "blocked.example", wantErr: ErrRefused},
		{name: "IPv6", host: "six.example", family: "any", want: "2600::1"},
		{name: "other family: servers know", host: "six.example", family: "ipv4", want: truth},
		{name: "not in the file", host: "x.good.example", want: truth},
		{name: "localhost is refused", host: "localhost", wantErr: ErrRefused},
		{name: "localhost is loopback", host: "localhost", family: "any", allow: "127.0.0.0/8 ::1/128",
			want: "127.0.0.1"},
		{name: "whatever is below it", host: "a.b.LocalHost.", allow: "127.0.0.0/8", want: "127.0.0.1"},
		{name: "localhost, IPv6", host: "localhost", family: "ipv6", allow: "::1/128", want: "::1"},
		{name: "localhost, IPv6 allowed only", host: "localhost", family: "any", allow: "::1/128",
			want: "::1"},
		{name: "not below localhost", host: "notlocalhost", want: truth},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(q *request) { q.answer(q.truth()) })
			cfg := patient(s)
			cfg.HostsFile, cfg.AllowNetworks = path, prefixes(tt.allow)
			if tt.family != "" {
				cfg.Family = tt.family
			}
			got, err := lookUp(t, start(t, cfg), tt.host)
			if !errors.Is(err, tt.wantErr) || err == nil && got != netip.MustParseAddr(tt.want) {
				t.Errorf("Lookup(%q) = %v, %v; want %s, %v", tt.host, got, err, tt.want, tt.wantErr)
			}
			if asked := len(s.requests()) > 0; asked != (tt.want == truth) {
				t.Errorf("server asked: %v", asked)
			}
		})
	}
}

// If the file cannot be read any more, Stats shows the error, and the former contents stay.
func TestHostsFileErrorShows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	write(t, path, "9.9.9.9 a.example\n")
	cfg := patient(serve(t, zone()))
	cfg.HostsFile = path
	r := start(t, cfg)
	if err := os.Truncate(path, maxConfigFile+1); err != nil {
		t.Fatal(err)
	}
	r.hosts.checked = -hostsCheck
	wantAddr(t, r, "a.example", "9.9.9.9")
	if err := r.Stats().HostsFile; err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Stats tells %v, want an error that names the file", err)
	}
}
