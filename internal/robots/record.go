package robots

import (
	"bytes"
	"slices"
)

// key is the kind of a line.
type key uint8

const (
	keyOther key = iota
	keyUserAgent
	keyAllow
	keyDisallow
	keyCrawlDelay
	keySitemap
)

// record splits a line: "key: value # comment". If the colon is missing, or belongs to the value,
// white space may replace it if it is the only one in the line.
func record(text []byte) (key, []byte) {
	text = text[:indexOr(text, '#')]
	text = trimRight(trimLeft(text))
	if colon := bytes.IndexByte(text, ':'); colon >= 0 {
		if k := keyOf(trimRight(text[:colon])); k != keyOther {
			return k, trimLeft(text[colon+1:])
		}
	}
	end := slices.IndexFunc(text, isSpace)
	if end < 0 {
		return keyOther, nil
	}
	value := trimLeft(text[end:])
	if slices.ContainsFunc(value, isSpace) {
		return keyOther, nil
	}
	return keyOf(text[:end]), value
}

// isSpace reports whether c is white space or a control character. No key or value begins or ends
// with one.
func isSpace(c byte) bool { return c <= ' ' || c == 0x7f }

func trimLeft(s []byte) []byte {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

func trimRight(s []byte) []byte {
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// longestKey is the length of the longest key of keyOf.
const longestKey = len("crawl-delay")

// keyOf returns the key with a name. Case does not matter. It accepts frequent misspellings.
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
	case "sitemap", "site-map":
		return keySitemap
	}
	return keyOther
}
