package urlserver_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers lists the packages from the ground up, each with all below it that has no entry of its own. A package imports
// only what is in its own layer or below.
var layers = []struct {
	name     string
	packages []string
}{
	{"values", []string{"internal/container", "internal/weburl", "internal/trace", "internal/clihelp", "internal/systemd", "internal/netguard", "protocol", "configs", "api"}},
	{"parts", []string{"internal/resolver", "internal/robots", "hostrules", "hostslots", "leftover", "reservation"}},
	{"index", []string{"docindex"}},
	{"daemon", []string{"urlserver", "frontier", "crawlcontrol", "spider"}},
	{"surfaces", []string{"urlserver/httpapi"}},
	{"programs", []string{"cmd", "internal/demo", "internal/bench", "internal/sim", "internal/chaos"}},
}

// testkit is what tests alone import; so are the conformance suites.
var testOnly = []string{"internal/testkit", "docindex/indextest", "reservation/reservationtest"}

// pure packages decide: no goroutine, lock, clock, log or I/O. What they may import
// of the standard library is listed.
var (
	pure        = []string{"internal/container/slab", "internal/container/arena", "internal/container/hashindex", "internal/container/timeheap", "internal/container/hashindex", "docindex/internal/queuesched", "leftover", "hostslots", "hostrules", "internal/trace", "urlserver/engine"}
	pureImports = []string{
		"bytes", "cmp", "crypto/sha256", "encoding/binary", "errors", "fmt", "hash/maphash", "maps", "math", "math/bits", "net/netip", "slices", "time",
	}
	clockCalls = []string{"time.Now(", "time.Since(", "time.Until(", "time.After", "time.NewTimer", "time.Sleep(", "go func", "chan "}
)

const module = "urlserver/"

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func (p goPackage) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func packages(t *testing.T) (list []goPackage) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			list = append(list, p)
		}
	}
}

// under tells whether a package is one of a list, or below it.
func under(name string, list []string) (entry string, ok bool) {
	for _, e := range list {
		if (name == e || strings.HasPrefix(name, e+"/")) && len(e) > len(entry) {
			entry, ok = e, true
		}
	}
	return entry, ok
}

// layerOf returns the layer with a package's longest entry; -1: none.
func layerOf(name string) int {
	layer, longest := -1, ""
	for i, l := range layers {
		if entry, ok := under(name, l.packages); ok && len(entry) > len(longest) {
			layer, longest = i, entry
		}
	}
	return layer
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		if _, ok := under(p.name(), testOnly); ok {
			continue
		}
		own := layerOf(p.name())
		if own < 0 {
			t.Errorf("%s is in no layer", p.name())
			continue
		}
		for _, dep := range p.Imports {
			name, ours := strings.CutPrefix(dep, module)
			if !ours {
				continue
			}
			if _, ok := under(name, testOnly); ok {
				t.Errorf("%s imports %s, which is for tests", p.name(), name)
			} else if layerOf(name) > own {
				t.Errorf("%s (%s) imports %s (%s), which is above it", p.name(), layers[own].name, name, layers[layerOf(name)].name)
			}
		}
	}
}

func TestPurePackagesOnlyDecide(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(pure, p.name()) {
			continue
		}
		for _, dep := range p.Imports {
			if !strings.HasPrefix(dep, module) && !slices.Contains(pureImports, dep) {
				t.Errorf("%s decides, it does not speak: drop %s", p.name(), dep)
			}
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range clockCalls {
				if strings.Contains(string(text), call) {
					t.Errorf("%s/%s: %s has no place in a pure package", p.name(), file, call)
				}
			}
		}
	}
}
