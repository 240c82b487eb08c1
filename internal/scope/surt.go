package scope

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"urlserver/internal/weburl"
)

// The SURT form of http://user@www.example.org:8080/Path is http://(org,example,www,:8080@user)/path:
// the labels of the host in reverse, and all in lower case. An IP address is not reversed. The form
// and the comparison are those of Heritrix (org.archive.util.SURT and SurtPrefixSet): prefixes are
// compared as text, and https counts as http. So "http://(org,example," has all hosts of example.org,
// and "http://(org,example,)/docs/" has one folder of one host.

// surtForm checks a SURT prefix and brings it into lower case, without the scheme's own port, which
// no URL has.
func surtForm(text string) (string, error) {
	lower, port := strings.ToLower(text), ":80"
	prefix := coerced(lower)
	if prefix != lower {
		port = ":443"
	}
	rest, ok := strings.CutPrefix(prefix, "http://(")
	bad := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case !ok:
		return "", fmt.Errorf("%.100q does not begin with http://( as in http://(org,example,)/path", text)
	case len(prefix) > maxSURT:
		return "", fmt.Errorf("%.100q has %d bytes; at most %d are taken", text, len(prefix), maxSURT)
	case strings.ContainsFunc(prefix, bad):
		return "", fmt.Errorf("%.100q has a character that URLs encode", text)
	}
	host, path, closed := strings.Cut(rest, ")")
	if closed && path != "" && path[0] != '/' {
		return "", fmt.Errorf("%.100q: what follows the parenthesis does not begin with /", text)
	}
	if strings.Contains(host, "/") {
		return "", fmt.Errorf("%.100q has a path before the parenthesis is closed", text)
	}
	name, _, at := strings.Cut(host, "@")
	labels, _, _ := strings.Cut(name, ":")
	if strings.Contains(labels, ".") && strings.Trim(labels, "0123456789.") != "" {
		return "", fmt.Errorf(
			"%.100q: the labels of a host are in reverse, each with a comma behind it: (org,example,)", text)
	}
	if short, is := strings.CutSuffix(name, port); is && (closed || at) {
		return strings.Replace(prefix, name, short, 1), nil
	}
	return prefix, nil
}

// coerced makes https http.
func coerced(surt string) string {
	if rest, ok := strings.CutPrefix(surt, "https:"); ok {
		return "http:" + rest
	}
	return surt
}

// appendSURT appends the SURT form of a URL.
func appendSURT(dst []byte, u weburl.URL) []byte {
	from := len(dst)
	text, host := u.Text(), bytes.TrimSuffix(u.Host(), []byte{'.'})
	dst = append(dst, "http://("...)
	switch last := lastByte(host); {
	case bytes.IndexByte(host, ':') >= 0:
		dst = append(append(append(dst, '['), host...), "],"...)
	case '0' <= last && last <= '9': // only IPv4 addresses end with a number
		dst = append(dst, host...)
	default:
		dst = appendLabels(dst, host)
	}
	authority := text[len(u.Scheme())+len("://") : len(text)-len(u.Target())]
	at := bytes.IndexByte(authority, '@')
	port := authority[at+1:]
	if i := bytes.LastIndexByte(port, ':'); i >= 0 && bytes.IndexByte(port[i:], ']') < 0 {
		dst = append(dst, port[i:]...)
	}
	if at >= 0 {
		dst = append(append(dst, '@'), authority[:at]...)
	}
	dst = append(append(dst, ')'), u.Target()...)
	for i := from; i < len(dst); i++ {
		if 'A' <= dst[i] && dst[i] <= 'Z' {
			dst[i] |= 0x20
		}
	}
	return dst
}

// appendLabels appends the labels of a host from the last to the first, each with a comma.
func appendLabels(dst, host []byte) []byte {
	for end := len(host); end > 0; {
		i := bytes.LastIndexByte(host[:end], '.')
		dst = append(append(dst, host[i+1:end]...), ',')
		end = i
	}
	return dst
}

func lastByte(text []byte) byte {
	if len(text) == 0 {
		return 0
	}
	return text[len(text)-1]
}

// prefixes is a sorted list of prefixes of which none is a prefix of another.
type prefixes []string

// newPrefixes drops what another prefix has. list is sorted.
func newPrefixes(list []string) (p prefixes) {
	for _, one := range list {
		if len(p) == 0 || !strings.HasPrefix(one, p[len(p)-1]) {
			p = append(p, one)
		}
	}
	return p
}

// has reports whether text begins with one of the prefixes. Only the last prefix that is not behind
// text can be it.
func (p prefixes) has(text []byte) bool {
	behind := sort.Search(len(p), func(i int) bool { return p[i] > string(text) })
	return behind > 0 && len(text) >= len(p[behind-1]) && string(text[:len(p[behind-1])]) == p[behind-1]
}
