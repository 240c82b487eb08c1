package demo

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// folderWeb returns a web with one host per folder, each on an address of its own.
func folderWeb(dirs []string, port uint16) (*web, error) {
	var hosts []host
	var names []string
	for i, dir := range dirs {
		f, err := openFolder(dir)
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", dir, err)
		}
		names = append(names, hostName(f.root, names))
		hosts = append(hosts, host{name: names[i], addr: loopback(i + 1), site: f})
	}
	w := newWeb("folders", port, hosts)
	for _, name := range names {
		w.seeds = append(w.seeds, origin(name, port)+"/")
	}
	return w, nil
}

// generic lists folder names that say nothing about the contents.
var generic = []string{"doc", "docs", "htdocs", "html", "htm", "manual", "public", "site", "web", "www"}

const maxLabel = 63 // bytes of a part of a host name (RFC 1035, section 2.3.4)

// hostName returns the name of the host for a folder: the folder's base name below ".test", or its
// parent's if the base name is generic. If the name is taken, a number is appended.
func hostName(dir string, taken []string) string {
	base := filepath.Base(dir)
	if parent := filepath.Base(filepath.Dir(dir)); slices.Contains(generic, strings.ToLower(base)) &&
		label(parent) != "" {
		base = parent
	}
	first := label(base)
	if first == "" {
		first = "site"
	}
	name := first + ".test"
	for n := 2; slices.Contains(taken, name); n++ {
		end := "-" + strconv.Itoa(n)
		name = strings.TrimRight(first[:min(len(first), maxLabel-len(end))], "-") + end + ".test"
	}
	return name
}

// label turns text into a part of a host name: lower-case letters, digits, and single hyphens
// between them.
func label(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	l := strings.Join(words, "-")
	return strings.TrimRight(l[:min(len(l), maxLabel)], "-")
}
