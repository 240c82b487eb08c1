package robots

import "bytes"

// key says what a line is about.
type key uint8

const (
	keyOther key = iota
	keyUserAgent
	keyAllow
	keyDisallow
	keyCrawlDelay
)

// record takes a line apart: "key: value # comment". Where the colon is missing, or belongs to
// the value, white space may stand for it if it is the only one in the line.
func record(text []byte) (key, []byte) {
	text, _, _ = bytes.Cut(text, []byte("#"))
	text = bytes.TrimFunc(text, isSpace)
	if before, after, found := bytes.Cut(text, []byte(":")); found {
		if k := keyOf(bytes.TrimRightFunc(before, isSpace)); k != keyOther {
			return k, bytes.TrimLeftFunc(after, isSpace)
		}
	}
	end := bytes.IndexFunc(text, isSpace)
	if end < 0 {
		return keyOther, nil
	}
	value := bytes.TrimLeftFunc(text[end:], isSpace)
	if bytes.ContainsFunc(value, isSpace) {
		return keyOther, nil
	}
	return keyOf(text[:end]), value
}

// isSpace takes controls for white space, too: neither belongs at the ends of anything.
func isSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// longestKey is the length of the longest that keyOf knows.
const longestKey = len("crawl-delay")

// keyOf knows the keys in any case, and the misspellings that are frequent.
func keyOf(name []byte) key {
	var lower [longestKey]byte
	if len(name) > len(lower) {
		return keyOther
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch string(lower[:len(name)]) {
	case "user-agent", "useragent", "user agent", "user_agent":
		return keyUserAgent
	case "allow":
		return keyAllow
	case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
		return keyDisallow
	case "crawl-delay", "crawldelay", "crawl delay", "crawl_delay":
		return keyCrawlDelay
	}
	return keyOther
}
