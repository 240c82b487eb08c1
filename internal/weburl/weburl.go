// Package weburl parses URLs as the WHATWG URL standard does (https://url.spec.whatwg.org/). It
// keeps them as serialised bytes with the offsets of their parts. A URL in serialised form is not
// copied.
package weburl

import (
	"errors"
	"fmt"
)

// MaxLen bounds the input and the result of Parse, in bytes. A longer URL does not fit a line of
// the line protocol, which has at most 8 KiB.
const MaxLen = 8192

// The offsets of a URL are 16 bits wide.
const _ = uint16(MaxLen)

// Errors of Parse. It wraps one of them, except if the standard refuses the text as a whole.
var (
	ErrTooLong   = errors.New("URL longer than 8192 bytes")
	ErrAuthority = errors.New("user info, host and port longer than 1024 bytes")
	ErrScheme    = errors.New("scheme is neither http nor https")
	ErrHost      = errors.New("host is neither an IP literal nor a name that DNS can carry")
	ErrCharacter = errors.New("URL contains a character that the standard encodes or forbids")
	ErrSyntax    = errors.New("not an absolute URL by the WHATWG standard")
)

// URL is an absolute http or https URL as the WHATWG URL standard serialises it, without fragment.
// Its methods return slices that alias the text; do not write to them. A URL is immutable and safe
// for concurrent use as long as the bytes given to Parse stay unchanged. The zero value is no URL;
// its parts are empty.
type URL struct {
	buf     []byte // the text; if it has user info, the origin without user info follows
	end     uint16 // end of the text in buf
	host    uint16 // index of the host, after "[" for IPv6
	hostEnd uint16
	path    uint16 // index of the target
	port    uint16
}

// Parse parses raw. If raw is in serialised form, except for a fragment, the URL aliases raw and
// nothing is allocated. The error names the URL, shortened, and wraps one of this package's errors.
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

// Text returns the whole URL: ASCII 0x21 to 0x7e, at most MaxLen bytes, with user info, without
// fragment.
func (u URL) Text() []byte { return u.buf[:u.end:u.end] }

// Scheme returns "http" or "https".
func (u URL) Scheme() []byte {
	if u.end == 0 {
		return nil
	}
	if u.buf[len("http")] == 's' {
		return u.buf[:len("https"):len("https")]
	}
	return u.buf[:len("http"):len("http")]
}

// Host returns the host name in lower case, or the IP address, IPv6 without brackets. Labels of a
// name have 1 to 63 bytes, the name at most 253, and it may end with one dot.
func (u URL) Host() []byte { return u.buf[u.host:u.hostEnd:u.hostEnd] }

// Port returns the port to connect to: the URL's, or else the scheme's default.
func (u URL) Port() uint16 { return u.port }

// Origin returns "scheme://host[:port]" without user info. The scheme's default port is omitted;
// IPv6 addresses are in brackets.
func (u URL) Origin() []byte {
	if int(u.end) < len(u.buf) {
		return u.buf[u.end:len(u.buf):len(u.buf)]
	}
	return u.buf[:u.path:u.path]
}

// Target returns path and query as in a request line; it begins with "/".
func (u URL) Target() []byte { return u.buf[u.path:u.end:u.end] }
