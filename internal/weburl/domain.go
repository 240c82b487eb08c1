package weburl

import (
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Domain returns the registered domain of a host by the public suffix list. An IP address, or a
// host without one, is returned as it is.
func Domain(host string) string {
	host = strings.TrimSuffix(host, ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}
