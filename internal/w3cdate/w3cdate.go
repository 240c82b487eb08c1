// Package w3cdate parses dates as sitemaps have them: the W3C profile of ISO 8601
// (https://www.w3.org/TR/NOTE-datetime).
package w3cdate

import "time"

// layouts are the forms of the profile. Those with a time also have fractions of a second, which
// package time accepts without being asked.
var layouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02", "2006-01-02T15:04Z07:00", "2006-01", "2006",
}

// Parse returns the moment at which the period begins that text names: "2026-05" is the first
// second of that month in UTC. ok is false if text has another form or names no date.
func Parse(text string) (at time.Time, ok bool) {
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
