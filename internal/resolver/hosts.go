package resolver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"time"
)

// hostsCheck is how long the hosts file is assumed to be unchanged.
const hostsCheck = 5 * time.Second

// hostsFile is a hosts(5) file that is read again when it changes. Not safe for concurrent use.
type hostsFile struct {
	path    string // "": none
	info    os.FileInfo
	checked time.Duration
	names   map[string][]netip.Addr
	err     error // of the last check
}

// openHosts reads path. Only the default file may be missing.
func openHosts(path string) (*hostsFile, error) {
	h := &hostsFile{path: path}
	switch path {
	case noHosts:
		h.path = ""
		return h, nil
	case "":
		h.path = defaultHosts
	}
	err := h.read()
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return h, err
}

// refresh reads the file again if the last check was hostsCheck ago and the file has changed since.
// It returns the error of the last check. After an error the former contents stay.
func (h *hostsFile) refresh(now time.Duration) error {
	if h.path != "" && now-h.checked >= hostsCheck {
		h.checked = now
		h.err = h.check()
	}
	return h.err
}

// check reads the file if it has changed. A file that was removed counts as empty.
func (h *hostsFile) check() error {
	info, err := os.Stat(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.info, h.names = nil, nil
		return nil
	case err != nil:
		return fmt.Errorf("hosts file: %w", err)
	case h.info != nil && os.SameFile(h.info, info) && h.info.ModTime().Equal(info.ModTime()) &&
		h.info.Size() == info.Size():
		return nil
	}
	return h.read()
}

func (h *hostsFile) read() error {
	f, err := os.Open(h.path)
	if err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	switch {
	case err != nil:
		return fmt.Errorf("hosts file: %w", err)
	case len(text) > maxConfigFile:
		return fmt.Errorf("hosts file %s: over %d bytes; make it smaller", h.path, maxConfigFile)
	}
	h.info, h.names = info, parseHosts(text)
	return nil
}

// parseHosts parses lines "address name name… # comment". Like libc, it skips invalid addresses and
// names. It folds the names.
func parseHosts(text []byte) map[string][]netip.Addr {
	names := make(map[string][]netip.Addr)
	for line := range bytes.Lines(text) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		addr, ok := literal(string(fields[0]))
		if !ok {
			continue
		}
		for _, field := range fields[1:] {
			name := fold(string(field))
			if checkName(name) == nil {
				names[name] = append(names[name], addr)
			}
		}
	}
	return names
}
