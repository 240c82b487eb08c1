package disk

import (
	"testing"
	"unsafe"
)

// TestDocIsSmall: maps hold values of up to 128 bytes in place, and allocate each larger one.
func TestDocIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(doc{}); n > 128 {
		t.Errorf("a doc has %d bytes; want 128 at most", n)
	}
}
