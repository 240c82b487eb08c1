package weburl

import (
	"slices"
	"testing"
)

func TestIsBadPort(t *testing.T) {
	if !slices.IsSorted(badPorts) || len(badPorts) != 83 {
		t.Errorf("%d bad ports, in order: %t; the standard has 83", len(badPorts), slices.IsSorted(badPorts))
	}
	for port, want := range map[uint16]bool{0: true, 1: true, 22: true, 25: true, 80: false, 443: false,
		6000: true, 6379: false, 6669: true, 8080: false, 10080: true, 65535: false} {
		if got := IsBadPort(port); got != want {
			t.Errorf("IsBadPort(%d) = %t", port, got)
		}
	}
}
