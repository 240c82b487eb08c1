package disk

import (
	"errors"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// manifestFile is a file for Pebble's manifest, which has room on the disk for what comes next: Pebble ends the
// process if it cannot write that, as where another program has filled the disk.
type manifestFile struct {
	vfs.File
	written, reserved int64 // bytes
}

const (
	manifestSnapshot = 1 << 20 // with which a manifest begins: some 100 bytes a table

	manifestRoom = 256 << 10
	manifestLeft = 128 << 10 // of which so much is left at least; a change takes some KB
)

// Write is [vfs.File.Write].
func (m *manifestFile) Write(b []byte) (n int, err error) {
	if m.written+int64(len(b)) > m.reserved-manifestLeft {
		_ = m.reserve(int64(len(b)))
	}
	n, err = m.File.Write(b)
	m.written += int64(n)
	return n, err
}

// reserve reserves room for some bytes and for what comes next. Where that fails, the next write tries again.
func (m *manifestFile) reserve(n int64) error {
	end := m.written + n + manifestRoom
	err := m.Preallocate(m.written, end-m.written)
	if err == nil {
		m.reserved = end
	}
	return err
}

// newManifest returns f with room for the beginning. Pebble begins a new manifest when one has 128 MiB: while the
// disk is full, newManifest waits. It does not wait while the store is opened or closed.
func (s *space) newManifest(f vfs.File) *manifestFile {
	m := &manifestFile{File: f}
	for errors.Is(m.reserve(manifestSnapshot), syscall.ENOSPC) && s.opened.Load() {
		select {
		case <-s.closing:
			return m
		case <-time.After(time.Second):
		}
	}
	return m
}
