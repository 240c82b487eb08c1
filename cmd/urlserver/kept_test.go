package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAddressBackoffOutlivesAKill kills a daemon with an index on disk while an address backs off
// since several of its sites answer 503. The next daemon leaves the address alone for as long
// between two requests, and names those sites.
func TestAddressBackoffOutlivesAKill(t *testing.T) {
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
	backoff := 0.0
	levelsOf(t, d, "f0.test", func(_, address *levelView, _ string) bool {
		backoff = address.Backoff
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
