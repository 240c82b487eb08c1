package spider

import (
	"io"
	"log"
	"testing"
	"time"

	"urlserver/protocol"
)

func silent() *log.Logger { return log.New(io.Discard, "", 0) }

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{name: "absent", value: "", want: protocol.NoRetryAfter},
		{name: "seconds", value: "120", want: 120},
		{name: "zero", value: "0", want: 0},
		{name: "space", value: " 7 ", want: 7},
		{name: "huge", value: "99999999999999999999999", want: protocol.MaxRetryAfter},
		{name: "over what a line holds", value: "3000000000", want: protocol.MaxRetryAfter},
		{name: "negative", value: "-5", want: protocol.NoRetryAfter},
		{name: "fraction", value: "1.5", want: protocol.NoRetryAfter},
		{name: "date", value: "Fri, 02 Jan 2026 03:05:05 GMT", want: 60},
		{name: "date, rounded up", value: "Fri, 02 Jan 2026 03:04:06 GMT", want: 1},
		{name: "RFC 850 date", value: "Friday, 02-Jan-26 03:05:05 GMT", want: 60},
		{name: "past", value: "Thu, 01 Jan 1970 00:00:00 GMT", want: 0},
		{name: "far future", value: "Fri, 31 Dec 9999 23:59:59 GMT", want: protocol.MaxRetryAfter},
		{name: "words", value: "soon", want: protocol.NoRetryAfter},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := retryAfter(c.value, now); got != c.want {
				t.Errorf("retryAfter(%q) = %d; want %d", c.value, got, c.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		cut    cut
		want   int
	}{
		{name: "whole", status: 200, want: 200},
		{name: "cut at the limit", status: 200, cut: cutLength, want: 200},
		{name: "out of time", status: 200, cut: cutTime, want: 0},
		{name: "broken off", status: 206, cut: cutDisconnect, want: 0},
		{name: "how to treat the host stands", status: 503, cut: cutDisconnect, want: 503},
		{name: "a redirect needs no body", status: 301, cut: cutTime, want: 301},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (answer{status: c.status, cut: c.cut}).report(); got != c.want {
				t.Errorf("report() = %d; want %d", got, c.want)
			}
		})
	}
}

func TestProductToken(t *testing.T) {
	for _, c := range []struct{ name, agent, want string }{
		{name: "alone", agent: "bot", want: "bot"},
		{name: "version", agent: "bot/1.0", want: "bot"},
		{name: "comment", agent: "bot (+http://bot.test)", want: "bot"},
		{name: "browser", agent: "Mozilla/5.0 (compatible; bot)", want: "Mozilla"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := productToken(c.agent); got != c.want {
				t.Errorf("productToken(%q) = %q; want %q", c.agent, got, c.want)
			}
		})
	}
}
