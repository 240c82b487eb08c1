package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"time"
)

// tarFolder writes files, in the order of their names, that belong to root and were all made at
// one moment.
func tarFolder(out io.Writer, files fs.FS, made time.Time) error {
	w := tar.NewWriter(out)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			return w.WriteHeader(&tar.Header{Name: name + "/", Mode: 0o755, ModTime: made, Typeflag: tar.TypeDir})
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: made,
			Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
