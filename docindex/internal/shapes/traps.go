package shapes

import "bytes"

// The patterns that people agree on: a segment that comes back, a path of many segments, session
// identifiers, calendars. Each raises the cost of a URL; none is a ban.

var sessions = [...]string{"jsessionid", "phpsessid", "sessionid", "session_id", "sid", "aspsessionid", "cfid",
	"cftoken", "osessionid"}

// isSession reports whether a query key or a parameter of a path is a session's. It may be followed
// by its value.
func isSession(key []byte) bool {
	key, _, _ = bytes.Cut(key, []byte("="))
	for _, one := range sessions {
		if len(key) == len(one) && bytes.EqualFold(key, []byte(one)) {
			return true
		}
	}
	return false
}

// repeated reports whether a segment of a path comes back so often, or the path has very many.
func repeated(path []byte) bool {
	if bytes.Count(path, []byte("/")) < repeats {
		return false
	}
	var all [maxSegments][]byte
	n := 0
	for rest := path; len(rest) > 0; {
		var one []byte
		one, rest, _ = bytes.Cut(rest, []byte("/"))
		if len(one) == 0 {
			continue
		}
		if n == maxSegments {
			return true
		}
		same := 1
		for _, other := range all[:n] {
			if bytes.Equal(one, other) {
				same++
			}
		}
		if same == repeats {
			return true
		}
		all[n] = one
		n++
	}
	return false
}

// isDated reports whether a path ends in a month or a day, as those of calendars do: /2026/11/ or
// /2026-11-25.
func isDated(path []byte) bool {
	path = bytes.TrimSuffix(path, []byte("/"))
	at := bytes.LastIndexByte(path, '/')
	if at < 0 {
		return false
	}
	last := path[at+1:]
	if isDate(last) || isMonth(last) {
		return true
	}
	if !number(last, 1, 31) {
		return false
	}
	path = path[:at]
	if at = bytes.LastIndexByte(path, '/'); at < 0 {
		return false
	}
	if number(path[at+1:], minYear, maxYear) {
		return number(last, 1, 12)
	}
	month := path[at+1:]
	year := path[:at]
	year = year[bytes.LastIndexByte(year, '/')+1:]
	return number(month, 1, 12) && number(year, minYear, maxYear)
}

const minYear, maxYear = 1900, 2199

// isDate reports whether a text is a date such as 2026-11-25.
func isDate(b []byte) bool {
	return len(b) == len("2026-11-25") && b[7] == '-' && isMonth(b[:7]) && number(b[8:], 1, 31)
}

// isMonth reports whether a text is a month such as 2026-11.
func isMonth(b []byte) bool {
	return len(b) == len("2026-11") && b[4] == '-' && number(b[:4], minYear, maxYear) && number(b[5:], 1, 12)
}

// number reports whether a text of digits is a number in a range.
func number(b []byte, least, most int) bool {
	if len(b) == 0 || len(b) > 4 {
		return false
	}
	n := 0
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n >= least && n <= most
}
