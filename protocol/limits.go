package protocol

// Limits of the wire format, in bytes.
const (
	// MaxLine is the most bytes of a line in either direction, with its line end. HTTP servers
	// commonly accept request lines of 8 KiB, so a URL that does not fit could hardly be fetched.
	MaxLine = 8192

	// MaxLong is the most bytes of a PUT line, and of a fetch line with a payload.
	MaxLong = 4 * MaxLine

	// MaxPayload is the most bytes of a payload, before it is encoded.
	MaxPayload = 8192

	// MaxDocID is the most bytes of a DOC_ID.
	MaxDocID = 64

	// MaxURL is the most bytes of a URL: what the other fields of the longest fetch line leave of
	// MaxLine.
	MaxURL = MaxLine - maxTrans - len(" ") - MaxDocID - len(" ") - maxAddr - len(" ") - len("\n")

	// MaxToken is the most bytes of the token of an AUTH line.
	MaxToken = MaxLine - len("AUTH ") - len("\r\n")

	maxTrans = len("4294967295.4294967295.4294967295")
	maxAddr  = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
)

const _ = uint(MaxLong - MaxLine - len(" ") - (MaxPayload*8+5)/6)

// ValidDocID reports whether id may stand in a line: 1 to MaxDocID printable ASCII characters other
// than space.
func ValidDocID(id []byte) bool { return len(id) <= MaxDocID && isWord(id) }

// ValidURL reports whether url may stand in a line: 1 to MaxURL printable ASCII characters other
// than space. It does not check that url is a URL.
func ValidURL(url []byte) bool { return len(url) <= MaxURL && isWord(url) }

// isWord reports whether s is a field: not empty, and only ASCII 0x21 to 0x7e.
func isWord(s []byte) bool {
	for _, c := range s {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(s) > 0
}
