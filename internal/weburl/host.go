package weburl

import (
	"fmt"
	"net/netip"
	"strings"
)

// Host returns a host name or IP address in the form of URLs: in lower case, in Punycode, IPv6
// without brackets. raw may have brackets, but no port and no path. The error wraps ErrHost or an
// error of Parse.
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
