package weburl

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	whatwgerrors "github.com/nlnwa/whatwg-url/errors"
	"github.com/nlnwa/whatwg-url/url"
)

// Limits of a DNS name (RFC 1035, section 2.3.4), as text without the final dot.
const (
	maxHost  = 253
	maxLabel = 63
)

// maxAuthority bounds user info, host and port, raw or serialised: the library's time grows with
// the square of their length, up to a tenth of a second for MaxLen of "@". The longest name, with
// every byte percent-encoded, leaves 265 bytes for the rest.
const maxAuthority = 1024

// neverInHost lists the standard's forbidden domain code points that are printable, and the letters
// that it maps to lower case.
const neverInHost = "#%/:<>?@[\\]^|ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// parser is the library's parser. It passes hosts to strictHost first. Immutable.
var parser = url.NewParser(url.WithPreParseHostFunc(strictHost))

// parseStandard parses raw by the whole standard and checks the result, so that no fault of the
// library breaks a promise of URL. It uses the library only for the part before the path, because
// the library's time for a path grows with the square of its length.
func parseStandard(raw []byte) (URL, error) {
	if len(raw) > MaxLen {
		return URL{}, ErrTooLong
	}
	if len(rawAuthority(raw)) > maxAuthority {
		return URL{}, ErrAuthority
	}
	head, tail := cutTarget(withoutBlanks(raw))
	std, err := parser.Parse(string(head))
	if err != nil {
		return URL{}, fmt.Errorf("%w%s", ErrSyntax, reason(err))
	}
	if s := std.Scheme(); s != "http" && s != "https" {
		return URL{}, ErrScheme
	}
	base := strings.TrimSuffix(std.Href(true), "/")
	return locate(appendTarget(append(make([]byte, 0, len(base)+len(tail)+len("/")), base...), tail))
}

// rawAuthority returns what the standard takes for user info, host and port.
func rawAuthority(raw []byte) []byte {
	_, rest, _ := bytes.Cut(raw, []byte(":"))
	rest = bytes.TrimLeft(rest, "/\\\t\n\r")
	if i := bytes.IndexAny(rest, "/\\?#"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// reason returns the library's error without the URL, which may be long.
func reason(err error) string {
	var v *whatwgerrors.ValidationError
	if !errors.As(err, &v) {
		return ""
	}
	return ": " + string(v.Type())
}

// locate finds the parts of text, a serialised http or https URL, and checks them. The URL keeps
// text.
func locate(text []byte) (URL, error) {
	if len(text) > MaxLen {
		return URL{}, ErrTooLong
	}
	if bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return URL{}, ErrCharacter
	}
	authority, own := plainScheme(text)
	if authority == 0 {
		return URL{}, ErrScheme
	}
	slash := bytes.IndexByte(text[authority:], '/')
	if slash < 0 {
		return URL{}, ErrSyntax
	}
	if slash > maxAuthority {
		return URL{}, ErrAuthority
	}
	path := authority + slash
	start := authority + bytes.LastIndexByte(text[authority:path], '@') + 1
	host, hostEnd, portAt, ok := locateHost(text[:path], start)
	if !ok {
		return URL{}, ErrHost
	}
	port := own
	if portAt < path {
		digits := 0
		port, digits = plainPort(text[portAt+1:path], own)
		if text[portAt] != ':' || digits == 0 || portAt+1+digits != path {
			return URL{}, ErrSyntax
		}
	}
	end := len(text)
	if start > authority {
		text = append(append(text, text[:authority]...), text[start:path]...)
	}
	return URL{
		buf: text, end: uint16(end), host: uint16(host), hostEnd: uint16(hostEnd),
		path: uint16(path), port: port,
	}, nil
}

// locateHost finds the host that begins at text[start], and its port if it has one.
func locateHost(text []byte, start int) (host, end, port int, ok bool) {
	s := text[start:]
	if len(s) > 0 && s[0] == '[' {
		n := bytes.IndexByte(s, ']')
		if n < 0 {
			return 0, 0, 0, false
		}
		addr, err := netip.ParseAddr(string(s[1:n]))
		return start + 1, start + n, start + n + 1, err == nil && addr.Is6() && addr.Zone() == ""
	}
	n := bytes.IndexByte(s, ':')
	if n < 0 {
		n = len(s)
	}
	return start, start + n, start + n, validName(s[:n])
}

// validName reports whether DNS can carry the name. IPv4 addresses are valid, too.
func validName(host []byte) bool {
	name := bytes.TrimSuffix(host, []byte("."))
	if len(name) > maxHost || bytes.ContainsAny(name, neverInHost) {
		return false
	}
	for label := range bytes.SplitSeq(name, []byte(".")) {
		if len(label) == 0 || len(label) > maxLabel {
			return false
		}
	}
	return true
}
