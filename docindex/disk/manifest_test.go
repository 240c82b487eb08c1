package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"urlserver/docindex/disk"
)

// TestManifestOnFullDisk fills the disk to the last byte: there is room for some changes of Pebble's tables, and
// after room was made for some more. There is room for a new manifest, too, and where room was made since, for
// the one after that.
func TestManifestOnFullDisk(t *testing.T) {
	path := smallDisk(t, 8)
	create, end, err := disk.Manifests(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	filler := filepath.Join(path, "filler")
	for i, first := range []int{1, 40, 40} { // the first changes of a manifest say which tables there are
		m := createManifest(t, create, filepath.Join(path, fmt.Sprint("manifest", i)))
		m.write(first)
		for range 2 {
			if err := os.Remove(filler); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			m.write(100)
			fillUp(t, filler)
			m.write(20)
		}
		m.check()
	}
}

// TestManifestGoesBeforeSpare makes a little room on a full disk: it is for the manifest, not for the spare.
func TestManifestGoesBeforeSpare(t *testing.T) {
	path := smallDisk(t, 8)
	create, end, err := disk.Manifests(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	createManifest(t, create, filepath.Join(path, "manifest0")).write(1)
	m := createManifest(t, create, filepath.Join(path, "manifest1")) // takes the spare
	filler := filepath.Join(path, "filler")
	fillUp(t, filler)
	m.write(30)
	file, err := os.Stat(filler)
	if err == nil {
		err = os.Truncate(filler, file.Size()-300<<10)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.write(60)
	m.check()
}

// TestManifestAfterKill has a process that was killed leave its spare behind on a full disk: the next one has the
// room.
func TestManifestAfterKill(t *testing.T) {
	path := smallDisk(t, 8)
	if err := os.WriteFile(filepath.Join(path, "manifest.spare"), make([]byte, 256<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	fillUp(t, filepath.Join(path, "filler"))
	create, end, err := disk.Manifests(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	m := createManifest(t, create, filepath.Join(path, "manifest"))
	m.write(20)
	m.check()
}

// manifest is a file for Pebble's manifest, with what was written to it.
type manifest struct {
	t    *testing.T
	path string
	file vfs.File
	want []byte
}

func createManifest(t *testing.T, create func(name string) (vfs.File, error), path string) *manifest {
	t.Helper()
	file, err := create(filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &manifest{t: t, path: path, file: file}
}

// write writes and syncs n changes.
func (m *manifest) write(n int) {
	m.t.Helper()
	for range n {
		change := bytes.Repeat([]byte{byte(len(m.want))}, 5000)
		_, err := m.file.Write(change)
		if err := errors.Join(err, m.file.Sync()); err != nil {
			m.t.Fatalf("%s: %d bytes were written: %v", m.path, len(m.want), err)
		}
		m.want = append(m.want, change...)
	}
}

func (m *manifest) check() {
	m.t.Helper()
	got, err := os.ReadFile(m.path)
	if err != nil || !bytes.Equal(got, m.want) {
		m.t.Errorf("%s: %d bytes are read, %v; want the %d that were written", m.path, len(got), err, len(m.want))
	}
}

// fillUp writes a file until nothing is free on its disk.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for piece := make([]byte, 64<<10); len(piece) > 0; {
		if _, err := f.Write(piece); errors.Is(err, syscall.ENOSPC) {
			piece = piece[:len(piece)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
