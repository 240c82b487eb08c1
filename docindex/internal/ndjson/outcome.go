package ndjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Outcome is a line that says how a document ended.
type Outcome struct {
	DocID      []byte // the digits if the line has a number
	URL        []byte
	Word       []byte // the member "outcome"
	Status     int
	NoStatus   bool // it is absent
	Changed    bool // the member "changed"; only with HasChanged
	HasChanged bool // it is not absent
	Attempts   int
	At         time.Time // zero where absent
}

// maxCount is the largest valid value of a member that is a count. Real counts are far smaller.
const maxCount = 999_999_999

// ParseOutcome parses a line. It ignores members that Outcome has no field for. The slices may
// alias line.
func ParseOutcome(line []byte) (Outcome, error) {
	if o, ok := fastOutcome(line); ok {
		return o, nil
	}
	return slowOutcome(line)
}

// fastOutcome parses a valid line that flat can read, with the same result as slowOutcome. ok is
// false for all other lines.
func fastOutcome(line []byte) (o Outcome, ok bool) {
	f := open(line)
	o.NoStatus = true
	for key, v, more := f.next(true); more; key, v, more = f.next(false) {
		if !o.set(string(key), v) {
			return Outcome{}, false
		}
	}
	return o, !f.bad
}

func (o *Outcome) set(key string, v value) (ok bool) {
	switch key {
	case "doc_id":
		o.DocID = v.text
		return true
	case "url":
		o.URL = v.text
		return v.quoted
	case "outcome":
		o.Word = v.text
		return v.quoted
	case "status":
		o.Status, ok = count(v.text)
		o.NoStatus = false
		return ok && !v.quoted
	case "attempts":
		o.Attempts, ok = count(v.text)
		return ok && !v.quoted
	case "at":
		var err error
		o.At, err = time.Parse(time.RFC3339, string(v.text))
		return err == nil && v.quoted
	}
	return false
}

func slowOutcome(line []byte) (o Outcome, err error) {
	var raw struct {
		DocID    json.RawMessage `json:"doc_id"`
		URL      json.RawMessage `json:"url"`
		Outcome  json.RawMessage `json:"outcome"`
		Status   json.RawMessage `json:"status"`
		Changed  json.RawMessage `json:"changed"`
		Attempts json.RawMessage `json:"attempts"`
		At       json.RawMessage `json:"at"`
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return o, notObject(err)
	}
	var errs [7]error
	o.DocID, errs[0] = idOf("doc_id", raw.DocID)
	o.URL, errs[1] = textOf("url", raw.URL)
	o.Word, errs[2] = textOf("outcome", raw.Outcome)
	o.Status, errs[3] = countOf("status", raw.Status)
	o.Attempts, errs[4] = countOf("attempts", raw.Attempts)
	o.At, errs[5] = timeOf(raw.At)
	o.Changed, o.HasChanged, errs[6] = truthOf("changed", raw.Changed)
	o.NoStatus = absent(raw.Status)
	return o, cmp.Or(errs[:]...)
}

func countOf(name string, raw json.RawMessage) (int, error) {
	if absent(raw) {
		return 0, nil
	}
	n, ok := count(raw)
	if !ok {
		return 0, fmt.Errorf("%s is not a number of 0 to %d", name, maxCount)
	}
	return n, nil
}

func count(digits []byte) (int, bool) {
	if n := integer(digits); n == 0 || n != len(digits) {
		return 0, false
	}
	n, err := strconv.Atoi(string(digits))
	return n, err == nil && 0 <= n && n <= maxCount
}

func truthOf(name string, raw json.RawMessage) (is, has bool, err error) {
	switch {
	case absent(raw):
		return false, false, nil
	case string(raw) == "true", string(raw) == "false":
		return string(raw) == "true", true, nil
	}
	return false, false, fmt.Errorf("%s is not true or false", name)
}

func timeOf(raw json.RawMessage) (time.Time, error) {
	text, err := textOf("at", raw)
	if err != nil || text == nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return time.Time{}, errors.New("at is not a time as RFC 3339 writes it")
	}
	return at, nil
}
