package ndjson

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// AppendCandidate appends the line for a candidate. It leaves out a priority of 0, and a spiderid
// and payload that are empty.
func AppendCandidate(dst, id, url []byte, priority int32, spiderID, payload []byte) []byte {
	dst = AppendString(append(dst, `{"doc_id":`...), id)
	dst = AppendString(append(dst, `,"url":`...), url)
	if priority != 0 {
		dst = strconv.AppendInt(append(dst, `,"priority":`...), int64(priority), 10)
	}
	if len(spiderID) > 0 {
		dst = AppendString(append(dst, `,"spiderid":`...), spiderID)
	}
	if len(payload) > 0 {
		dst = base64.StdEncoding.AppendEncode(append(dst, `,"payload":"`...), payload)
		dst = append(dst, '"')
	}
	return append(dst, "}\n"...)
}

// AppendOutcome appends the line for an outcome, with its time in UTC. It leaves out the zero time.
func AppendOutcome(dst []byte, o Outcome) []byte {
	dst = AppendString(append(dst, `{"doc_id":`...), o.DocID)
	dst = AppendString(append(dst, `,"url":`...), o.URL)
	dst = AppendString(append(dst, `,"outcome":`...), o.Word)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(o.Status), 10)
	dst = strconv.AppendInt(append(dst, `,"attempts":`...), int64(o.Attempts), 10)
	if !o.At.IsZero() {
		dst = o.At.UTC().AppendFormat(append(dst, `,"at":"`...), time.RFC3339)
		dst = append(dst, '"')
	}
	return append(dst, "}\n"...)
}

// AppendString appends text as a JSON string. Bytes that are not valid UTF-8 become U+FFFD.
func AppendString(dst, text []byte) []byte {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' || c == '"' {
			quoted, _ := json.Marshal(string(text)) // a string cannot fail
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}
