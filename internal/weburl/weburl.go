// Package weburl parses URLs as the WHATWG URL standard does (https://url.spec.whatwg.org/) and
// keeps them as serialised bytes with the places of their parts. What is already in serialised form
// is taken as it is.
package weburl

import (
	"errors"
	"fmt"
)

// MaxLen bounds what Parse reads and what it returns, in bytes: a longer URL fits no line of the
// spider protocol, whose lines end at 8 KiB.
const MaxLen = 8192

// The offsets of a URL are 16 bits wide.
const _ = uint16(MaxLen)

// What is wrong with a URL. Parse wraps one of them, except where the standard refuses the text as
// a whole.
var (
	ErrTooLong   = errors.New("URL longer than 8192 bytes")
	ErrAuthority = errors.New("user info, host and port longer than 1024 bytes")
	ErrScheme    = errors.New("scheme is neither http nor https")
	ErrHost      = errors.New("host is neither an IP literal nor a name that DNS can carry")
	ErrCharacter = errors.New("URL contains a character that the standard encodes or forbids")
	ErrSyntax    = errors.New("not an absolute URL by the WHATWG standard")
)

// URL is an absolute http or https URL as the WHATWG URL standard serialises it, without fragment.
// Its methods return slices that alias the text; they must not be written to. A URL is immutable
// and safe for concurrent use as long as the bytes given to Parse stay unchanged. The zero value is
// no URL; its parts are empty.
type URL struct {
	buf     []byte // the text; where that has user info, the origin without it follows
	end     uint16 // of the text in buf
	host    uint16 // where the host begins, behind "[" for IPv6
	hostEnd uint16
	path    uint16 // where the target begins
	port    uint16
}

// Parse returns the URL that raw means. Where raw is in serialised form, but for a fragment, the
// URL aliases raw and nothing is allocated. The error names the URL, shortened, and wraps one of
// this package's errors.
func Parse(raw []byte) (URL, error) {
	if u, ok := parsePlain(raw); ok {
		return u, nil
	}
	u, err := parseStandard(raw)
	if err != nil {
		return URL{}, fmt.Errorf("url %.100q: %w", raw, err)
	}
	return u, nil
}

// Text is the whole URL: ASCII 0x21 to 0x7e, at most MaxLen bytes, no fragment, user info included.
func (u URL) Text() []byte { return u.buf[:u.end:u.end] }

// Scheme is "http" or "https".
func (u URL) Scheme() []byte {
	if u.end == 0 {
		return nil
	}
	if u.buf[len("http")] == 's' {
		return u.buf[:len("https"):len("https")]
	}
	return u.buf[:len("http"):len("http")]
}

// Host is the host name in lower case, or the IP literal, IPv6 without brackets. A name's labels
// are 1 to 63 bytes and together at most 253; one dot may stand at the end.
func (u URL) Host() []byte { return u.buf[u.host:u.hostEnd:u.hostEnd] }

// Port is the port to connect to: the one given, or else the scheme's.
func (u URL) Port() uint16 { return u.port }

// Origin is "scheme://host[:port]" without user info; the scheme's own port is left out, IPv6
// stands in brackets.
func (u URL) Origin() []byte {
	if int(u.end) < len(u.buf) {
		return u.buf[u.end:len(u.buf):len(u.buf)]
	}
	return u.buf[:u.path:u.path]
}

// Target is path and query as they stand in a request line; it begins with "/".
func (u URL) Target() []byte { return u.buf[u.path:u.end:u.end] }
