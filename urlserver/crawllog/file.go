package crawllog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// rotating is a file of lines that is renamed when it is full: PATH to PATH.1, PATH.1 to PATH.2 and
// so on. It is not safe for concurrent use.
type rotating struct {
	path string
	max  int64 // bytes of a file; a longer line has a file of its own
	keep int   // renamed files
	file *os.File
	size int64
}

// open opens the file to append, and makes it if there is none. A line that a crash of the machine
// has cut off gets its end, so that the next one begins on a line of its own.
func (r *rotating) open() (err error) {
	if r.same() {
		return nil
	}
	r.close()
	file, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size > 0 && info.Mode().IsRegular() {
		var last [1]byte
		if _, err := file.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			if _, err := file.Write([]byte("\n")); err != nil {
				return err
			}
			size++
		}
	}
	r.file, r.size = file, size
	return nil
}

// same reports whether the file that is open is still the one at path. Another program, such as logrotate, may
// have renamed, removed or truncated it.
func (r *rotating) same() bool {
	if r.file == nil {
		return false
	}
	is, err := os.Stat(r.path)
	if err != nil {
		return false
	}
	was, err := r.file.Stat()
	if err != nil || !os.SameFile(is, was) {
		return false
	}
	if was.Mode().IsRegular() {
		r.size = was.Size()
	}
	return true
}

// write appends whole lines and returns how many bytes of them are in the file, which are whole
// lines, too. After an error the file is closed; the next write opens it again.
func (r *rotating) write(lines []byte) (written int, err error) {
	for written < len(lines) && err == nil {
		if err = r.open(); err != nil {
			break
		}
		part := r.fitting(lines[written:])
		if part == nil {
			err = r.rotate()
			continue
		}
		var n int
		if n, err = r.file.Write(part); err == nil {
			written += n
			r.size += int64(n)
			continue
		}
		whole := bytes.LastIndexByte(part[:n], '\n') + 1
		written += whole
		if n > whole { // take the piece of a line back
			err = errors.Join(err, r.file.Truncate(r.size+int64(whole)))
		}
	}
	if err != nil {
		r.close()
	}
	return written, err
}

// fitting returns the first of some lines that the file has room for; nil: none.
func (r *rotating) fitting(lines []byte) []byte {
	room := r.max - r.size
	if int64(len(lines)) <= room {
		return lines
	}
	if end := bytes.LastIndexByte(lines[:max(0, room)], '\n') + 1; end > 0 {
		return lines[:end]
	}
	if r.size > 0 {
		return nil
	}
	return lines[:bytes.IndexByte(lines, '\n')+1]
}

// rotate renames the files; the next write makes a new one. A device or a pipe stays as it is.
func (r *rotating) rotate() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		r.size = 0
		return nil
	}
	r.close()
	name := func(n int) string { return fmt.Sprintf("%s.%d", r.path, n) }
	for n := r.keep; n > 1; n-- {
		if err := os.Rename(name(n-1), name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(r.path, name(1))
}

func (r *rotating) close() {
	if r.file != nil {
		_ = r.file.Close() // each write has returned its own error
		r.file = nil
	}
}

// Check returns an error if a crawl log cannot be written at path. It changes nothing.
func Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder; name a file in it", path)
	case err == nil:
		if err := writable(path, 0); err != nil {
			return fmt.Errorf("%s cannot be written: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is no folder", folder)
	}
	if err := writable(folder, enter); err != nil {
		return fmt.Errorf("files cannot be made in the folder %s: %w", folder, err)
	}
	return nil
}
