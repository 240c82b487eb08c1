package protocol

// MaxSpiderID is the most bytes of the spiderid in a SPIDER line.
const MaxSpiderID = 64

// AppendSpider appends the line with which a spider that dials asks for the documents of one
// spiderid only. The caller has checked it with ValidSpiderID.
func AppendSpider(dst, spiderID []byte) []byte {
	dst = append(dst, "SPIDER "...)
	dst = append(dst, spiderID...)
	return append(dst, '\n')
}

// ParseSpider reads "SPIDER SPIDERID", without its line end. The spiderid aliases the line.
func ParseSpider(line []byte) (spiderID []byte, ok bool) {
	const verb = "SPIDER "
	if len(line) < len(verb) || string(line[:len(verb)]) != verb || !ValidSpiderID(line[len(verb):]) {
		return nil, false
	}
	return line[len(verb):], true
}

// ValidSpiderID reports whether id may stand in a SPIDER line: 1 to MaxSpiderID printable ASCII
// characters other than space.
func ValidSpiderID(id []byte) bool { return len(id) <= MaxSpiderID && isWord(id) }
