package main

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

var scaledHosts = flag.Int("scale", 20_000, "on how many hosts TestScale puts a URL each")

// TestScale shows and judges what scale measures, but for its rates, which depend on what else runs.
// Of a small index it does not judge the disk, as no compaction has seen most rows, nor the first
// answers, as it is one of many tests that run.
func TestScale(t *testing.T) {
	b := testBench(t)
	few := &scales{part: 1, get: time.Second}
	rows, _, err := b.scale(t.Context(), *scaledHosts, *scaledHosts, few)
	if err != nil {
		t.Fatal(err)
	}
	judged := []string{"peak RSS"}
	if *scaledHosts >= 500_000 {
		judged = append(judged, "disk", "first answer", "first answer after a kill")
	}
	seen := 0
	for _, r := range rows {
		_, what, _ := strings.Cut(r.what, ": ")
		if !slices.Contains(judged, what) {
			continue
		}
		t.Log(r)
		if seen++; r.met != met {
			t.Errorf("%s: %s; want %s", r.what, r.measured, r.target)
		}
	}
	if seen != len(judged) {
		t.Errorf("%d rows are judged; want %d", seen, len(judged))
	}
}
