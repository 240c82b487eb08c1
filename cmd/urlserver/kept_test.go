package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestAddressBackoffOutlivesAKill kills a daemon with an index on disk while an address backs off
// since several of its sites answer 503. The next daemon leaves the address alone for as long
// between two requests, and names those sites.
func TestAddressBackoffOutlivesAKill(t *testing.T) {
	t.Parallel()
	const least = 0.8 // seconds
	names := serveNames(t, func(string) string { return "127.0.0.2" })
	file := write(t, "urlserver.toml", strings.Replace(fmt.Sprintf(sitesBase, names, fmt.Sprintf(
		"robots.enabled = false\ndocindex.kind = \"disk\"\ndocindex.path = %q\n", filepath.Join(t.TempDir(), "db"))),
		"Req_Host_Per_Sec = 200", "Req_Host_Per_Sec = 20", 1))
	child := startCommand(t, "urlserver", "serve", file)
	d := &daemon{t: t, at: "http://" + child.log.until("listening for HTTP")["address"].(string)}
	spiders := child.log.until("listening for spiders")["address"].(string)
	put(t, d, []string{"f0.test", "f1.test", "f2.test"}, "80", 0, 1000)
	sp := &sitesSpider{most: 100, open: map[string]int{}, pages: map[string]int{},
		takes: func(string) time.Duration { return 0 }, status: func(string) string { return "503" }}
	go sp.work(t, spiders)
	backoff := 0.0 // what was before the last doubling is on disk
	levelsOf(t, d, "f0.test", func(_, address *levelView, _ string) bool {
		backoff = address.Backoff / 2
		return backoff >= least && namesAll(address.Why)
	})
	child.signal(syscall.SIGKILL)
	child.wait()

	started := time.Now()
	d = startDaemon(t, file)
	var calm []string
	for i := range 4 {
		calm = append(calm, fmt.Sprintf("calm%d.test", i))
	}
	put(t, d, calm, "80", 0, 1)
	spider := dialSpider(t, d.spiders)
	for n := 1; n <= 2; n++ {
		trans := spider.next()[0]
		if took := time.Since(started).Seconds(); took < float64(n)*backoff {
			t.Errorf("page %d was sent %.2f s after the start; the address backs off, %.2f s", n, took, backoff)
		}
		fmt.Fprintln(spider.conn, trans, "DONE 404")
	}
	levelsOf(t, d, "calm3.test", func(_, address *levelView, _ string) bool {
		if address.Backoff < backoff || !namesAll(address.Why) {
			t.Fatalf("after the restart the address has a backoff of %v s, %q; want %v s", address.Backoff,
				address.Why, backoff)
		}
		return true
	})
}

// TestPauseOutlivesAKill kills a daemon with an index on disk after a site has answered 429 with
// Retry-After. The next daemon does not follow the redirect of another site's robots.txt there, and
// says why.
func TestPauseOutlivesAKill(t *testing.T) {
	to := map[string]string{"from.test": "slow.test", "later.test": "free.test"}
	asked := map[string]*atomic.Int64{"from.test": {}, "slow.test": {}, "later.test": {}, "free.test": {}}
	port := serveWeb(t, "127.0.0.2:0", func(w http.ResponseWriter, r *http.Request) {
		name, at, _ := strings.Cut(r.Host, ":")
		asked[name].Add(1)
		if to[name] != "" {
			http.Redirect(w, r, "http://"+to[name]+":"+at+"/robots.txt", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	names := serveNames(t, func(string) string { return "127.0.0.2" })
	file := write(t, "urlserver.toml", fmt.Sprintf(sitesBase, names, fmt.Sprintf(
		"docindex.kind = \"disk\"\ndocindex.path = %q\n", filepath.Join(t.TempDir(), "db"))))
	child := startCommand(t, "urlserver", "serve", file)
	d := &daemon{t: t, at: "http://" + child.log.until("listening for HTTP")["address"].(string)}
	spider := dialSpider(t, child.log.until("listening for spiders")["address"].(string))
	put(t, d, []string{"slow.test"}, port, 0, 1)
	fmt.Fprintln(spider.conn, spider.next()[0], "DONE 429 600")
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, text := d.ask("GET", "/api/status", ""); strings.Contains(text, `"completed":1`) {
			break // its end is on disk
		} else if time.Now().After(end) {
			t.Fatal(text)
		}
	}
	child.signal(syscall.SIGKILL)
	child.wait()

	before := asked["slow.test"].Load()
	d = startDaemon(t, file)
	dialSpider(t, d.spiders)
	// When a redirect that came later has been followed, that of from.test would have been, too.
	for _, step := range []struct{ put, asked string }{{"from.test", "from.test"}, {"later.test", "free.test"}} {
		put(t, d, []string{step.put}, port, 0, 1)
		for end := time.Now().Add(patience); asked[step.asked].Load() == 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s is not asked", step.asked)
			}
		}
	}
	levelsOf(t, d, "slow.test", func(_, _ *levelView, why string) bool {
		return strings.Contains(why, "asked for that before the daemon was started")
	})
	if n := asked["slow.test"].Load() - before; n > 0 {
		t.Errorf("the site that is to be left alone is asked %d times", n)
	}
}
