package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tree makes a folder of files, and a file beside the folder. A name that ends with a slash is a
// folder; contents that begin with "->" are the target of a symbolic link.
func tree(t testing.TB, files map[string]string) (root string) {
	t.Helper()
	top := t.TempDir()
	root = filepath.Join(top, "root")
	must(t, os.Mkdir(root, 0o755))
	must(t, os.WriteFile(filepath.Join(top, "secret.txt"), []byte("secret"), 0o644))
	for name, text := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch to, isLink := strings.CutPrefix(text, "->"); {
		case isLink:
			must(t, os.Symlink(to, path))
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(path, 0o755))
		default:
			must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	return root
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	f, err := openFolder(tree(t, map[string]string{
		"index.html":     "front",
		"a b.html":       "space",
		"50%.txt":        "percent",
		"sub/x.HTM":      "x",
		"sub/.hidden":    "hidden",
		"sub/q?.html":    "question",
		"sub/c:d/e.xyzz": "unknown kind",
		"empty/":         "",
		"link.html":      "->index.html",
		"out":            "->../secret.txt",
		"dangling":       "->nothing",
		"self":           "->self",
		"sub/up":         "->..",
		"other":          "->sub",
		"sub/loop/here":  "->../../sub",
	}))
	must(t, err)
	tests := []struct {
		target, kind, body, location string
		status                       int
	}{
		{target: "/", status: 200, kind: "text/html", body: "front"},
		{target: "/index.html", status: 200, kind: "text/html", body: "front"},
		{target: "/index.html?x=1", status: 200, kind: "text/html", body: "front"},
		{target: "/a%20b.html", status: 200, kind: "text/html", body: "space"},
		{target: "/50%25.txt", status: 200, kind: "text/plain", body: "percent"},
		{target: "/50%.txt", status: 404},
		{target: "/sub", status: 301, location: "./sub/"},
		{target: "/sub/c:d", status: 301, location: "./c:d/"},
		{target: "/sub/", status: 200, kind: "text/html; charset=utf-8"},
		{target: "/sub/x.HTM", status: 200, kind: "text/html", body: "x"},
		{target: "/sub/x.HTM/", status: 404},
		{target: "/sub/x.HTM/y", status: 404},
		{target: "/sub/.hidden", status: 404},
		{target: "/sub/q%3F.html", status: 200, kind: "text/html", body: "question"},
		{target: "/sub/c:d/e.xyzz", status: 200, kind: "application/octet-stream", body: "unknown kind"},
		{target: "/link.html", status: 200, kind: "text/html", body: "front"},
		{target: "/out", status: 200, kind: "text/plain", body: "secret"}, // links are followed
		{target: "/dangling", status: 404},
		{target: "/self", status: 404},
		{target: "/other/x.HTM", status: 200, kind: "text/html", body: "x"},
		{target: "/sub/up/", status: 404},
		{target: "/sub/loop/here/", status: 404},
		{target: "/other/loop/here/", status: 404},
		{target: "/../secret.txt", status: 404},
		{target: "/%2e%2e/secret.txt", status: 404},
		{target: "/sub/..%2f..%2f..%2fsecret.txt", status: 404},
		{target: "/sub%2Fx.HTM", status: 404},
		{target: "/sub//x.HTM", status: 404},
		{target: "/index.html%00", status: 404},
		{target: "//", status: 404},
		{target: "/missing", status: 404},
	}
	for _, test := range tests {
		a := f.answer(test.target)
		if a.status != test.status || a.location != test.location {
			t.Errorf("%s: %d to %q, want %d to %q", test.target, a.status, a.location, test.status,
				test.location)
		}
		if test.kind != "" && a.kind != test.kind {
			t.Errorf("%s: kind %q, want %q", test.target, a.kind, test.kind)
		}
		if test.body != "" && string(a.body) != test.body {
			t.Errorf("%s: %q, want %q", test.target, a.body, test.body)
		}
	}
}

func TestFolderList(t *testing.T) {
	f, err := openFolder(tree(t, map[string]string{
		"<b>&.html": "", "c:d/": "", ".hidden": "", "q?#.html": "", "dangling": "->nothing", "circle": "->.",
	}))
	must(t, err)
	const want = `<!DOCTYPE html>
<title>/</title>
<h1>/</h1>
<ul>
<li><a href="./%3Cb%3E&.html">&lt;b&gt;&amp;.html</a>
<li><a href="./c:d/">c:d</a>
<li><a href="./q%3F%23.html">q?#.html</a>
</ul>
`
	if got := f.answer("/"); string(got.body) != want {
		t.Errorf("list:\n%s\nwant:\n%s", got.body, want)
	}
}

func TestFolderRobots(t *testing.T) {
	f, err := openFolder(tree(t, map[string]string{
		"robots.txt": "User-agent: *\nDisallow: /no\nCrawl-delay: 2\n",
	}))
	must(t, err)
	if !f.forbids("/no.html") || f.forbids("/yes.html") || f.delay() != 2*time.Second {
		t.Errorf("/no.html %t, /yes.html %t, delay %v; want true, false, 2s", f.forbids("/no.html"),
			f.forbids("/yes.html"), f.delay())
	}
}

func TestOpenFolderFails(t *testing.T) {
	root := tree(t, map[string]string{"file": ""})
	for _, dir := range []string{filepath.Join(root, "file"), filepath.Join(root, "missing")} {
		if _, err := openFolder(dir); err == nil {
			t.Errorf("%s: no error", dir)
		}
	}
}

// FuzzFolder requests any path. The answer must never be a file outside the folder, unless a link
// leads there.
func FuzzFolder(f *testing.F) {
	site, err := openFolder(tree(f, map[string]string{"index.html": "in", "sub/x.html": "in",
		"sub/y/z.html": "in"}))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"/", "/sub", "/sub/", "/../secret.txt", "/sub/%2e%2e/%2e%2e/secret.txt",
		"/sub/y/..%2fz.html", "?", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		a := site.answer(target)
		switch {
		case bytes.Contains(a.body, []byte("secret\n")), string(a.body) == "secret":
			t.Errorf("%q served %q", target, a.body)
		case a.status == 301 && site.answer(strings.TrimSuffix(target, "/")+"/").status == 0:
			t.Errorf("%q redirects to nothing", target)
		case a.status != 200 && a.status != 301 && a.status != 404:
			t.Errorf("%q: status %d", target, a.status)
		}
	})
}

func TestHostName(t *testing.T) {
	tests := []struct {
		dir, want string
		taken     []string
	}{
		{dir: "/usr/share/doc/postgresql-doc-15/html", want: "postgresql-doc-15.test"},
		{dir: "/usr/share/doc/sqlite3", want: "sqlite3.test"},
		{dir: "/srv/My Docs_2", want: "my-docs-2.test"},
		{dir: "/docs", want: "docs.test"},
		{dir: "/", want: "site.test"},
		{dir: "/a/--é--", want: "site.test"},
		{dir: "/a/html", want: "a-2.test", taken: []string{"a.test"}},
		{dir: "/x/a", want: "a-3.test", taken: []string{"a.test", "a-2.test"}},
		{dir: "/" + strings.Repeat("a", 70), want: strings.Repeat("a", 61) + "-2.test",
			taken: []string{strings.Repeat("a", 63) + ".test"}},
	}
	for _, test := range tests {
		if got := hostName(test.dir, test.taken); got != test.want {
			t.Errorf("hostName(%q, %q) = %q, want %q", test.dir, test.taken, got, test.want)
		}
	}
}
