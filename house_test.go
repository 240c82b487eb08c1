package urlserver_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const columns = 120 // of a line of Go; a tab counts four

// sourceFile is a Go file that people wrote.
type sourceFile struct {
	path string // from the top of the project
	text []byte
	ast  *ast.File
}

func (f *sourceFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f *sourceFile) lines() int { return bytes.Count(f.text, []byte("\n")) }

// support holds packages that no program for users contains.
var support = []string{
	"internal/sim", "internal/bench", "internal/chaos", "internal/demo", "internal/testkit",
	"docindex/indextest", "reservation/reservationtest", "tools", "examples",
}

// house reads the Go files that people wrote. Positions count in fset.
func house(t *testing.T) (fset *token.FileSet, files []*sourceFile) {
	t.Helper()
	fset = token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (name[0] == '.' || name == "testdata" || name == "dist"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(file) {
			files = append(files, &sourceFile{filepath.ToSlash(path), text, file})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fset, files
}

// TestHouse counts what makes the code easy or hard to find one's way in, prints it ("make house"),
// and fails where a figure is beyond its bound.
func TestHouse(t *testing.T) {
	fset, files := house(t)
	atMost := func(what string, got, most int) {
		t.Helper()
		t.Logf("%-52s %7d  at most %d", what, got, most)
		if got > most {
			t.Errorf("%s: %d; want at most %d", what, got, most)
		}
	}
	atMost("folders at the top", topFolders(t), 20) // clients and deploy came later
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	atMost("words in README.md", len(bytes.Fields(readme)), 1200)
	atMost("lines in README.md", bytes.Count(readme, []byte("\n")), 150)
	for _, b := range []struct {
		dir, name       string
		fields, methods int
	}{{"hostslots", "Slots", 12, 55}, {"urlserver/engine", "Engine", 14, 55}, {"docindex/disk", "Store", 12, 30}} {
		fields, methods := sizeOf(files, b.dir, b.name)
		name := path.Base(b.dir) + "." + b.name
		atMost("fields of "+name, fields, b.fields)
		atMost("exported methods of "+name, methods, b.methods)
	}
	least, most := roles(files)
	atMost("methods of the smallest role of an index", least, 2)
	atMost("methods of the largest role of an index", most, 11)
	copies := copied(t, fset, files)
	atMost("methods of docindex/disk copied from memory", len(copies), 8)
	long := longLines(t, files)
	atMost(fmt.Sprintf("lines of Go over %d columns", columns), len(long), 0)
	for _, line := range long[:min(len(long), 20)] {
		t.Log(line)
	}
	copies = copiedComments(files)
	atMost("doc comments at two declarations of a package", len(copies), 0)
	for _, line := range copies {
		t.Log(line)
	}
	deciding := deciders(files)
	atMost("files that decide on the text of a reason", len(deciding), 0)
	for _, line := range deciding {
		t.Log(line)
	}
	source, product := 0, 0
	for _, f := range files {
		if f.test() {
			continue
		}
		source += f.lines()
		if _, ok := under(f.path, support); !ok {
			product += f.lines()
		}
	}
	t.Logf("%-52s %7d", "lines of Go without tests", source)
	t.Logf("%-52s %7d", "of these, in the programs", product)
}

func topFolders(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' && e.Name() != "dist" {
			n++
		}
	}
	return n
}

// sizeOf counts the fields of a struct and the exported methods of its pointer.
func sizeOf(files []*sourceFile, dir, name string) (fields, methods int) {
	for _, f := range files {
		if filepath.ToSlash(filepath.Dir(f.path)) != dir || f.test() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
				if s, ok := spec.Type.(*ast.StructType); ok {
					fields = s.Fields.NumFields()
				}
			}
			return true
		})
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && receiver(fn) == name && fn.Name.IsExported() {
				methods++
			}
		}
	}
	return fields, methods
}

// receiver is the name of a method's type; "": it is a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// roles counts the methods of the interfaces in docindex that name their methods themselves.
func roles(files []*sourceFile) (least, most int) {
	for _, f := range files {
		if filepath.ToSlash(filepath.Dir(f.path)) != "docindex" || f.test() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			it, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			methods := 0
			for _, m := range it.Methods.List {
				methods += len(m.Names)
			}
			if methods > 1 && (least == 0 || methods < least) {
				least = methods
			}
			most = max(most, methods)
			return true
		})
	}
	return least, most
}

// copied lists methods that docindex/memory and docindex/disk have under one name with one body.
func copied(t *testing.T, fset *token.FileSet, files []*sourceFile) (names []string) {
	t.Helper()
	bodies := map[string]map[string]string{"docindex/memory": {}, "docindex/disk": {}}
	for _, f := range files {
		of := bodies[filepath.ToSlash(filepath.Dir(f.path))]
		if of == nil || f.test() {
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil || receiver(fn) == "" {
				continue
			}
			var b strings.Builder
			if err := printer.Fprint(&b, fset, fn.Body); err != nil {
				t.Fatal(err)
			}
			of[fn.Name.Name] = b.String()
		}
	}
	for name, body := range bodies["docindex/memory"] {
		if bodies["docindex/disk"][name] == body {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// copiedComments names declarations whose doc comment stands at another one of the package, too:
// one of them has lost its own.
func copiedComments(files []*sourceFile) (where []string) {
	const short = 60 // such a comment may well be said twice
	first := map[[2]string]string{}
	for _, f := range files {
		dir := filepath.Dir(f.path)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			var doc *ast.CommentGroup
			var name string
			switch n := n.(type) {
			case *ast.FuncDecl:
				doc, name = n.Doc, n.Name.Name
			case *ast.GenDecl:
				doc, name = n.Doc, f.path
			case *ast.Field:
				if doc = n.Doc; len(n.Names) > 0 {
					name = n.Names[0].Name
				}
			}
			text := strings.Join(strings.Fields(doc.Text()), " ")
			if len(text) < short {
				return true
			}
			key := [2]string{dir, text}
			if other, ok := first[key]; ok {
				where = append(where, fmt.Sprintf("%s: %s and %s: %q", dir, other, name, text))
			}
			first[key] = name
			return true
		})
	}
	return where
}

// longLines names the lines that are too long. Lines of raw strings do not count: their text is
// data.
func longLines(t *testing.T, files []*sourceFile) (where []string) {
	t.Helper()
	for _, f := range files {
		raw := rawLines(f.text)
		for i, line := range strings.Split(string(f.text), "\n") {
			if n := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t"); n > columns && !raw[i+1] {
				where = append(where, fmt.Sprintf("%s:%d: %d columns", f.path, i+1, n))
			}
		}
	}
	return where
}

// rawLines returns the numbers of the lines that raw strings are on.
func rawLines(text []byte) map[int]bool {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.STRING && lit[0] == '`' {
			first := file.Line(pos)
			for i := range strings.Count(lit, "\n") + 1 {
				lines[first+i] = true
			}
		}
	}
}

var decides = regexp.MustCompile(
	`strings\.(Contains|HasPrefix|HasSuffix|Replace|ReplaceAll|Cut|CutPrefix)\([^,]*\b(Why|why|Reason|reason)\b`)

// deciders lists files whose code compares or edits the words of a reason.
func deciders(files []*sourceFile) (where []string) {
	for _, f := range files {
		if !f.test() && decides.Match(f.text) {
			where = append(where, f.path)
		}
	}
	return where
}
