package demo

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"urlserver/internal/robots"
)

// maxFile is how much of a file is served: as much as a spider reads of a body.
const maxFile = 10 << 20

// folder is a host that serves a folder of files. The page of a folder is its index.html, or a list
// of its files. Symbolic links are followed, also out of the folder, but not in circles.
type folder struct {
	root string // without symbolic links
	file *robots.Rules
}

// openFolder returns the site for dir. If dir has a robots.txt, its rules apply.
func openFolder(dir string) (*folder, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(root); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	f := &folder{root: root, file: robots.AllowAll()}
	if a := f.answer("/robots.txt"); a.status == http.StatusOK {
		f.file = robots.Parse(a.body, agent)
	}
	return f, nil
}

func (f *folder) forbids(target string) bool { return !f.file.Allowed([]byte(target)) }

func (f *folder) delay() time.Duration { return f.file.CrawlDelay() }

func (f *folder) answer(target string) answer {
	raw, _, _ := strings.Cut(target, "?")
	name, isDir, err := f.find(raw)
	if err != nil {
		return plain(http.StatusNotFound)
	}
	if !isDir {
		return readFile(name)
	}
	if !strings.HasSuffix(raw, "/") {
		return answer{status: http.StatusMovedPermanently, location: "./" + path.Base(raw) + "/"}
	}
	if page := readFile(filepath.Join(name, "index.html")); page.status == http.StatusOK {
		return page
	}
	return f.list(name, raw)
}

var errNoFile = errors.New("no such file")

// find returns the file or folder at a path, with all symbolic links resolved.
func (f *folder) find(raw string) (name string, isDir bool, err error) {
	name, isDir = f.root, true
	seen := []string{name}
	segments := strings.Split(strings.TrimPrefix(raw, "/"), "/")
	for i, segment := range segments {
		if segment == "" && i == len(segments)-1 {
			break // the path of a folder ends with a slash
		}
		plain, err := url.PathUnescape(segment)
		if err != nil || !isDir || plain == "" || plain[0] == '.' || strings.ContainsAny(plain, "/\x00") {
			return "", false, errNoFile
		}
		if name, err = filepath.EvalSymlinks(filepath.Join(name, plain)); err != nil {
			return "", false, err
		}
		info, err := os.Stat(name)
		if err != nil {
			return "", false, err
		}
		if isDir = info.IsDir(); isDir && slices.Contains(seen, name) {
			return "", false, errNoFile // a circle of links
		}
		seen = append(seen, name)
	}
	if strings.HasSuffix(raw, "/") && !isDir {
		return "", false, errNoFile
	}
	return name, isDir, nil
}

// readFile returns the answer for a file.
func readFile(name string) answer {
	info, err := os.Stat(name) // before opening it: opening a pipe would block
	if err != nil || !info.Mode().IsRegular() {
		return plain(http.StatusNotFound)
	}
	file, err := os.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return plain(http.StatusForbidden)
		}
		return plain(http.StatusNotFound)
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return plain(http.StatusInternalServerError)
	}
	return answer{status: http.StatusOK, kind: kindOf(name), body: body}
}

// kindOf returns the media type of a file. For HTML it has no charset, since the page names it.
func kindOf(name string) string {
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".html", ".htm":
		return "text/html"
	case ".xhtml", ".xht":
		return "application/xhtml+xml"
	case ".txt":
		return "text/plain"
	default:
		if kind := mime.TypeByExtension(ext); kind != "" {
			return kind
		}
	}
	return "application/octet-stream"
}

// list returns the page of a folder without index.html: links to all files that are not hidden.
func (f *folder) list(dir, raw string) answer {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return plain(http.StatusForbidden)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<title>%[1]s</title>\n<h1>%[1]s</h1>\n<ul>\n", html.EscapeString(raw))
	for _, entry := range entries {
		segment := url.PathEscape(entry.Name())
		_, isDir, err := f.find(raw + segment)
		if err != nil {
			continue
		}
		if isDir {
			segment += "/"
		}
		fmt.Fprintf(&b, "<li><a href=\"./%s\">%s</a>\n", segment, html.EscapeString(entry.Name()))
	}
	b.WriteString("</ul>\n")
	return answer{status: http.StatusOK, kind: "text/html; charset=utf-8", body: b.Bytes()}
}

// plain returns an answer whose text is its status.
func plain(status int) answer {
	return answer{status: status, kind: "text/plain", body: []byte(http.StatusText(status) + "\n")}
}
