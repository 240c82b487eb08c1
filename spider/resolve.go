package spider

import (
	"bytes"
	"strings"

	"urlserver/internal/weburl"
)

// join returns the absolute URL, not parsed yet, of ref on a page whose base is base. It follows
// the WHATWG standard from the state "scheme" to "relative slash"
// (https://url.spec.whatwg.org/#scheme-state), on text, in linear time. It returns false for
// schemes that are not fetched. ref comes from cleanRef.
func join(base weburl.URL, ref string) ([]byte, bool) {
	scheme, rest, ok := cutScheme(ref)
	switch {
	case !ok:
	case !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		return nil, false
	case !strings.EqualFold(scheme, string(base.Scheme())) || strings.HasPrefix(rest, "//"):
		return []byte(ref), true
	default: // "http:x" on an http page is a relative reference
		ref = rest
	}
	return append(keptOf(base, ref), ref...), true
}

// keptOf returns a copy of the part of base that a reference without scheme keeps, with room for
// ref.
func keptOf(base weburl.URL, ref string) []byte {
	text := base.Text()
	path := len(text) - len(base.Target())
	query := len(text)
	if i := bytes.IndexByte(text[path:], '?'); i >= 0 {
		query = path + i
	}
	end := bytes.LastIndexByte(text[:query], '/') + 1 // the path begins with a slash
	switch {
	case ref == "" || ref[0] == '#':
		end = len(text)
	case ref[0] == '?':
		end = query
	case isSlash(ref[0]) && len(ref) > 1 && isSlash(ref[1]):
		end = len(base.Scheme()) + len(":")
	case isSlash(ref[0]):
		end = path
	}
	return append(make([]byte, 0, end+len(ref)), text[:end]...)
}

// isSlash reports whether c is a slash. In http and https URLs "\" is one, too.
func isSlash(c byte) bool { return c == '/' || c == '\\' }

// cutScheme splits ref after its scheme, if it has one.
func cutScheme(ref string) (scheme, rest string, ok bool) {
	for i := range len(ref) {
		switch c := ref[i] | 0x20; {
		case 'a' <= c && c <= 'z':
		case ref[i] == ':' && i > 0:
			return ref[:i], ref[i+1:], true
		case i > 0 && ('0' <= ref[i] && ref[i] <= '9' || ref[i] == '+' || ref[i] == '-' || ref[i] == '.'):
		default:
			return "", "", false
		}
	}
	return "", "", false
}

// cleanRef returns ref as the standard reads it: without controls and spaces at its ends, and
// without tabs and line ends. A reference longer than any URL becomes an empty one.
func cleanRef(ref string) string {
	ref = strings.TrimFunc(ref, func(r rune) bool { return r <= ' ' })
	if len(ref) > weburl.MaxLen {
		return ""
	}
	if !strings.ContainsAny(ref, "\t\n\r") {
		return ref
	}
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(ref)
}
