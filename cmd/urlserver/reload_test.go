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

	"urlserver/internal/testkit/certstest"
)

// postReload makes a daemon read its settings again.
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

// Every setting that may change while the daemon runs is applied. Each other one is listed by name.
func TestReloadOverHTTP(t *testing.T) {
	file := settings(t, "")
	d := startDaemon(t, file)
	text := fmt.Sprintf(base, "")
	if code, told := postReload(t, d); code != http.StatusOK ||
		fmt.Sprint(told) != "map[applied:[] certificates:[] refused:[]]" {
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
	if want := "[Queue_Len Req_Host_Per_Sec spider.dial leftover.max vhosts.reject_over " +
		"robots.max_crawl_delay log.level]"; code != http.StatusOK || applied != want {
		t.Errorf("%d, applied %s; want %s", code, applied, want)
	}
	if got, want := fmt.Sprint(told["refused"]), "[map[setting:Queue_Count why:holds only after a "+
		"restart] map[setting:http.token why:holds only after a restart]]"; got != want {
		t.Errorf("refused %s; want %s", got, want)
	}
	d.log.until("spider cannot be reached") // it connects to the new one

	rewrite(t, file, "x = 1\nQueue_Len = 0\n")
	code, told = postReload(t, d)
	if code != http.StatusUnprocessableEntity || len(told["mistakes"].([]any)) != 2 ||
		!strings.Contains(fmt.Sprint(told["error"]), "nothing is changed") {
		t.Errorf("a bad file: %d %v", code, told)
	}
	rewrite(t, file, text+"[docindex]\nkind = \"disk\"\n") // the same key twice
	if code, told = postReload(t, d); code != http.StatusUnprocessableEntity {
		t.Errorf("another bad file: %d %v", code, told)
	}
	rewrite(t, file, text)
	if code, told = postReload(t, d); code != http.StatusOK || fmt.Sprint(told["applied"]) != "[]" {
		t.Errorf("the bad files changed something: %d %v", code, told)
	}
}

// Replaced certificates are used after a reload. If they are broken, the former ones stay.
func TestReloadOfCertificates(t *testing.T) {
	first, second := certstest.New(t), certstest.New(t)
	d := startDaemon(t, settings(t, fmt.Sprintf("spider.tls_cert = %q\nspider.tls_key = "+
		"%q\nfrontier.listen = \"127.0.0.1:0\"\nfrontier.tls_cert = %q\nfrontier.tls_key = %q\n",
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
	if code, told := postReload(t, d); code != http.StatusOK ||
		fmt.Sprint(told["certificates"]) != "[spider frontier]" {
		t.Errorf("%d %v; want the certificates of both listeners", code, told)
	}
	for _, addr := range []string{d.spiders, d.frontier} {
		if shown(addr, first) == nil || shown(addr, second) != nil {
			t.Errorf("%s shows another certificate than the new one: %v", addr, shown(addr, second))
		}
	}
	rewrite(t, first.Key, "broken")
	if code, told := postReload(t, d); code != http.StatusOK ||
		!strings.Contains(fmt.Sprint(told["refused"]), "spider.tls_cert") ||
		!strings.Contains(fmt.Sprint(told["refused"]), "frontier.tls_cert") {
		t.Errorf("with a broken key: %d %v", code, told)
	}
	if err := shown(d.spiders, second); err != nil {
		t.Errorf("after a broken key: %v", err)
	}
}

// Rates, limits and rules change again and again while documents are sent. The oracle of the
// simulation checks each line by the settings in force. No document is lost.
func TestReloadUnderLoad(t *testing.T) {
	const stays = "[[rules]]\nnetworks = [\"127.1.0.0/30\"]\nper_sec = 50\ngroup = \"few\"\n"
	for _, c := range []struct {
		name    string
		spiders uint32
		sets    []string
	}{
		{name: "rates and limits", spiders: 1, sets: []string{
			"Req_Host_Per_Sec = 100\nReq_Host_Concurrent = 2\n",
			"Req_Host_Per_Sec = 20\nQueue_Len = 3\nspider.max_in_flight = 7\n",
			"Req_Host_Per_Sec = 70\nReq_Host_Concurrent = 3\nQueue_Len = 8\nspider.max_in_flight = 100\n",
			"Req_Host_Per_Sec = 40\nspider.max_in_flight = 20\n",
		}},
		{name: "rules", spiders: 3, sets: []string{
			"Req_Host_Per_Sec = 50\n" + stays,
			"Req_Host_Per_Sec = 50\n" + stays + "[[rules]]\nhosts = [\"127.1.0.9\", \"127.1.0.10\"]\nblock = true\n",
			"Req_Host_Per_Sec = 50\n" + stays +
				"[[rules]]\nnetworks = [\"127.1.0.16/28\"]\ngroup = \"many\"\nper_sec = 500\n",
			"Req_Host_Per_Sec = 50\n" + stays +
				"[[rules]]\nnetworks = [\"127.1.0.8/29\"]\ngroup = \"many\"\nper_sec = " +
				"200\n[[rules]]\nhosts = [\"*\"]\nper_sec = 20\n",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := startSeen(t, 24, 40, c.sets[0])
			for n := range c.spiders {
				d.spider(n, 10*time.Millisecond)
			}
			reloads, settled := 0, 0
			for ; d.witness.Done() < d.all; reloads++ {
				d.reload(c.sets[reloads%len(c.sets)])
				next := time.Now().Add(200 * time.Millisecond) // if a rule blocks all remaining hosts
				for d.witness.Settled() < 50 && d.witness.Done() < d.all && time.Now().Before(next) {
					time.Sleep(time.Millisecond)
				}
				settled += d.witness.Settled()
				d.fair()
			}
			t.Logf("%d reloads while %d documents were done, %d of them when it was sure by which settings",
				reloads, d.all, settled)
		})
	}
}
