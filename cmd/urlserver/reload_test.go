package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"urlserver/certs/certstest"
)

// postReload has a daemon read its settings again.
func postReload(t *testing.T, d *daemon) (status int, told map[string]any) {
	t.Helper()
	resp, text := d.ask("POST", "/api/reload", "")
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		t.Fatalf("answer %q: %v", text, err)
	}
	return resp.StatusCode, told
}

// rewrite changes a settings file.
func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every sort of setting that may change while the daemon runs does, and each other is refused by name.
func TestReloadOverHTTP(t *testing.T) {
	file := settings(t, "")
	d := startDaemon(t, file)
	text := fmt.Sprintf(base, "")
	if code, told := postReload(t, d); code != http.StatusOK || fmt.Sprint(told) != "map[applied:[] certificates:[] refused:[]]" {
		t.Errorf("nothing changed: %d %v", code, told)
	}

	text = strings.Replace(text, "= 1000", "= 500", 1) + `Queue_Len = 7
Queue_Count = 9
spider.dial = ["127.0.0.1:9"]
leftover.max = 5
vhosts.reject_over = 3
robots.max_crawl_delay = "2h"
docindex.kind = "memory"
http.token = "new"
log.level = "debug"
`
	rewrite(t, file, text)
	code, told := postReload(t, d)
	applied := fmt.Sprint(told["applied"])
	if want := "[Queue_Len Req_Host_Per_Sec spider.dial leftover.max vhosts.reject_over robots.max_crawl_delay log.level]"; code != http.StatusOK || applied != want {
		t.Errorf("%d, applied %s; want %s", code, applied, want)
	}
	if got, want := fmt.Sprint(told["refused"]), "[map[setting:Queue_Count why:holds only after a restart] map[setting:http.token why:holds only after a restart]]"; got != want {
		t.Errorf("refused %s; want %s", got, want)
	}
	d.log.until("spider cannot be reached") // the new one is dialled

	rewrite(t, file, "x = 1\nQueue_Len = 0\n")
	code, told = postReload(t, d)
	if code != http.StatusUnprocessableEntity || len(told["mistakes"].([]any)) != 2 || !strings.Contains(fmt.Sprint(told["error"]), "nothing is changed") {
		t.Errorf("a bad file: %d %v", code, told)
	}
	rewrite(t, file, text+"[docindex]\nkind = \"disk\"\n") // twice the same key, whatever this build can do
	if code, told = postReload(t, d); code != http.StatusUnprocessableEntity {
		t.Errorf("another bad file: %d %v", code, told)
	}
	rewrite(t, file, text)
	if code, told = postReload(t, d); code != http.StatusOK || fmt.Sprint(told["applied"]) != "[]" {
		t.Errorf("the bad files changed something: %d %v", code, told)
	}
}

// Certificates that were replaced are shown after a reload; where they are broken, the former stay.
func TestReloadOfCertificates(t *testing.T) {
	first, second := certstest.New(t), certstest.New(t)
	d := startDaemon(t, settings(t, fmt.Sprintf("spider.tls_cert = %q\nspider.tls_key = %q\nfrontier.listen = \"127.0.0.1:0\"\nfrontier.tls_cert = %q\nfrontier.tls_key = %q\n",
		first.Cert, first.Key, first.Cert, first.Key)))
	shown := func(addr string, by certstest.Certificate) error {
		conf := by.Trusted()
		conf.NextProtos = []string{"h2"}
		conn, err := tls.Dial("tcp", addr, conf)
		if err == nil {
			conn.Close()
		}
		return err
	}
	for _, addr := range []string{d.spiders, d.frontier} {
		if err := shown(addr, first); err != nil {
			t.Errorf("before: %v", err)
		}
	}
	second.Write(t, first.Cert, first.Key)
	if code, told := postReload(t, d); code != http.StatusOK || fmt.Sprint(told["certificates"]) != "[spider frontier]" {
		t.Errorf("%d %v; want the certificates of both listeners", code, told)
	}
	for _, addr := range []string{d.spiders, d.frontier} {
		if shown(addr, first) == nil || shown(addr, second) != nil {
			t.Errorf("%s shows another certificate than the new one: %v", addr, shown(addr, second))
		}
	}
	rewrite(t, first.Key, "broken")
	if code, told := postReload(t, d); code != http.StatusOK || !strings.Contains(fmt.Sprint(told["refused"]), "spider.tls_cert") ||
		!strings.Contains(fmt.Sprint(told["refused"]), "frontier.tls_cert") {
		t.Errorf("with a broken key: %d %v", code, told)
	}
	if err := shown(d.spiders, second); err != nil {
		t.Errorf("after a broken key: %v", err)
	}
}

// Settings that change again and again while documents go out lose none, send none twice, and never let
// a host be asked faster than by the fastest of them.
func TestReloadUnderLoad(t *testing.T) {
	const hosts, each, fastest = 50, 40, 100
	var list strings.Builder
	for i := range each {
		for host := range hosts {
			fmt.Fprintf(&list, "http://127.1.0.%d/%d\n", host, i)
		}
	}
	text := fmt.Sprintf(base, fmt.Sprintf("docindex.seeds = [%q]", write(t, "seeds.txt", list.String())))
	with := func(perSec, queue, inFlight int) string {
		return strings.Replace(text, "= 1000", fmt.Sprint("= ", perSec), 1) + fmt.Sprintf("log.level = \"warn\"\nQueue_Len = %d\nspider.max_in_flight = %d\n", queue, inFlight)
	}
	file := write(t, "urlserver.toml", strings.Replace(text, "= 1000", fmt.Sprint("= ", fastest), 1)) // from the first reload on it logs nothing that nobody reads
	d := startDaemon(t, file)
	began := time.Now()
	sp := dialSpider(t, d.spiders)
	w := work(sp.conn, "nobody asks for it")
	reloads := reloadWhile(t, d, w, hosts*each, file, func(n int) string {
		return with([]int{fastest, 20, 70}[n%3], []int{64, 2, 8}[n%3], []int{10000, 7, 100}[n%3])
	})
	if took, least := time.Since(began), (each-1)*time.Second/fastest; took < least {
		t.Errorf("%d documents of each host took %v; at least %v are due", each, took, least)
	}
	onceEach(t, d, w, hosts*each)
	if reloads < 3 {
		t.Errorf("%d reloads", reloads)
	}
	t.Logf("%d reloads while %d documents were done", reloads, hosts*each)
}

// reloadWhile changes the settings again and again until so many documents are done.
func reloadWhile(t *testing.T, d *daemon, w *worker, all int64, file string, text func(n int) string) (reloads int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); w.done.Load() < all; reloads++ {
		rewrite(t, file, text(reloads))
		code, told := postReload(t, d)
		if code != http.StatusOK || fmt.Sprint(told["refused"]) != "[]" {
			t.Fatalf("reload: %d %v", code, told)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d documents are done; %d were sent twice", w.done.Load(), all, w.twice.Load())
		}
	}
	return reloads
}

// onceEach waits until the daemon has noted that so many documents are done, and wants none to have been sent twice.
func onceEach(t *testing.T, d *daemon, w *worker, all int) {
	t.Helper()
	want := fmt.Sprintf("outcomes   %d done", all)
	for deadline := time.Now().Add(time.Minute); ; {
		got := command(t, "", "status", "--at", d.at)
		if strings.Contains(got.out, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("status %q; want %q", got.out, want)
		}
	}
	if n := w.twice.Load(); n > 0 {
		t.Errorf("%d documents were sent twice", n)
	}
}

// Rules that change while documents go out, with blocks and groups that come and go, lose none and send none twice; and
// the hosts of a group that stays in force all the while are never asked faster than as one.
func TestRulesUnderLoad(t *testing.T) {
	const hosts, each, grouped, fastest = 24, 20, 4, 50
	var list strings.Builder
	for i := range each {
		for host := range hosts {
			fmt.Fprintf(&list, "http://127.1.0.%d/%d\n", host, i)
		}
	}
	text := fmt.Sprintf(base, fmt.Sprintf("docindex.seeds = [%q]", write(t, "seeds.txt", list.String()))) + "log.level = \"warn\"\n"
	text = strings.Replace(text, "= 1000", fmt.Sprint("= ", fastest), 1)
	stays := fmt.Sprintf("[[rules]]\nnetworks = [\"127.1.0.0/30\"]\nper_sec = %d\ngroup = \"few\"\n", fastest)
	others := []string{
		"", "[[rules]]\nhosts = [\"127.1.0.9\", \"127.1.0.10\"]\nblock = true\n",
		"[[rules]]\nnetworks = [\"127.1.0.16/28\"]\ngroup = \"many\"\nper_sec = 500\nconcurrent = 3\n",
		"[[rules]]\nnetworks = [\"127.1.0.8/29\"]\ngroup = \"many\"\nper_sec = 200\n[[rules]]\nhosts = [\"*\"]\nper_sec = 20\n",
	}
	file := write(t, "urlserver.toml", strings.Replace(text, "warn", "info", 1)+stays)
	d := startDaemon(t, file)
	began := time.Now()
	w := work(dialSpider(t, d.spiders).conn, "nobody asks for it")
	reloads := reloadWhile(t, d, w, hosts*each, file, func(n int) string { return text + stays + others[n%len(others)] })
	if took, least := time.Since(began), (grouped*each-1)*time.Second/fastest; took < least {
		t.Errorf("%d documents of the group took %v; at least %v are due", grouped*each, took, least)
	}
	onceEach(t, d, w, hosts*each)
	if reloads < len(others) {
		t.Errorf("%d reloads", reloads)
	}
	got := command(t, "", "explain", "--at", d.at, "127.1.0.1")
	if !strings.Contains(got.out, "[[rules]] 1 (127.1.0.0/30)") || !strings.Contains(got.out, "few") {
		t.Errorf("explain names neither rule nor group: %s", got.out)
	}
	t.Logf("%d reloads while %d documents were done", reloads, hosts*each)
}
