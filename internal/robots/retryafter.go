package robots

import (
	"net/http"
	"strings"
	"time"
)

// parseRetryAfter reads a Retry-After header (RFC 9110, section 10.2.3), seconds or a date, which
// counts from now. At most an hour; 0 where it is absent, past or garbage.
func parseRetryAfter(value string, now time.Time) time.Duration {
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
