package weburl

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// withoutBlanks returns raw without the characters that the standard removes before parsing:
// controls and spaces at the ends, tabs and line ends anywhere. It may alias raw.
func withoutBlanks(raw []byte) []byte {
	text := bytes.TrimFunc(raw, func(r rune) bool { return r <= ' ' })
	if !bytes.ContainsAny(text, "\t\n\r") {
		return text
	}
	return slices.DeleteFunc(bytes.Clone(text),
		func(c byte) bool { return c == '\t' || c == '\n' || c == '\r' })
}

// cutTarget splits a text that begins with "http:" or "https:" before its path, query and fragment.
// The head has "/" for a path. Any other text is all head.
func cutTarget(text []byte) (head, tail []byte) {
	scheme, rest, found := bytes.Cut(text, []byte(":"))
	if !found || !bytes.EqualFold(scheme, []byte("http")) && !bytes.EqualFold(scheme, []byte("https")) {
		return text, nil
	}
	authority := bytes.TrimLeft(rest, "/\\")
	if i := bytes.IndexAny(authority, "/\\?#"); i >= 0 {
		authority, tail = authority[:i], authority[i:]
	}
	return slices.Concat(scheme, []byte("://"), authority, []byte("/")), tail
}

// appendTarget appends the path and query of tail, without fragment. tail is empty or begins with
// "/", "\", "?" or "#".
func appendTarget(dst, tail []byte) []byte {
	path, query, asks := tail, []byte(nil), false
	if i := bytes.IndexAny(tail, "?#"); i >= 0 {
		path, query, asks = tail[:i], tail[i+1:], tail[i] == '?'
	}
	dst = appendPath(dst, path)
	if asks {
		query, _, _ = bytes.Cut(query, []byte("#"))
		dst = appendEncoded(append(dst, '?'), query, inQuery)
	}
	return dst
}

// appendPath implements the standard's path state.
func appendPath(dst, path []byte) []byte {
	begin := len(dst)
	path = path[min(1, len(path)):] // without the first slash
	for more := true; more; {
		segment := path
		i := bytes.IndexAny(path, "/\\")
		if more = i >= 0; more {
			segment, path = path[:i], path[i+1:]
		}
		switch dots(segment) {
		case 1:
		case 2:
			dst = dst[:begin+max(0, bytes.LastIndexByte(dst[begin:], '/'))]
		default:
			dst = appendEncoded(append(dst, '/'), segment, inPath)
			continue
		}
		if !more {
			dst = append(dst, '/')
		}
	}
	return dst
}

// dots returns the number of dots of a segment that has only dots, percent-encoded or not; 0 for
// any other segment.
func dots(segment []byte) (n int) {
	for ; len(segment) > 0; n++ {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case len(segment) > 2 && segment[0] == '%' && segment[1] == '2' && segment[2]|0x20 == 'e':
			segment = segment[3:]
		default:
			return 0
		}
	}
	return n
}

// appendEncoded appends text and percent-encodes the characters that are not of the class. Each
// byte that is not UTF-8 becomes U+FFFD.
func appendEncoded(dst, text []byte, class uint8) []byte {
	const hex = "0123456789ABCDEF"
	for len(text) > 0 {
		if classes[text[0]]&class != 0 {
			dst, text = append(dst, text[0]), text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		var encoded [utf8.UTFMax]byte
		for _, c := range encoded[:utf8.EncodeRune(encoded[:], r)] {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
		text = text[size:]
	}
	return dst
}
