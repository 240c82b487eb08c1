package configs

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Each of these says what is wrong with a value, "" if nothing is.

// listenFault checks "host:port" of a listener; no host is every address, port
// 0 is any free one.
func listenFault(s string) string {
	return addrFault(s, 0, true)
}

// dialFault checks "host:port" of a peer.
func dialFault(s string) string {
	return addrFault(s, 1, false)
}

func addrFault(s string, leastPort uint64, anyHost bool) string {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return quotedAddr(s) + " is not host:port"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < leastPort {
		return fmt.Sprintf("%s has a port that is no number from %d to 65535", quotedAddr(s), leastPort)
	}
	if host == "" && anyHost {
		return ""
	}
	return hostFault(host)
}

// hostFault checks a host name or an IP literal without brackets.
func hostFault(s string) string {
	if _, err := netip.ParseAddr(s); err == nil || isHostName(strings.TrimSuffix(s, ".")) {
		return ""
	}
	return quotedAddr(s) + " is neither a host name nor an IP address"
}

// quotedAddr quotes an address and hides what precedes an "@": that is no part of an address and
// may be a password.
func quotedAddr(s string) string {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		s = hidden + s[at:]
	}
	return quoted(s)
}

func isHostName(s string) bool {
	if len(s) > 253 { // RFC 1035 section 2.3.4
		return false
	}
	numeric := true // of the last label: then it would have to be an IPv4 address
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || strings.Trim(label, labelBytes) != "" {
			return false
		}
		numeric = strings.Trim(label, "0123456789") == ""
	}
	return !numeric
}

const labelBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

const prefixWords = "up to 100 printable ASCII characters without space, \"{\" and \"}\""

// prefixFault checks what goes before keys of Redis; braces would move them to other nodes of a
// cluster.
func prefixFault(s string) string {
	if len(s) > 100 || strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '{' ||
			r == '}'
	}) {
		return quoted(s) + " is no prefix"
	}
	return ""
}

// serverFault checks "ip:port" of a DNS server.
func serverFault(s string) string {
	addr, err := netip.ParseAddrPort(s)
	if err != nil || addr.Port() == 0 {
		return quotedAddr(s) + " is not ip:port"
	}
	return ""
}

// urlFault checks the base URL of an index. User info is refused since it
// would end up in logs.
func urlFault(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "this is no http or https URL"
	case u.User != nil:
		return "the URL has a user or password in it, which logs would show; for " +
			"docindex.url there is docindex.token"
	case strings.ContainsAny(s, "?#"):
		return "the URL has a query or fragment: a base has none"
	case !printable(s, '!'):
		return "the URL has characters other than printable ASCII"
	case u.Port() != "":
		return dialFault(net.JoinHostPort(u.Hostname(), u.Port()))
	}
	return hostFault(u.Hostname())
}

const maxPath = 4096 // PATH_MAX of Linux

func pathFault(s string) string {
	switch {
	case s == "":
		return "is empty"
	case strings.ContainsRune(s, 0):
		return quoted(s) + " has a NUL in it"
	case len(s) > maxPath:
		return quoted(s) + " is too long"
	}
	return ""
}

// MaxToken bounds a token, so that its line of the spider's protocol stays far below the 8 KiB a
// line may have.
const MaxToken = 1024

// tokenFault does not name the token.
func tokenFault(s string) string {
	switch {
	case len(s) > MaxToken:
		return "the token is too long"
	case !printable(s, '!'):
		return "the token has a space, control or non-ASCII character"
	}
	return ""
}

const maxAgent = 256

// agentFault checks a User-Agent value: RFC 9309 section 2.2.1 has the product
// token that robots.txt is matched with made of letters, "_" and "-".
func agentFault(s string) string {
	switch {
	case s == "" || strings.Trim(s[:1], labelBytes[:52]+"-_") != "":
		return quoted(s) + " does not begin with a product token"
	case len(s) > maxAgent:
		return quoted(s) + " is too long"
	case !printable(s, ' ') || s[len(s)-1] == ' ':
		return quoted(s) + " has characters that do not belong in a header"
	}
	return ""
}

// printable reports whether all of s is ASCII from least to "~".
func printable(s string, least byte) bool {
	for i := range len(s) {
		if s[i] < least || s[i] > '~' {
			return false
		}
	}
	return true
}

func networksFault(nets []netip.Prefix) string {
	for _, n := range nets {
		switch {
		case !n.IsValid():
			return "one of them is no network"
		case n.Addr().Is4In6():
			return fmt.Sprintf("%s is an IPv4 network in IPv6 form: write it as IPv4", n)
		case n != n.Masked():
			return fmt.Sprintf("%s has bits set behind its length: is %s meant?", n, n.Masked())
		}
	}
	return ""
}

// isLoopback reports whether only this machine reaches a listener there; a name
// other than localhost counts as reachable.
func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
	}
	return addr.IsLoopback()
}
