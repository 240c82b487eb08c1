// Package shapes lets the shapes of a site's URLs take turns, so that a trap does not hold up the
// rest of its site.
//
// [Of] says which shape a URL has. A [Table] has the branches of a queue: the documents of a shape
// wait in one. It says whose turn it is, and learns from the links that pages bring. It knows
// no documents: the stores keep them, and so docindex/memory and docindex/disk have one order.
package shapes

import "bytes"

// Shape is what URLs of one kind have in common: their path without digits, identifiers and names,
// and the set of their query keys. It also says how many of the patterns of traps they have.
type Shape struct {
	hash  uint64 // 0: none
	path  uint64 // without the query keys
	kind  uint32 // likewise, without the number of folders: by this a shape knows its own
	traps uint8  // patterns of traps
}

// Bounds of what makes a shape.
const (
	maxFolders  = 2  // that count by their names; of the others their number counts
	maxDepth    = 8  // folders more are not counted
	maxPrefix   = 16 // letters of a file's name before its number
	maxKeys     = 16 // query keys
	maxExt      = 5  // letters of a file's extension
	maxSegments = 20 // a path with more is a trap's pattern
	repeats     = 3  // so many equal segments are a trap's pattern
)

// Of returns the shape of a URL in serialised form. Any text has one.
func Of(url []byte) Shape {
	_, path := split(url)
	path, query, _ := bytes.Cut(path, []byte("?"))
	h, traps := hash(offset), uint8(0)
	if at := bytes.IndexByte(path, ';'); at >= 0 { // parameters, such as ;jsessionid=
		if isSession(bytes.TrimLeft(path[at:], ";")) {
			traps++
		}
		path = path[:at]
	}
	kind := h.path(path)
	if repeated(path) {
		traps++
	}
	dated := isDated(path)
	of := max(1, uint64(h))
	keys, session, calendar := h.keys(query)
	if session {
		traps++
	}
	if dated || calendar {
		traps++
	}
	h.byte(byte(keys))
	h.byte(traps) // so URLs with a trap's pattern are no burden to those without
	return Shape{hash: max(1, uint64(h)), path: of, kind: kind, traps: traps}
}

// split cuts a URL behind its host. Without a host, rest is the whole text.
func split(url []byte) (host, rest []byte) {
	at := bytes.Index(url, []byte("://"))
	if at < 0 {
		return nil, url
	}
	from := at + 3
	end := from
	for end < len(url) && url[end] != '/' && url[end] != '?' {
		end++
	}
	if end == from {
		return nil, url
	}
	return url[from:end], url[end:]
}

// hash is an FNV-1a hash.
type hash uint64

const offset = 14695981039346656037

func (h *hash) byte(c byte) { *h = (*h ^ hash(c)) * 1099511628211 }

func (h *hash) text(b []byte) {
	for _, c := range b {
		h.byte(c)
	}
}

// path adds the folders of a path, and its last segment. It returns a hash of the path without the
// number of folders.
func (h *hash) path(path []byte) (kind uint32) {
	path = bytes.TrimPrefix(path, []byte("/"))
	depth := 0
	for {
		folder, rest, more := bytes.Cut(path, []byte("/"))
		if !more {
			break
		}
		if depth++; depth <= maxFolders {
			h.folder(folder)
		}
		path = rest
	}
	any := *h
	any.file(path)
	h.byte(byte(min(depth, maxDepth)))
	h.file(path)
	return uint32(any)
}

// folder adds a folder's name with its numbers and identifiers folded.
func (h *hash) folder(name []byte) {
	h.byte('/')
	if isIdentifier(name) {
		h.byte('#')
		return
	}
	digit := false
	for _, c := range name {
		if !isDigit(c) {
			h.byte(c)
		} else if !digit {
			h.byte('0')
		}
		digit = isDigit(c)
	}
}

// file adds the last segment of a path: of a name with digits the letters before them, of any other
// nothing; and its extension.
func (h *hash) file(name []byte) {
	h.byte('/')
	if len(name) == 0 {
		return
	}
	if at := bytes.LastIndexByte(name, '.'); at > 0 && len(name)-at-1 <= maxExt {
		defer h.text(name[at:])
		name = name[:at]
	}
	switch at := firstDigit(name); {
	case at < 0:
		h.byte('*')
	case isIdentifier(name):
		h.byte('#')
	default:
		word := 0
		for word < min(at, maxPrefix) && isLetter(name[word]) {
			word++
		}
		h.text(name[:word])
		h.byte('0')
	}
}

// keys adds the set of query keys. It returns their number, and whether they are those of sessions
// or calendars.
func (h *hash) keys(query []byte) (n int, session, calendar bool) {
	var seen [maxKeys]uint64
	sum := uint64(0)
	for len(query) > 0 && n < maxKeys {
		var one []byte
		one, query, _ = bytes.Cut(query, []byte("&"))
		key, value, _ := bytes.Cut(one, []byte("="))
		if len(key) == 0 {
			continue
		}
		own := hash(offset)
		own.text(key)
		session = session || isSession(key)
		calendar = calendar || isDate(value) || isMonth(value)
		if known(seen[:n], uint64(own)) {
			continue
		}
		seen[n] = uint64(own)
		sum += uint64(own)
		n++
	}
	for range 8 {
		h.byte(byte(sum))
		sum >>= 8
	}
	return n, session, calendar
}

func known(seen []uint64, one uint64) bool {
	for _, s := range seen {
		if s == one {
			return true
		}
	}
	return false
}

// firstDigit returns the place of the first digit, or -1.
func firstDigit(name []byte) int {
	for i, c := range name {
		if isDigit(c) {
			return i
		}
	}
	return -1
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// kinds says of each byte what it is in an identifier: 1 a digit, 2 another part, 0 none.
var kinds = func() (of [256]uint8) {
	for c := range of {
		switch b := byte(c); {
		case isDigit(b):
			of[c] = 1
		case isLetter(b) || b == '-' || b == '_':
			of[c] = 2
		}
	}
	return of
}()

// isIdentifier reports whether a name looks made by a program: digits alone, or eight and more
// letters and digits that change often.
func isIdentifier(name []byte) bool {
	digits, changes, was := 0, 0, uint8(0)
	for i, c := range name {
		kind := kinds[c]
		if kind == 0 {
			return false
		}
		digits += int(kind & 1)
		if i > 0 {
			changes += int(kind&1 ^ was&1)
		}
		was = kind
	}
	return digits > 0 && (digits == len(name) || len(name) >= 8 && changes >= 4)
}
