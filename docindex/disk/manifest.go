package disk

import (
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// manifestFile is a file for Pebble's manifest. It has room reserved on the disk for the next
// writes: Pebble ends the process if one fails, for instance because another program has filled the
// disk. Pebble begins a new manifest when one has 128 MiB. A second file, the spare, has room for
// the new one.
type manifestFile struct {
	vfs.File
	space             *space
	written, reserved int64 // bytes
}

const (
	manifestRoom = 256 << 10
	manifestLeft = 128 << 10 // Write calls reserve when less than this would be left; a change takes some KB
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

// reserve reserves room for n bytes and manifestRoom more, and makes the spare if there is none. If
// that fails, the next write tries again.
func (m *manifestFile) reserve(n int64) {
	end := m.written + n + manifestRoom
	if m.Preallocate(m.written, end-m.written) == nil {
		m.reserved = end
		m.space.makeSpare()
	}
}

// spareName is the name of the spare in the index's folder.
const spareName = "manifest.spare"

// makeSpare makes the spare if there is none: an empty file with as much room reserved as one table
// takes. A manifest begins with about 150 bytes for each table. Pebble writes and creates manifests
// under a lock, which guards the spare.
func (s *space) makeSpare() {
	if s.spare != nil {
		return
	}
	path := filepath.Join(s.path, spareName)
	f, err := s.FS.Create(path, forManifest)
	if err != nil {
		return
	}
	if f.Preallocate(0, int64(s.table)) != nil {
		f.Close()
		s.FS.Remove(path)
		return
	}
	s.spare = f
}

// createManifest creates a manifest out of the spare, or without room if there is none.
func (s *space) createManifest(name string) (vfs.File, error) {
	if spare := s.spare; spare != nil {
		s.spare = nil
		if s.FS.Rename(filepath.Join(s.path, spareName), name) == nil {
			return &manifestFile{File: spare, space: s, reserved: int64(s.table)}, nil
		}
		spare.Close()
	}
	s.FS.Remove(filepath.Join(s.path, spareName)) // a killed process may have left it; this frees its room
	f, err := s.FS.Create(name, forManifest)
	if err != nil {
		return nil, err
	}
	return &manifestFile{File: f, space: s}, nil
}

// removeSpare removes the spare when the database is closed.
func (s *space) removeSpare() {
	if s.spare == nil {
		return
	}
	s.spare.Close()
	s.FS.Remove(filepath.Join(s.path, spareName)) // if this fails, the next Open removes it
	s.spare = nil
}
