package weburl

// Where a byte may appear in a serialised URL.
const (
	inName  = 1 << iota // in a host name's label
	inPath              // in a path segment
	inQuery             // in the query of an http URL
)

// classes follow the percent-encode sets of the URL standard (section 1.3) for path and special
// query.
var classes = func() (t [256]uint8) {
	for c := range t {
		t[c] = classOf(byte(c))
	}
	return t
}()

func classOf(c byte) (class uint8) {
	if 'a' <= c && c <= 'z' || isDigit(c) || c == '-' {
		class |= inName
	}
	if c <= ' ' || c > '~' {
		return class
	}
	switch c {
	case '"', '#', '<', '>':
		return class
	case '\'':
		return class | inPath
	case '?', '^', '`', '{', '}', '\\', '/': // a slash needs a look at what follows it
		return class | inQuery
	}
	return class | inPath | inQuery
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// parsePlain returns raw as a URL if the standard would not change it, except that it drops a
// fragment. It may return false for a plain URL, but never true for one that the standard refuses
// or changes.
func parsePlain(raw []byte) (u URL, ok bool) {
	if len(raw) > MaxLen {
		return URL{}, false
	}
	host, own := plainScheme(raw)
	if host == 0 {
		return URL{}, false
	}
	hostEnd := host + plainName(raw[host:])
	if hostEnd == host {
		return URL{}, false
	}
	path, port := hostEnd, own
	if raw[hostEnd] == ':' {
		digits := 0
		if port, digits = plainPort(raw[hostEnd+1:], own); digits == 0 {
			return URL{}, false
		}
		path += 1 + digits
	}
	end := plainTarget(raw, path)
	if end == 0 {
		return URL{}, false
	}
	return URL{
		buf: raw[:end:end], end: uint16(end), host: uint16(host), hostEnd: uint16(hostEnd),
		path: uint16(path), port: port,
	}, true
}

// plainScheme returns the index of the authority and the scheme's default port; 0 if raw begins
// with neither "http://" nor "https://".
func plainScheme(raw []byte) (authority int, own uint16) {
	const http, https = "http://", "https://"
	if len(raw) > len(http) && string(raw[:len(http)]) == http {
		return len(http), 80
	}
	if len(raw) > len(https) && string(raw[:len(https)]) == https {
		return len(https), 443
	}
	return 0, 0
}

// plainName returns the length of the host name at the beginning of s; 0 if it is not plain: it has
// capitals, Punycode to be validated, an odd IP address or a final dot, or does not end.
func plainName(s []byte) int {
	label := 0 // index of the label
	for i, c := range s {
		if classes[c]&inName != 0 {
			continue
		}
		if !plainLabel(s[label:i]) {
			return 0
		}
		if c == '.' {
			label = i + 1
			continue
		}
		if isDigit(s[label]) && !plainIPv4(s[:i]) || s[label] == '-' || i > maxHost {
			return 0
		}
		return i
	}
	return 0
}

// plainIPv4 reports whether s is four decimal numbers below 256, as the standard writes them.
func plainIPv4(s []byte) bool {
	parts, n, digits := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '.' {
			if digits == 0 || n > 255 {
				return false
			}
			parts, n, digits = parts+1, 0, 0
			continue
		}
		if !isDigit(s[i]) || digits == 1 && n == 0 || digits == 3 {
			return false
		}
		n, digits = n*10+int(s[i]-'0'), digits+1
	}
	return parts == 4
}

func plainLabel(l []byte) bool {
	return len(l) > 0 && len(l) <= maxLabel && (l[0] != 'x' || len(l) < 4 || string(l[:4]) != "xn--")
}

// plainPort returns the port at the beginning of s and its number of digits; 0 if it is not as the
// standard writes it, which omits the scheme's default.
func plainPort(s []byte, own uint16) (port uint16, digits int) {
	n := 0
	for digits < len(s) && digits <= len("65535") && isDigit(s[digits]) {
		n = n*10 + int(s[digits]-'0')
		digits++
	}
	if digits == 0 || n > 65535 || n == int(own) || s[0] == '0' && digits > 1 {
		return 0, 0
	}
	return uint16(n), digits
}

// plainTarget returns the index of the end of path and query, which begin at raw[i]; 0 if they are
// not plain.
func plainTarget(raw []byte, i int) (end int) {
	if i == len(raw) || raw[i] != '/' {
		return 0
	}
	for ; i < len(raw); i++ {
		c := raw[i]
		if classes[c]&inPath != 0 {
			continue
		}
		switch c {
		case '/':
			if mayBeDots(raw[i+1:]) {
				return 0
			}
		case '?':
			return plainQuery(raw, i+1)
		case '#':
			return i
		default:
			return 0
		}
	}
	return i
}

func plainQuery(raw []byte, i int) (end int) {
	for ; i < len(raw); i++ {
		c := raw[i]
		if classes[c]&inQuery != 0 {
			continue
		}
		if c == '#' {
			return i
		}
		return 0
	}
	return i
}

// mayBeDots reports whether the first path segment of s might be "." or "..", percent-encoded or
// not. Names like ".well-known" are not.
func mayBeDots(s []byte) bool {
	if len(s) == 0 || s[0] != '.' && s[0] != '%' {
		return false
	}
	if s[0] == '%' {
		return len(s) > 2 && s[1] == '2' && s[2]|0x20 == 'e'
	}
	if len(s) == 1 {
		return true
	}
	switch s[1] {
	case '.', '%', '/', '?', '#':
		return true
	}
	return false
}
