package robots

import (
	"net/http"
	"strings"
	"time"
)

// ParseRetryAfter parses a Retry-After header (RFC 9110, section 10.2.3): seconds, or a date,
// relative to now. The result is at most an hour, and 0 if the header is absent, past or malformed.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter)
	}
	if strings.Trim(value, "0123456789") != "" {
		return 0
	}
	seconds := time.Duration(0)
	for _, digit := range value {
		seconds = min(10*seconds+time.Duration(digit-'0'), maxRetryAfter/time.Second)
	}
	return seconds * time.Second
}
