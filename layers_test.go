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

// layers lists the packages from the ground up. An entry includes the packages below its folder
// that have no entry of their own. A package imports only packages of its own layer and of lower
// ones.
var layers = []struct {
	name, holds string
	packages    []string
}{
	{"values", "types, formats, settings and small tools that know nothing of crawling", []string{
		"api", "configs", "protocol", "internal/budgetmodel", "internal/canonical", "internal/clihelp",
		"internal/container", "internal/netguard", "internal/scope", "internal/systemd", "internal/trace",
		"internal/w3cdate", "internal/weburl",
	}},
	{"parts", "one job each: resolve names, read robots.txt, pace hosts, queue the " +
		"rest, share hosts", []string{
		"hostslots", "internal/resolver", "internal/robots", "leftover", "reservation",
	}},
	{"index", "the doc index: its contract, the embedded stores, and the index over HTTP",
		[]string{"docindex"}},
	{"daemon", "what runs: the engine and its daemon, the services beside it, the reference spider", []string{
		"crawlcontrol", "frontier", "spider", "urlserver",
	}},
	{"surfaces", "what people look at: the HTTP API and the dashboard", []string{"urlserver/httpapi"}},
	{"programs", "the commands, and programs that test the daemon as a whole", []string{
		"cmd", "internal/bench", "internal/chaos", "internal/demo", "internal/sim",
	}},
}

// testOnly packages are imported by tests only: helpers and conformance suites.
var testOnly = []string{"internal/testkit", "docindex/indextest", "reservation/reservationtest"}

// pure packages take decisions: no goroutine, lock, clock, log or I/O. pureImports lists the
// packages of the standard library that they may import.
var (
	pure = []string{
		"docindex/internal/addresses", "docindex/internal/queuesched", "docindex/internal/rounds", "hostslots",
		"internal/container/arena", "internal/container/hashindex",
		"internal/container/dense", "internal/container/slab", "internal/container/timeheap",
		"internal/trace",
		"leftover", "urlserver/engine",
	}
	pureImports = []string{
		"bytes", "cmp", "crypto/sha256", "encoding/binary", "errors", "fmt", "hash/maphash", "maps", "math",
		"math/bits", "net/netip", "slices", "strings", "time",
	}
	clockCalls = []string{
		"time.Now(", "time.Since(", "time.Until(", "time.After", "time.NewTimer", "time.Sleep(",
		"go func", "chan ",
	}
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

// under returns the longest entry of a list that is the package or a folder above it.
func under(name string, list []string) (entry string, ok bool) {
	for _, e := range list {
		if (name == e || strings.HasPrefix(name, e+"/")) && len(e) > len(entry) {
			entry, ok = e, true
		}
	}
	return entry, ok
}

// layerOf returns the number of a package's layer, or -1.
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
				above := layers[layerOf(name)]
				t.Errorf("%s (%s) imports %s, which is above it (%s: %s)", p.name(), layers[own].name, name,
					above.name, above.holds)
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
				t.Errorf("%s is pure and must not import %s", p.name(), dep)
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
