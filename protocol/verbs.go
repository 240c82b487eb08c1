package protocol

import (
	"math"
	"strconv"
)

// What a spider says that is not about a transaction. Spiders that say none of it are served as if
// it did not exist.

const (
	// MaxTag is the most bytes of the tag by which a spider recognises an answer.
	MaxTag = 32

	// MaxRoom is the largest number that ParseRoom returns. Larger ones are reduced to it.
	MaxRoom = math.MaxInt32
)

// ValidTag reports whether tag may stand in a line: 1 to MaxTag printable ASCII characters other
// than space.
func ValidTag(tag []byte) bool { return len(tag) <= MaxTag && isWord(tag) }

// AppendRoom appends a ROOM line: at most n documents may be at the spider from now on.
func AppendRoom(dst []byte, n int) []byte {
	dst = strconv.AppendInt(append(dst, "ROOM "...), int64(max(n, 0)), 10)
	return append(dst, '\n')
}

// ParseRoom reads "ROOM N", without its line end.
func ParseRoom(line []byte) (n int, ok bool) {
	verb, rest, _ := cut(line, ' ')
	if string(verb) != "ROOM" {
		return 0, false
	}
	return parseDigits(rest, MaxRoom)
}

// AppendPayload appends a PAYLOAD line: lines to the spider have a fifth field from now on.
func AppendPayload(dst []byte) []byte { return append(dst, "PAYLOAD\n"...) }

// ParsePayload reports whether a line, without its line end, is PAYLOAD.
func ParsePayload(line []byte) bool { return string(line) == "PAYLOAD" }

// AppendBack appends a BACK line: the spider has not fetched the document. It is for other spiders
// or, if seconds is not 0, not to be sent before they have passed.
func AppendBack(dst, trans []byte, seconds int) []byte {
	dst = append(append(dst, trans...), " BACK"...)
	if seconds > 0 {
		dst = strconv.AppendInt(append(dst, ' '), int64(seconds), 10)
	}
	return append(dst, '\n')
}

// AppendPut appends a line with one URL to be stored. object is a JSON object without line ends, as
// a line of the doc index's urls. The caller has checked tag with ValidTag, and that the line is
// not longer than MaxLong.
func AppendPut(dst, tag, object []byte) []byte {
	dst = append(append(dst, "PUT "...), tag...)
	dst = append(append(dst, ' '), object...)
	return append(dst, '\n')
}

// ParsePut reads "PUT TAG JSON", without its line end. It does not look into the object. The slices
// alias the line.
func ParsePut(line []byte) (tag, object []byte, ok bool) {
	verb, rest, _ := cut(line, ' ')
	tag, object, found := cut(rest, ' ')
	if string(verb) != "PUT" || !found || !ValidTag(tag) {
		return nil, nil, false
	}
	return tag, object, true
}

// AppendCount appends a line that asks for the counts of a crawl, or of all crawls if crawl is
// empty. The caller has checked tag with ValidTag, and that crawl has only printable ASCII
// characters other than space.
func AppendCount(dst, tag, crawl []byte) []byte {
	dst = append(append(dst, "COUNT "...), tag...)
	if len(crawl) > 0 {
		dst = append(append(dst, ' '), crawl...)
	}
	return append(dst, '\n')
}

// ParseCount reads "COUNT TAG [CRAWL]", without its line end. crawl is nil if there is none. The
// slices alias the line.
func ParseCount(line []byte) (tag, crawl []byte, ok bool) {
	verb, rest, _ := cut(line, ' ')
	tag, crawl, more := cut(rest, ' ')
	if string(verb) != "COUNT" || !ValidTag(tag) || more && !isWord(crawl) {
		return nil, nil, false
	}
	return tag, crawl, true
}
