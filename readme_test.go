package urlserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var built struct { // by programs
	sync.Once
	dir string
	out []byte
	err error
}

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(built.dir)
	os.Exit(status)
}

// programs returns the folder with the commands of the project, which it builds the first time.
func programs(t *testing.T) (dir string) {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "urlserver"); built.err == nil {
			built.out, built.err = exec.Command("go", "build", "-o", built.dir+"/", "./cmd/...").CombinedOutput()
		}
	})
	if built.err != nil {
		t.Fatalf("go build: %v\n%s", built.err, built.out)
	}
	return built.dir
}

// TestGuidesSpider runs the Python spider of docs/guides/write-a-spider.md against the daemon, as a
// user would.
func TestGuidesSpider(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the spider of docs/guides/write-a-spider.md is not tried")
	}
	fetched := make(chan string, 100)
	webs := serveOn(t, 6, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fetched <- r.URL.RequestURI()
	}))
	d := startDaemon(t, "Req_Host_Per_Sec = 100\n[resolver]\nallow_networks = [\"127.0.0.0/8\"]\n")
	script := filepath.Join(t.TempDir(), "spider.py")
	_, port, _ := net.SplitHostPort(d.spiders)
	text := strings.Replace(codeBlock(t, "docs/guides/write-a-spider.md", "python"), "4101", port, 1)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, exec.CommandContext(t.Context(), python, script))
	// Several addresses at once: their lines come together.
	list := ""
	for _, addr := range webs {
		list += "http://" + addr + "/page?x=1\n"
	}
	resp, err := http.Post("http://"+d.http+"/docindex/urls", "text/plain", strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	counts := map[string]int{}
	for range 2 * len(webs) {
		select {
		case got := <-fetched:
			counts[got]++
		case <-time.After(5 * time.Minute):
			t.Fatalf("fetched %v; want robots.txt and the page of each of %v", counts, webs)
		}
	}
	if counts["/robots.txt"] != len(webs) || counts["/page?x=1"] != len(webs) {
		t.Errorf("fetched %v; want robots.txt and the page of each of %v", counts, webs)
	}
}

// serveOn serves HTTP on n loopback addresses, until the test ends.
func serveOn(t *testing.T, n int, h http.Handler) (addrs []string) {
	t.Helper()
	for i := range n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", i+1))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(h)
		s.Listener.Close()
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// codeBlock returns the first block of a language in a document.
func codeBlock(t *testing.T, file, language string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s has no block of %s", file, language)
	}
	return string(m[1])
}

// daemon is the real binary, running.
type daemon struct{ spiders, http string }

func startDaemon(t *testing.T, settings string) daemon {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "urlserver.toml")
	settings = "log.format = \"json\"\n" + settings +
		"[spider]\nlisten = \"127.0.0.1:0\"\n[http]\nlisten = \"127.0.0.1:0\"\n"
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := start(t, exec.CommandContext(t.Context(), filepath.Join(programs(t), "urlserver"), "serve", file))
	var d daemon
	for d.http == "" || d.spiders == "" {
		line, err := logs.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the daemon's log ended: %v", err)
		}
		var entry struct{ Message, Address string }
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("log line %s: %v", line, err)
		}
		switch entry.Message {
		case "listening for spiders":
			d.spiders = entry.Address
		case "listening for HTTP":
			d.http = entry.Address
		}
	}
	go io.Copy(io.Discard, logs)
	return d
}

// start runs a command until the test ends, and returns what it says on
// standard error.
func start(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", cmd.Path, err))
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return bufio.NewReader(out)
}
