package protocol

import "bytes"

// IsForeign reports whether a connection whose first bytes are b is a client of another protocol that
// says no lines: TLS, or STUN over TCP, by which web pages can reach a port. b may be empty.
func IsForeign(b []byte) bool {
	const handshake, stunCookie = "\x16\x03", "\x21\x12\xa4\x42"
	return bytes.HasPrefix(b, []byte(handshake)) || len(b) >= 8 && string(b[4:8]) == stunCookie
}

// ForeignBytes is how many bytes [IsForeign] looks at.
const ForeignBytes = 8

// IsHTTP reports whether a line, without its line end, begins a request or an answer of HTTP. A web
// page can make a browser send lines to any port, but the first one is always such a line.
func IsHTTP(line []byte) bool {
	last := line[bytes.LastIndexByte(line, ' ')+1:]
	return bytes.HasPrefix(line, []byte("HTTP/")) || len(last) < len(line) && bytes.HasPrefix(last, []byte("HTTP/"))
}
