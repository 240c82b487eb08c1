package reservation

import (
	"errors"
	"testing"
	"time"

	"urlserver/internal/weburl"
)

// FuzzHost: Host returns a normal form, and it is the host that a URL parser finds in a URL with
// the same text.
func FuzzHost(f *testing.F) {
	for _, raw := range []string{"a.test", "A.test", "a.1", "1.2.3.4", "0x7f.1", "[::1]", "::1",
		"ü.test", "a..b", "xn--a", "a.b.", "", "a b", "::1%eth0"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		host, err := Host(raw)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("Host(%q): %v; want ErrInvalid", raw, err)
			}
			return
		}
		if again, err := Host(host); err != nil || again != host {
			t.Errorf("Host(%q) = %q, of which Host is %q, %v", raw, host, again, err)
		}
		if u, err := weburl.Parse([]byte("http://" + raw + "/")); err == nil && string(u.Host()) != host {
			t.Errorf("Host(%q) = %q; in a URL it is %q", raw, host, u.Host())
		}
	})
}

func TestMillis(t *testing.T) {
	for _, tc := range []struct {
		name string
		t    time.Time
		want int64
	}{
		{name: "zero", t: time.Time{}, want: 0},
		{name: "before 1970", t: time.Unix(-1, 0), want: 0},
		{name: "whole", t: time.UnixMilli(1234), want: 1234},
		{name: "never sooner", t: time.Unix(1, 1), want: 1001},
		{name: "bounded", t: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), want: latest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Millis(tc.t); got != tc.want {
				t.Errorf("Millis(%v) = %d; want %d", tc.t, got, tc.want)
			}
		})
	}
	if !Time(0).IsZero() || Time(5) != time.UnixMilli(5) {
		t.Error("Time is not Millis the other way")
	}
}
