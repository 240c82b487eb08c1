package urlserver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retired has the words that exported identifiers no longer use, with the words of docs/glossary.md
// to use instead. A word stands for its plural, too.
var retired = map[string]string{
	"afoot":    "in flight",
	"bell":     "notifier",
	"book":     "crawl stats",
	"chapter":  "partition",
	"choke":    "back-pressure",
	"claim":    "lease, or batch",
	"condemn":  "cancel",
	"cool":     "cooldown",
	"crew":     "spider pool",
	"depart":   "start a span",
	"doer":     "batcher",
	"door":     "consumer, or limited listener",
	"enlist":   "join the pool",
	"figure":   "counter, or metrics",
	"glance":   "slot summary",
	"heed":     "apply, or process",
	"homeless": "unresolved",
	"hungry":   "needs candidates",
	"journey":  "trace",
	"lane":     "pool queue",
	"ledger":   "crawl members",
	"lend":     "remote lease",
	"lent":     "remote lease",
	"linger":   "deferred release",
	"lobby":    "tarpit",
	"loiter":   "delay the gap",
	"mover":    "transaction",
	"obey":     "set host rules",
	"parked":   "suspended",
	"patience": "timeout",
	"poke":     "wake the index",
	"seat":     "assign a slot",
	"shelf":    "document table",
	"stranger": "unauthenticated",
	"teller":   "reporter",
	"told":     "reported, or acknowledged",
	"tally":    "counts",
	"trip":     "robots fetch",
	"unname":   "release a DOC_ID",
	"untold":   "unreported",
	"wary":     "throttle",
	"wish":     "query, or request",
}

// retiredPhrases are retired words of two parts.
var retiredPhrases = map[string]string{"keep apart": "desync"}

// stillThere lists the packages that may use a retired word, each with the words. It may only
// shrink. patience stays in configs and hostslots: it is the name of a setting.
var stillThere = map[string][]string{
	"configs":      {"patience"},
	"hostslots":    {"patience"},
	"internal/sim": {"patience"},
}

// TestWords reads the exported identifiers of all packages and fails on retired words.
func TestWords(t *testing.T) {
	used := map[string]bool{} // of stillThere: package and word
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "api" || d.Name() == "testdata" || len(path) > 1 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		for _, name := range exportedNames(t, path) {
			word, instead := retiredWord(name)
			switch {
			case word == "", name == "RoundTrip": // of http.RoundTripper
			case slices.Contains(stillThere[folder], word):
				used[folder+" "+word] = true
			default:
				t.Errorf("%s: %s: %q is a retired word; docs/glossary.md says %s", path, name, word, instead)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, words := range stillThere {
		for _, word := range words {
			if !used[folder+" "+word] {
				t.Logf("%s no longer uses %q: take it out of stillThere", folder, word)
			}
		}
	}
}

// exportedNames returns the exported names that a file declares: types, functions, methods, fields,
// constants and variables.
func exportedNames(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names = append(names, id.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
			return false
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.StructType:
			for _, f := range n.Fields.List {
				add(f.Names...)
			}
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				add(m.Names...)
			}
		}
		return true
	})
	return names
}

// retiredWord returns the first retired word in a name, and what to use instead.
func retiredWord(name string) (word, instead string) {
	parts := wordsOf(name)
	for i, part := range parts {
		for _, word := range []string{part, strings.TrimSuffix(part, "s"), strings.TrimSuffix(part, "ed")} {
			if instead := retired[word]; instead != "" {
				return word, instead
			}
		}
		if i > 0 {
			phrase := parts[i-1] + " " + part
			if instead := retiredPhrases[phrase]; instead != "" {
				return phrase, instead
			}
		}
	}
	return "", ""
}

// wordsOf splits a name at its capitals: "HostIDs" is host and ids.
func wordsOf(name string) (words []string) {
	from := 0
	for i, r := range name {
		lower := i+1 < len(name) && unicode.IsLower(rune(name[i+1]))
		if i > from && unicode.IsUpper(r) && (lower || unicode.IsLower(rune(name[i-1]))) {
			words = append(words, strings.ToLower(name[from:i]))
			from = i
		}
	}
	return append(words, strings.ToLower(name[from:]))
}

// TestRetiredWord: words are found wherever they stand in a name, and only as words.
func TestRetiredWord(t *testing.T) {
	for name, want := range map[string]string{
		"Shelf": "shelf", "NewShelf": "shelf", "TellerOf": "teller", "HTTPDoors": "door",
		"KeepApart": "keep apart",
		"Condemned": "condemn", "Cools": "cool", "Striped": "", "Outdoors": "", "AirplaneID": "",
		"Booking": "", "": "",
	} {
		if got, _ := retiredWord(name); got != want {
			t.Errorf("retiredWord(%q) = %q; want %q", name, got, want)
		}
	}
}
