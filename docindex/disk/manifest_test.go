package disk_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"urlserver/docindex/disk"
)

// TestManifestOnFullDisk fills the disk to the last byte: there is room for some changes of Pebble's tables, and
// after room was made for some more.
func TestManifestOnFullDisk(t *testing.T) {
	path := smallDisk(t, 8)
	manifest, err := disk.CreateManifest(filepath.Join(path, "manifest"))
	if err != nil {
		t.Fatal(err)
	}
	defer manifest.Close()
	var want []byte
	write := func(n int) {
		t.Helper()
		for range n {
			change := bytes.Repeat([]byte{byte(len(want))}, 5000)
			_, err := manifest.Write(change)
			if err := errors.Join(err, manifest.Sync()); err != nil {
				t.Fatalf("%d bytes were written: %v", len(want), err)
			}
			want = append(want, change...)
		}
	}
	write(200)
	for range 2 {
		filler := filepath.Join(path, "filler")
		fillUp(t, filler)
		write(20)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		write(1)
	}
	got, err := os.ReadFile(filepath.Join(path, "manifest"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes are read, %v; want the %d that were written", len(got), err, len(want))
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
