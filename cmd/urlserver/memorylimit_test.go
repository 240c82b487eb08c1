package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryLimit reads the limits of control groups of both versions, and of those above them.
func TestMemoryLimit(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"a/memory.max":                        "max\n",
		"a/b/memory.max":                      "1000\n",
		"a/b/c/memory.max":                    "2000\n",
		"memory/d/memory.limit_in_bytes":      "700\n",
		"memory/memory.limit_in_bytes":        "9223372036854771712\n",
		"memory/broken/memory.limit_in_bytes": "many\n",
	} {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string]int64{
		"0::/a/b/c\n":               1000,
		"0::/a\n":                   math.MaxInt64,
		"0::/none/such\n":           math.MaxInt64,
		"4:memory:/d\n1:cpu:/a/b\n": 700,
		"4:memory:/broken\n0::/a/b": 1000,
		"no groups":                 math.MaxInt64,
	} {
		if got := groupLimit(root, groups); got != want {
			t.Errorf("limit of %q is %d; want %d", groups, got, want)
		}
	}
	if got := memoryLimit(100 << 20); got != 100<<20 {
		t.Errorf("a setting of 100 MiB is a limit of %d", got)
	}
	if got := memoryLimit(512 << 20); got <= 0 || got > math.MaxInt64/4*3 {
		t.Errorf("the default stands for %d bytes", got)
	}
}
