package resolver

import (
	"fmt"
	"net/netip"
	"strings"
)

const (
	maxName  = 253 // RFC 1035 section 2.3.4: 255 bytes on the wire, without the first length and the root
	maxLabel = 63
)

// fold returns the canonical form of a host name: ASCII letters in lower case, without a final dot.
func fold(host string) string {
	host = strings.TrimSuffix(host, ".")
	if !strings.ContainsFunc(host, func(c rune) bool { return 'A' <= c && c <= 'Z' }) {
		return host
	}
	folded := []byte(host)
	for i, c := range folded {
		folded[i] = lower(c)
	}
	return string(folded)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// appendFolded appends the folded name; ok is false if it is too long.
func appendFolded(dst, host []byte) (folded []byte, ok bool) {
	if n := len(host); n > 0 && host[n-1] == '.' {
		host = host[:n-1]
	}
	if len(host) > maxName {
		return nil, false
	}
	for _, c := range host {
		dst = append(dst, lower(c))
	}
	return dst, true
}

// literal parses an IP address, without zone; IPv4 only in its usual form.
func literal(name string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(name)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// isLocalhost reports whether name is localhost or below it. Name servers are not asked for these
// names (RFC 6761, section 6.3).
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// checkName accepts letters, digits, "-" and "_" in labels of 1 to 63 bytes, up to 253 bytes in
// all. It refuses a last label of digits only: that is a malformed IP address.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrBadName)
	case len(name) > maxName:
		return fmt.Errorf("%w: %.64q… has %d bytes, at most %d are possible", ErrBadName, name,
			len(name), maxName)
	}
	var label string
	for label = range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrBadName, name, err)
		}
	}
	if strings.Trim(label, "0123456789") == "" {
		return fmt.Errorf("%w: %q: ends in a number and is no IP address", ErrBadName, name)
	}
	return nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return fmt.Errorf("empty label")
	case len(label) > maxLabel:
		return fmt.Errorf("label of %d bytes, at most %d are possible", len(label), maxLabel)
	}
	for _, c := range []byte(label) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("bad character %q", c)
		}
	}
	return nil
}
