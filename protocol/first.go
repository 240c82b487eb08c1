package protocol

import "bytes"

// MayBegin reports whether the first line of a spider may begin with b, which may be empty: with a
// TRANS_ID, or with a verb and what follows it. It looks at the first field and the space behind it
// only, for PUT also at the second one and the brace behind it. It recognizes clients of other
// protocols (HTTP, TLS, HTTP/2, SSH, SMTP, Redis) by their first bytes, before the line ends; a TLS
// record may have no line end at all.
func MayBegin(b []byte) bool {
	for _, verb := range [...]string{"AUTH ", "SPIDER ", "ROOM ", "COUNT ", "PAYLOAD\n", "PAYLOAD\r\n"} {
		if n := min(len(b), len(verb)); string(b[:n]) == verb[:n] {
			return true
		}
	}
	if mayBeginPut(b) {
		return true
	}
	id, _, found := bytes.Cut(b, []byte(" "))
	for _, c := range id {
		if c != '.' && (c < '0' || c > '9') {
			return false
		}
	}
	return len(id) <= maxTrans && (len(id) > 0 || !found)
}
