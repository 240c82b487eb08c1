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

// layers lists the packages from the ground up. One imports only what stands in
// a line above its own.
var layers = [][]string{
	{"reservation/ports"},
	{"about", "slab", "arena", "table", "dueheap", "weburl", "protocol", "journey", "certs", "certs/certstest", "sdnotify", "api/urlfrontier", "api/reservation", "access", "access/accesstest", "reservation/redis/redistest", "journey/otlp/otlptest"},
	{"reservation", "configs"},
	{"reservation/kv", "reservation/memory", "reservation/redis", "reservation/remote", "reservation/service", "reservation/reservationtest"},
	{"reservation/command"},
	{"leftover", "robots", "resolver", "journey/otlp", "docindex/internal/lines", "docindex/internal/finder"},
	{"docindex/internal/doors", "docindex/internal/books"},
	{"hostslots", "hostrules", "docindex"},
	{"docindex/recrawl", "docindex/remote", "docindex/disk", "docindex/redis", "docindex/storetest", "urlserver/engine", "frontier", "monitor", "docindex/dump", "frontier/client"},
	{"urlserver", "spider", "sim", "monitor/kafka", "admin/login"},
	{"admin/watch"},
	{"admin", "demo"},
	{"bench", "cmd/urlserver", "cmd/spider", "cmd/hostreservation"},
}

// pure packages decide: no goroutine, lock, clock, log or I/O. What they may import
// of the standard library is listed.
var (
	pure        = []string{"slab", "arena", "table", "dueheap", "docindex/internal/finder", "docindex/internal/doors", "leftover", "hostslots", "hostrules", "journey", "urlserver/engine"}
	pureImports = []string{
		"bytes", "crypto/sha256", "encoding/binary", "errors", "fmt", "hash/maphash", "maps", "math", "math/bits", "net/netip", "slices", "time",
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

func layerOf(name string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, name) })
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		own := layerOf(p.name())
		if own < 0 {
			t.Errorf("%s stands in no layer", p.name())
			continue
		}
		for _, dep := range p.Imports {
			name, ours := strings.CutPrefix(dep, module)
			if ours && layerOf(name) >= own {
				t.Errorf("%s imports %s, which is not below it", p.name(), name)
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
