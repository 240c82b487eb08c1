package robots

// Patterns and targets are compared in one canonical form (RFC 9309, section 2.2.2). Octets that
// may appear in a URL as they are stand for themselves, however they were written; all others are
// percent-encoded with upper-case digits. So "%62" is "b", "%3a" is ":", a raw "ツ" is "%E3%83%84".
// An encoded "/" and an encoded "?" keep their encoding in a path, because decoding would change
// their meaning.

// The characters of RFC 3986 that are unreserved or reserved: one bit each, 0 to 63 and 64 to 127.
const (
	plainLow uint64 = 1<<'!' | 1<<'#' | 1<<'$' | 1<<'&' | 1<<'\'' | 1<<'(' | 1<<')' | 1<<'*' | 1<<'+' | 1<<',' |
		1<<'-' | 1<<'.' | 1<<'/' | 0x3ff<<'0' | 1<<':' | 1<<';' | 1<<'=' | 1<<'?'
	plainHigh uint64 = 1<<('@'-64) | 0x3ffffff<<('A'-64) | 1<<('['-64) | 1<<(']'-64) | 1<<('_'-64) |
		0x3ffffff<<('a'-64) | 1<<('~'-64)
)

func isPlain(c byte) bool {
	switch {
	case c < 64:
		return plainLow>>c&1 != 0
	case c < 128:
		return plainHigh>>(c-64)&1 != 0
	}
	return false
}

// isCanonical reports whether target is in canonical form. Nearly all targets are.
func isCanonical(target []byte) bool {
	for _, c := range target {
		if !isPlain(c) {
			return false
		}
	}
	return len(target) > 0 && target[0] == '/'
}

// appendTarget appends the canonical form of target to dst. If open is set, encoded "/" and "?" in
// the query are decoded, too, because they delimit nothing there.
func appendTarget(dst, target []byte, open bool) []byte {
	if len(target) == 0 || target[0] != '/' {
		dst = append(dst, '/')
	}
	query := false
	for len(target) > 0 {
		c, n := octet(target)
		dst = appendOctet(dst, c, n > 1, open && query)
		query = query || target[0] == '?'
		target = target[n:]
	}
	return dst
}

// octet returns the first octet that s encodes, and its length in s: three bytes if it is
// percent-encoded. s is not empty.
func octet(s []byte) (c byte, n int) {
	if s[0] == '%' && len(s) >= 3 {
		high, low := unhex(s[1]), unhex(s[2])
		if high < 16 && low < 16 {
			return high<<4 | low, 3
		}
	}
	return s[0], 1
}

// unhex returns the value of a hexadecimal digit, and 16 for anything else.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

// appendOctet appends c in canonical form. encoded: c was percent-encoded. open: an encoded
// delimiter means the same as a plain one.
func appendOctet(dst []byte, c byte, encoded, open bool) []byte {
	delimiter := c == '/' || c == '?'
	if isPlain(c) && !(encoded && delimiter && !open) {
		return append(dst, c)
	}
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}
