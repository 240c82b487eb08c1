package urlserver_test

import (
	"bytes"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents returns the project's Markdown files.
func documents(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "dist" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d documents, error %v", len(files), err)
	}
	return files
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noWord  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the fragments that a document's headings have, as code hosts make them.
func anchors(text []byte) (all []string) {
	for _, m := range heading.FindAllSubmatch(text, -1) {
		words := noWord.ReplaceAllString(strings.ToLower(string(m[1])), "")
		all = append(all, strings.ReplaceAll(words, " ", "-"))
	}
	return all
}

// TestLinks follows each relative link of each document, and its fragment.
func TestLinks(t *testing.T) {
	followed := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			followed++
			path, fragment, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			info, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
				continue
			}
			if fragment == "" || info.IsDir() {
				continue
			}
			if text, err := os.ReadFile(target); err != nil || !slices.Contains(anchors(text), fragment) {
				t.Errorf("%s links to %s: no such heading (%v)", file, m[1], err)
			}
		}
	}
	if followed < 50 {
		t.Errorf("followed %d links: the documents have more", followed)
	}
}

// shellLines returns the lines of a document's blocks of sh, without comments.
func shellLines(text string) (lines []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
			line, _, _ = strings.Cut(line, "   #")
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// runnable lines ask a daemon that is running; the others install, build or stay in the foreground.
var (
	runnable = regexp.MustCompile(
		`(^|\| )(bin/urlserver (put|status|explain|crawl|export|import|check|robots|schema|block|unblock|delay|pause|resume)|curl -)`)
	makeTarget = regexp.MustCompile(`^make ([a-z-]+)`)
)

// TestDocumentedCommands runs each command that README and docs show against a daemon, and looks
// whether each target of make that they name is there. make examples runs the recipes.
func TestDocumentedCommands(t *testing.T) {
	d := startDaemon(t, "[resolver]\nservers = [\"127.0.0.1:1\"]\n")
	dir := t.TempDir()
	if err := os.Symlink(programs(t), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("configs/urlserver.toml")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "my.toml"), settings, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "urls.txt"), []byte("http://example.org/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+d.http+"/docindex/urls", "text/plain",
		strings.NewReader("http://example.org/\nhttp://host/\n"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	_, port, _ := net.SplitHostPort(d.http)
	ran := 0
	for _, file := range documents(t) {
		if file != "README.md" && !strings.HasPrefix(file, "docs/") ||
			strings.HasPrefix(file, "docs/recipes/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shellLines(string(text)) {
			if m := makeTarget.FindStringSubmatch(line); m != nil &&
				!bytes.Contains(makefile, []byte("\n"+m[1]+":")) {
				t.Errorf("%s: %s: no such target", file, line)
			}
			if !runnable.MatchString(line) {
				continue
			}
			ran++
			here := strings.ReplaceAll(line, "127.0.0.1:8080", "127.0.0.1:"+port)
			here = regexp.MustCompile(
				`bin/urlserver (put|status|explain|crawl [a-z]+|export|import|block|unblock|delay|pause|resume)`).
				ReplaceAllString(here, "$0 --at http://"+d.http)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -o pipefail; "+here)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte(`"error"`)) {
				t.Errorf("%s: %s: %v\n%s", file, line, err, out)
			}
		}
	}
	if ran < 15 {
		t.Errorf("ran %d commands: the documents have more", ran)
	}
}
