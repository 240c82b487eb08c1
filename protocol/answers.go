package protocol

import (
	"errors"
	"math"
	"strconv"
)

// ErrAnswer is the error of an answer that is not of its form.
var ErrAnswer = errors.New("the answer is not of the form of its verb")

// PutResult is what became of a PUT.
type PutResult uint8

const (
	PutNew        PutResult = iota // stored; was not known
	PutKnown                       // stored before
	PutInvalid                     // not stored: it is not a put, or its URL cannot be used
	PutOutOfScope                  // not stored: its crawl does not take it
	PutFail                        // not stored: the daemon has no store, or the store takes nothing now
)

var putWords = [...]string{
	PutNew: "new", PutKnown: "known", PutInvalid: "invalid", PutOutOfScope: "out_of_scope", PutFail: "fail",
}

// String returns the contract's word for r.
func (r PutResult) String() string { return putWords[r] }

// AppendPutAnswer appends the answer to a PUT. docID is left out if it is empty.
func AppendPutAnswer(dst, tag []byte, r PutResult, docID []byte) []byte {
	dst = append(append(dst, "PUT "...), tag...)
	dst = append(append(dst, ' '), putWords[r]...)
	if len(docID) > 0 {
		dst = append(append(dst, ' '), docID...)
	}
	return append(dst, '\n')
}

// Counts are the documents of a crawl, or of all crawls, by what is to become of them.
type Counts struct {
	Scheduled uint64 // due now
	InFlight  uint64 // at spiders or in host slots, or with clients of another kind
	Later     uint64 // due later
	Completed uint64 // ended
}

// AppendCountAnswer appends the answer to a COUNT; c is nil if there is none.
func AppendCountAnswer(dst, tag []byte, c *Counts) []byte {
	dst = append(append(dst, "COUNT "...), tag...)
	if c == nil {
		return append(dst, " fail\n"...)
	}
	for _, n := range [...]uint64{c.Scheduled, c.InFlight, c.Later, c.Completed} {
		dst = strconv.AppendUint(append(dst, ' '), n, 10)
	}
	return append(dst, '\n')
}

// IsAnswer reports whether a line of the daemon is the answer to a PUT or COUNT. Lines to fetch
// begin with a digit.
func IsAnswer(line []byte) bool { return len(line) > 0 && (line[0] < '0' || line[0] > '9') }

// ParsePutAnswer reads the answer to a PUT, without its line end. docID is nil if there is none.
func ParsePutAnswer(line []byte) (tag []byte, r PutResult, docID []byte, err error) {
	verb, rest, _ := cut(line, ' ')
	tag, rest, _ = cut(rest, ' ')
	word, docID, more := cut(rest, ' ')
	if string(verb) != "PUT" || !ValidTag(tag) || more && !ValidDocID(docID) {
		return nil, 0, nil, ErrAnswer
	}
	for r, w := range putWords {
		if string(word) == w {
			return tag, PutResult(r), docID, nil
		}
	}
	return nil, 0, nil, ErrAnswer
}

// ParseCountAnswer reads the answer to a COUNT, without its line end. known is false if the daemon
// cannot count.
func ParseCountAnswer(line []byte) (tag []byte, c Counts, known bool, err error) {
	verb, rest, _ := cut(line, ' ')
	tag, rest, _ = cut(rest, ' ')
	if string(verb) != "COUNT" || !ValidTag(tag) {
		return nil, Counts{}, false, ErrAnswer
	}
	if string(rest) == "fail" {
		return tag, Counts{}, false, nil
	}
	for i, to := range [...]*uint64{&c.Scheduled, &c.InFlight, &c.Later, &c.Completed} {
		number, after, more := cut(rest, ' ')
		n, ok := parseDigits(number, math.MaxInt64/100)
		if !ok || more != (i < 3) {
			return nil, Counts{}, false, ErrAnswer
		}
		*to, rest = uint64(n), after
	}
	return tag, c, true, nil
}
