package protocol

import "strconv"

// Details is what a DONE line may say beyond status and Retry-After.
type Details struct {
	HasChanged bool   // Changed was given
	Changed    bool   // the content has changed since the last fetch
	Bytes      int    // of the body; 0: none, or not given
	Location   string // the target of a redirect as it was sent, 1 to MaxURL bytes; "": none
}

// MaxBytes is the largest Details.Bytes. Larger ones are reduced to it.
const MaxBytes = 1 << 50

// add takes a field NAME=VALUE. It returns false for anything else. A name that is unknown, and a
// value that cannot be used, change nothing: a spider may know more than the daemon.
func (d *Details) add(field []byte) bool {
	name, value, found := cut(field, '=')
	if !found || len(name) == 0 || !isWord(field) {
		return false
	}
	switch string(name) {
	case "changed":
		if len(value) == 1 && (value[0] == '0' || value[0] == '1') {
			d.HasChanged, d.Changed = true, value[0] == '1'
		}
	case "bytes":
		if n, ok := parseDigits(value, MaxBytes); ok {
			d.Bytes = n
		}
	case "location":
		if ValidURL(value) {
			d.Location = string(value)
		}
	}
	return true
}

// AppendDoneWith appends a DONE line with details. It leaves out a location that does not fit the
// line; details need a status.
func AppendDoneWith(dst, trans []byte, status, retryAfter int, d Details) []byte {
	from := len(dst)
	dst = AppendDone(dst, trans, status, retryAfter)
	if status < 0 {
		return dst
	}
	dst = dst[:len(dst)-1]
	if d.HasChanged {
		dst = append(dst, " changed=0"...)
		if d.Changed {
			dst[len(dst)-1] = '1'
		}
	}
	if d.Bytes > 0 {
		dst = strconv.AppendInt(append(dst, " bytes="...), int64(min(d.Bytes, MaxBytes)), 10)
	}
	const field = " location="
	if ValidURL([]byte(d.Location)) && len(dst)-from+len(field)+len(d.Location)+len("\n") <= MaxLine {
		dst = append(append(dst, field...), d.Location...)
	}
	return append(dst, '\n')
}
