package ndjson

import "bytes"

// flat parses a JSON object without nesting and without escapes. Nearly all lines have this form.
// If it meets anything else it sets bad, which is no error: the caller uses encoding/json instead.
type flat struct {
	rest []byte
	bad  bool
}

// value is a member's value: a string's bytes, or a number's digits.
type value struct {
	text   []byte
	quoted bool
}

// open returns a flat for the object in line.
func open(line []byte) flat {
	f := flat{rest: line}
	f.space()
	f.bad = !f.eat('{')
	return f
}

// next returns the next member. first is true in the first call for an object. ok is false at the
// end of the object, and if f set bad.
func (f *flat) next(first bool) (key []byte, v value, ok bool) {
	if f.bad {
		return nil, v, false
	}
	f.space()
	if f.eat('}') {
		f.space()
		f.bad = first || len(f.rest) > 0
		return nil, v, false
	}
	if !first && !f.eat(',') {
		return f.giveUp()
	}
	f.space()
	key, ok = f.str()
	if !ok {
		return f.giveUp()
	}
	f.space()
	if !f.eat(':') {
		return f.giveUp()
	}
	f.space()
	if v, ok = f.value(); !ok {
		return f.giveUp()
	}
	return key, v, true
}

func (f *flat) giveUp() ([]byte, value, bool) {
	f.bad = true
	return nil, value{}, false
}

func (f *flat) value() (value, bool) {
	if len(f.rest) > 0 && f.rest[0] == '"' {
		text, ok := f.str()
		return value{text: text, quoted: true}, ok
	}
	text, ok := f.number()
	return value{text: text}, ok
}

// str reads a string of plain ASCII.
func (f *flat) str() ([]byte, bool) {
	if !f.eat('"') {
		return nil, false
	}
	end := bytes.IndexByte(f.rest, '"')
	if end < 0 || !plain(f.rest[:end]) {
		return nil, false
	}
	text := f.rest[:end:end]
	f.rest = f.rest[end+1:]
	return text, true
}

// number reads an integer. It leaves what follows, such as a fraction, unread; next then finds
// neither a comma nor the end, and gives up.
func (f *flat) number() ([]byte, bool) {
	n := integer(f.rest)
	text := f.rest[:n:n]
	f.rest = f.rest[n:]
	return text, n > 0
}

func (f *flat) eat(c byte) bool {
	if len(f.rest) == 0 || f.rest[0] != c {
		return false
	}
	f.rest = f.rest[1:]
	return true
}

func (f *flat) space() {
	for len(f.rest) > 0 && (f.rest[0] == ' ' || f.rest[0] == '\t') {
		f.rest = f.rest[1:]
	}
}

// integer returns the length of the JSON integer at the start of text, or 0 if there is none.
func integer(text []byte) int {
	n := 0
	if n < len(text) && text[n] == '-' {
		n++
	}
	start := n
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	if digits := n - start; digits == 0 || digits > 1 && text[start] == '0' {
		return 0
	}
	return n
}

// plain reports whether text is printable ASCII without a backslash, so that JSON needs no escapes
// for it. It does not look for quotes; callers do.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}
