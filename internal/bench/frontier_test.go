package main

import (
	"strings"
	"testing"
)

// Each index takes and gives out all URLs, and the rows tell it.
func TestSmallFrontier(t *testing.T) {
	b := testBench(t)
	b.profiles = t.TempDir()
	for _, kind := range []string{"memory", "disk"} {
		rows, err := overFrontier(t.Context(), b, kind, kind+": ", 0.5, 20_000)
		if err != nil || len(rows) != 3 {
			t.Fatalf("%s: %v, %v", kind, rows, err)
		}
		for _, r := range rows {
			if !strings.Contains(r.measured, "/s; CPU a URL: service ") || !strings.HasPrefix(r.what, kind+": ") {
				t.Errorf("%s", r)
			}
		}
	}
}
