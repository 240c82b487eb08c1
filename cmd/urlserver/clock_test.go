package main

import (
	"testing"
	"time"
)

// TestClockWatch: the log says once by how much the clock was set, and again when it is set back.
func TestClockWatch(t *testing.T) {
	w := clockWatch{}
	for i, step := range []struct {
		by   time.Duration
		news bool
	}{
		{by: 59 * time.Second}, {by: time.Hour, news: true}, {by: time.Hour + time.Second},
		{by: time.Second, news: true}, {by: -58 * time.Second}, {by: -time.Minute, news: true},
	} {
		if got := w.isNews(step.by); got != step.news {
			t.Errorf("step %d, the clock was set by %v: the log says so: %v; want %v", i, step.by, got, step.news)
		}
	}
}
