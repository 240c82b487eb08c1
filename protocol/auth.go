package protocol

// AppendAuth appends the first line of a spider that dials a daemon with a token. The caller has
// checked token with ValidToken.
func AppendAuth(dst, token []byte) []byte {
	dst = append(dst, "AUTH "...)
	dst = append(dst, token...)
	return append(dst, '\n')
}

// ParseAuth reads "AUTH TOKEN", without its line end. The token aliases the line.
func ParseAuth(line []byte) (token []byte, ok bool) {
	const verb = "AUTH "
	if len(line) < len(verb) || string(line[:len(verb)]) != verb || !ValidToken(line[len(verb):]) {
		return nil, false
	}
	return line[len(verb):], true
}

// ValidToken reports whether token may stand in an AUTH line: 1 to MaxToken printable ASCII
// characters other than space.
func ValidToken(token []byte) bool { return len(token) <= MaxToken && isWord(token) }
