package resolver

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfigFaults(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
		want []string // parts of the error
	}{
		{name: "negative timeout", cfg: Config{Timeout: -1}, want: []string{"timeout -1ns"}},
		{name: "negative attempts", cfg: Config{Attempts: -1}, want: []string{"attempts -1"}},
		{name: "too many attempts", cfg: Config{Attempts: 101}, want: []string{"attempts 101", "0 to 100"}},
		{name: "concurrency", cfg: Config{Concurrency: 1 << 20}, want: []string{"concurrency 1048576"}},
		{name: "TTLs crossed", cfg: Config{MinTTL: time.Hour, MaxTTL: time.Minute},
			want: []string{"max TTL 1m0s", "min TTL 1h0m0s"}},
		{name: "negative TTL", cfg: Config{NegativeTTL: -time.Second}, want: []string{"negative TTL -1s"}},
		{name: "family", cfg: Config{Family: "ipv5"}, want: []string{`"ipv5"`, "any, ipv4 or ipv6"}},
		{name: "network", cfg: Config{AllowNetworks: []netip.Prefix{{}}}, want: []string{"not a network"}},
		{name: "servers", cfg: Config{Servers: []string{"127.0.0.1", "localhost:53", "1.2.3.4:0"}},
			want: []string{`"localhost:53"`, `"1.2.3.4:0"`, "ip:port"}},
		{name: "too many servers", cfg: Config{Servers: make([]string, 65)}, want: []string{"65 servers"}},
		{name: "all at once", cfg: Config{Timeout: -1, Attempts: -2, Family: "x"},
			want: []string{"timeout", "attempts", "family"}},
		{name: "hosts file", cfg: Config{HostsFile: filepath.Join(t.TempDir(), "none")},
			want: []string{"hosts file", "none"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := New(tt.cfg)
			if err == nil {
				r.Close()
				t.Fatal("New took it")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not tell %q", err, want)
				}
			}
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	cfg, addrs, err := Config{}.complete()
	if err != nil || len(addrs) == 0 {
		t.Fatalf("servers %v, error %v", addrs, err)
	}
	if cfg.Timeout != 2*time.Second || cfg.Attempts != 3 || cfg.Concurrency != 256 ||
		cfg.MaxTTL != 24*time.Hour {
		t.Errorf("%+v", cfg)
	}
	cfg, _, err = Config{MinTTL: 48 * time.Hour}.complete()
	if err != nil || cfg.MaxTTL != 48*time.Hour {
		t.Errorf("max TTL %v, error %v; want it not below min TTL", cfg.MaxTTL, err)
	}
}

func TestServerForms(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":         "192.0.2.1:53",
		"192.0.2.1:5353":    "192.0.2.1:5353",
		"2001:db8::1":       "[2001:db8::1]:53",
		"[2001:db8::1]:530": "[2001:db8::1]:530",
		"":                  "",
		"[2001:db8::1]":     "",
		"ns.example":        "",
		"192.0.2.1:66000":   "",
	} {
		got, err := parseServer(text)
		if err != nil && want == "" {
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("parseServer(%q) = %v, %v; want %q", text, got, err, want)
		}
	}
}

func TestNameservers(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{name: "none", text: "", want: "[127.0.0.1:53]"},
		{name: "some", text: "# x\nsearch example\nnameserver 192.0.2.1\r\n nameserver\t2001:db8::1 # " +
			"y\noptions ndots:5", want: "[192.0.2.1:53 [2001:db8::1]:53]"},
		{name: "zone", text: "nameserver fe80::1%eth0", want: "[[fe80::1%eth0]:53]"},
		{name: "bad ones are left out",
			text: "nameserver\nnameserver x\n;nameserver 192.0.2.2\nnameserver 192.0.2.3",
			want: "[192.0.2.3:53]"},
		{name: "only bad ones", text: "nameserver x", want: "[127.0.0.1:53]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(nameservers([]byte(tt.text))); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	if got := nameservers([]byte(strings.Repeat("nameserver 192.0.2.1\n", 1000))); len(got) != maxServers {
		t.Errorf("%d servers of 1000 lines, want %d", len(got), maxServers)
	}
}
