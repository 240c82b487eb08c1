package protocol

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// Errors of a line from a spider.
var (
	ErrStatusTrans = errors.New("line begins neither with a verb and its fields, " +
		"nor with SLOT.ACTIVE.GENERATION and one space")
	ErrStatusVerb       = errors.New("TRANS_ID is not followed by WORKING, DONE or BACK")
	ErrStatusCode       = errors.New("STATUS is not a decimal number from 0 to 999")
	ErrStatusRetryAfter = errors.New("RETRY_AFTER is not a decimal number of seconds")
	ErrStatusSeconds    = errors.New("what follows BACK is not a decimal number of seconds")
	ErrStatusFields     = errors.New("more on the line than belongs there")
)

// MaxRetryAfter is the largest Retry-After that Status holds, in seconds. Larger ones are reduced
// to it.
const MaxRetryAfter = math.MaxInt32

// What AppendDone leaves out. Status.RetryAfter is also NoRetryAfter if the line has none.
const (
	NoStatus     = -1
	NoRetryAfter = -1
)

// Verb is a spider's message about a transaction.
type Verb uint8

const (
	Working Verb = iota // in progress: restart the status timeout
	Done                // finished, with or without success
	Back                // not fetched: for other spiders, or for later
)

// String returns the verb as on the wire.
func (v Verb) String() string { return [...]string{Working: "WORKING", Done: "DONE", Back: "BACK"}[v] }

// Status is a spider's line about one transaction.
type Status struct {
	Trans      Trans
	Verb       Verb
	HasStatus  bool // Code was given; only with Done
	Code       int  // HTTP status, 0 to 999; 0: the host gave no answer
	RetryAfter int  // seconds, 0 to MaxRetryAfter, or NoRetryAfter
	Seconds    int  // only with Back: not to be sent before, 0 to MaxRetryAfter; 0: at any time
	Details
}

// ParseStatus parses a line of a spider, without its line end: "TRANS_ID WORKING", "TRANS_ID DONE
// [STATUS [RETRY_AFTER] [NAME=VALUE]...]" or "TRANS_ID BACK [SECONDS]". The error is one of this
// package's ErrStatus values. It allocates for a location only.
func ParseStatus(line []byte) (Status, error) {
	id, rest, _ := cut(line, ' ')
	trans, ok := ParseTrans(id)
	if !ok {
		return Status{}, ErrStatusTrans
	}
	s := Status{Trans: trans, RetryAfter: NoRetryAfter}
	verb, rest, more := cut(rest, ' ')
	switch string(verb) {
	case "WORKING":
		if more {
			return Status{}, ErrStatusFields
		}
		return s, nil
	case "DONE":
		s.Verb = Done
		if !more {
			return s, nil
		}
		return s.result(rest)
	case "BACK":
		s.Verb = Back
		if s.Seconds, ok = parseDigits(rest, MaxRetryAfter); more && !ok {
			return Status{}, ErrStatusSeconds
		}
		return s, nil
	}
	return Status{}, ErrStatusVerb
}

// result parses the fields after DONE.
func (s Status) result(args []byte) (Status, error) {
	code, rest, more := cut(args, ' ')
	n, ok := parseDigits(code, 1000)
	if !ok || n > 999 || len(code) > len("999") {
		return Status{}, ErrStatusCode
	}
	s.HasStatus, s.Code = true, n
	if !more {
		return s, nil
	}
	field, rest, more := cut(rest, ' ')
	if s.add(field) {
		return s.details(rest, more)
	}
	if s.RetryAfter, ok = parseDigits(field, MaxRetryAfter); ok {
		return s.details(rest, more)
	}
	if bytes.IndexByte(args[len(code)+1:], ' ') >= 0 {
		return Status{}, ErrStatusFields
	}
	return Status{}, ErrStatusRetryAfter
}

// details parses the fields NAME=VALUE, if there are more.
func (s Status) details(fields []byte, more bool) (Status, error) {
	for more {
		var field []byte
		if field, fields, more = cut(fields, ' '); !s.add(field) {
			return Status{}, ErrStatusFields
		}
	}
	return s, nil
}

// AppendWorking appends a WORKING line. trans is the TRANS_ID as the daemon sent it.
func AppendWorking(dst, trans []byte) []byte {
	dst = append(dst, trans...)
	return append(dst, " WORKING\n"...)
}

// AppendDone appends a DONE line. status is the HTTP status, at most 999, 0 if the host gave no
// answer, or NoStatus. retryAfter is the answer's Retry-After in seconds, or NoRetryAfter; it needs
// a status.
func AppendDone(dst, trans []byte, status, retryAfter int) []byte {
	dst = append(dst, trans...)
	dst = append(dst, " DONE"...)
	if status < 0 {
		return append(dst, '\n')
	}
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(min(status, 999)), 10)
	if retryAfter >= 0 {
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(retryAfter), 10)
	}
	return append(dst, '\n')
}
