package weburl

import (
	"fmt"
	"net/netip"
	"strings"
)

// Host returns a host name or IP literal as URLs have it: lower case, Punycode, IPv6 without
// brackets, in which it may be given. It has to stand alone, without port and path. The error wraps
// ErrHost or what Parse does.
func Host(raw string) (string, error) {
	text := raw
	if addr, err := netip.ParseAddr(raw); err == nil && addr.Is6() && addr.Zone() == "" {
		text = "[" + raw + "]"
	}
	bracketed := strings.HasPrefix(text, "[")
	odd := func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\?#@`, r) || r == ':' && !bracketed
	}
	if strings.ContainsFunc(text, odd) || bracketed && !strings.HasSuffix(text, "]") {
		return "", fmt.Errorf("host %.100q: %w, without port and path", raw, ErrHost)
	}
	u, err := Parse([]byte("http://" + text + "/"))
	if err != nil {
		return "", fmt.Errorf("host %.100q: %w", raw, err)
	}
	return string(u.Host()), nil
}
