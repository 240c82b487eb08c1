package disk

import "github.com/cockroachdb/pebble/v2/vfs"

// manifestFile is a file for Pebble's manifest, which has room on the disk for what comes next: Pebble ends the
// process if it cannot write that, as where another program has filled the disk. A new manifest, which Pebble
// begins when one has 128 MiB, has no such room before its first write.
type manifestFile struct {
	vfs.File
	written, reserved int64 // bytes
}

const (
	manifestRoom = 256 << 10
	manifestLeft = 128 << 10 // of which so much is left at least; a change takes some KB
)

// Write is [vfs.File.Write].
func (m *manifestFile) Write(b []byte) (n int, err error) {
	if m.written+int64(len(b)) > m.reserved-manifestLeft {
		m.reserve(int64(len(b)))
	}
	n, err = m.File.Write(b)
	m.written += int64(n)
	return n, err
}

// reserve reserves room for some bytes and for what comes next. Where that fails, the next write tries again.
func (m *manifestFile) reserve(n int64) {
	end := m.written + n + manifestRoom
	if m.Preallocate(m.written, end-m.written) == nil {
		m.reserved = end
	}
}
