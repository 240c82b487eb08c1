package protocol

// Limits of what goes over the wire, in bytes.
const (
	// MaxLine bounds a line in either direction, its line end included: 8 KiB, which HTTP servers commonly take as a
	// request line, so that a URL that cannot be sent could hardly be fetched.
	MaxLine = 8192

	// MaxDocID bounds a DOC_ID.
	MaxDocID = 64

	// MaxURL bounds a URL: what the other fields of the longest fetch line leave of MaxLine.
	MaxURL = MaxLine - maxTrans - len(" ") - MaxDocID - len(" ") - maxAddr - len(" ") - len("\n")

	// MaxToken bounds the token of an AUTH line.
	MaxToken = MaxLine - len("AUTH ") - len("\r\n")

	maxTrans = len("4294967295.4294967295.4294967295")
	maxAddr  = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
)

// ValidDocID tells if id may stand in a line: 1 to MaxDocID printable ASCII characters other than space.
func ValidDocID(id []byte) bool { return len(id) <= MaxDocID && isWord(id) }

// ValidURL tells if url may stand in a line: 1 to MaxURL printable ASCII characters other than space. Whether it is
// a URL is not looked at.
func ValidURL(url []byte) bool { return len(url) <= MaxURL && isWord(url) }

// isWord tells if s is a field: not empty, and all of it ASCII 0x21 to 0x7e.
func isWord(s []byte) bool {
	for _, c := range s {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(s) > 0
}
