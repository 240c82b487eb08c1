package weburl

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"
)

// strictHost sees a URL's host before the library does. It returns "" for those that the library
// takes for something else than they are, and locate refuses an empty host:
//   - "[[::1]" is a failure by the standard, to the library an address;
//   - "1.-2.3.4" is a failure by the standard, and "1.2.3.-4" a name, though none that DNS has: to the library,
//     addresses;
//   - names with "≠", "≮" or "≯" turn into Punycode that the library itself refuses, and no registry has them.
func strictHost(_ *url.Url, host string) string {
	if inner, isIPv6 := strings.CutPrefix(host, "["); isIPv6 {
		if strings.ContainsAny(strings.TrimSuffix(inner, "]"), "[]") {
			return ""
		}
		return host
	}
	if ascii, ok := mapHost(host); !ok || hasSignedNumber(ascii) {
		return ""
	}
	return host
}

// hasSignedNumber reports whether the library might parse name as an IPv4 address with a signed
// number.
func hasSignedNumber(name string) bool {
	name = strings.TrimSuffix(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || !isDigit(last[0]) && !isSign(last[0]) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if isSignedNumber(label) {
			return true
		}
	}
	return false
}

// isSignedNumber reports whether the library would parse label as a signed decimal, octal or
// hexadecimal number.
func isSignedNumber(label string) bool {
	base := 10
	digits, isHex := strings.CutPrefix(label, "0x")
	if isHex {
		base = 16
	} else if rest, isOctal := strings.CutPrefix(label, "0"); isOctal {
		digits, base = rest, 8
	}
	if digits == "" || !isSign(digits[0]) {
		return false
	}
	_, err := strconv.ParseInt(digits, base, 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

func isSign(c byte) bool { return c == '+' || c == '-' }

// mapHost decodes host and maps it to lower-case ASCII as the library does; ok is false if IDNA
// forbids that.
func mapHost(host string) (ascii string, ok bool) {
	host = decodePercent(host)
	for i := range len(host) {
		if host[i] >= utf8.RuneSelf {
			ascii, err := mapping.ToASCII(host)
			return ascii, err == nil
		}
	}
	return strings.ToLower(host), true
}

// mapping is the IDNA profile of the library.
var mapping = idna.New(
	idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(false), idna.StrictDomainName(true),
	idna.ValidateLabels(true), idna.CheckHyphens(false), idna.CheckJoiners(true), idna.Transitional(false),
)

func decodePercent(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(b))
				i += 2
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
