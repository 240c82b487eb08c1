package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// requests writes JSON requests to a file, one per line.
func requests(t *testing.T, texts ...string) string {
	t.Helper()
	return write(t, "requests.ndjson", strings.Join(texts, "\n"))
}

const (
	testInfo = `{"action":"info","appid":"testapp","uuid":"u1","spiderid":"link","crawlid":%q}`
	testStop = `{"action":"stop","appid":"testapp","uuid":"u2","spiderid":"link","crawlid":%q}`
)

func crawlOf(crawl, url string, more string) string {
	return fmt.Sprintf(`{"url":%q,"appid":"testapp","crawlid":%q%s}`, url, crawl, more)
}

// get asks the daemon for a page.
func (d *daemon) get(path string) (status int, body string) {
	d.t.Helper()
	resp, err := http.Get(d.at + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A crawl's whole life: submitted, counted, partly fetched, stopped; another is completed.
func TestCrawl(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	var all []string
	for i := range 20 {
		all = append(all, crawlOf("c1", fmt.Sprintf("http://127.0.0.1/%d", i), `,"priority":7`))
	}
	got := command(t, "", "crawl", "submit", "--at", d.at, requests(t, all...))
	if got.code != 0 || strings.Count(got.out, `"status":"new"`) != 20 {
		t.Fatalf("submit: %+v", got)
	}
	info := fmt.Sprintf(testInfo, "c1")
	command(t, info, "crawl", "info", "--at", d.at, "-").want(t, 0,
		`"total_pending":20,"total_domains":1,"low_priority":7,"high_priority":7,`, "")
	command(t, fmt.Sprintf(testStop, "c1"), "crawl", "stop", "--at", d.at, "-").want(t, 0,
		`{"action":"stop","total_purged":20,"uuid":"u2"`, "")
	command(t, info, "crawl", "info", "--at", d.at, "-").want(t, 0,
		`"total_pending":0,"total_domains":0,"domains":{}`, "")
	command(t, all[0]+all[1], "crawl", "submit", "--at", d.at, "-").want(t, 0, `"status":"dropped"`,
		"crawl c1 was stopped or has expired: 2 URLs dropped\n")
	if _, text := d.get("/metrics"); !strings.Contains(text,
		`urlserver_crawl_documents{appid="testapp",crawlid="c1",spiderid="link",state="purged"} 20`) ||
		!strings.Contains(text,
			`urlserver_crawl_documents{appid="testapp",crawlid="c1",spiderid="link",state="dropped"} 2`) ||
		!strings.Contains(text, `urlserver_monitor_messages_total{what="stop"} 1`) {
		t.Errorf("metrics lack the crawl:\n%s", text)
	}
}

// When a crawl is stopped, only documents at a spider are fetched. Other crawls continue.
func TestStopWhileSpidersWork(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	sp := dialSpider(t, d.spiders)
	command(t, crawlOf("c1", "http://127.0.0.1/first", ""), "crawl", "submit", "--at", d.at, "-").want(t, 0,
		"new", "")
	first := sp.next()
	var more []string
	for i := range 300 { // Req_Host_Concurrent keeps most of them waiting
		more = append(more, crawlOf("c1", fmt.Sprintf("http://127.0.0.1/%d", i), `,"priority":9`))
	}
	more = append(more, crawlOf("c2", "http://127.0.0.1/other", `,"useragent":"x","attrs":{"a":1}`))
	command(t, strings.Join(more, "\n"), "crawl", "submit", "--at", d.at, "-").want(t, 0, "new", "")
	app := `{"action":"info","appid":"testapp","uuid":"u1","spiderid":"link"}`
	command(t, app, "crawl", "info", "--at", d.at, "-").want(t, 0,
		`"total_pending":301,"total_domains":1,"total_crawlids":2`, "")
	command(t, fmt.Sprintf(testStop, "c1"), "crawl", "stop", "--at", d.at, "-").want(t, 0,
		`"total_purged":300`, "")
	sp.done(first[0])
	second := sp.next()
	if second[3] != "http://127.0.0.1/other" {
		t.Errorf("sent is %v; want the other crawl's", second)
	}
	status, text := d.get("/docindex/urls/" + second[1])
	want := `{"doc_id":"` + second[1] +
		`","url":"http://127.0.0.1/other","state":"in transit","due":null,"outcome":null,"status":null,"at":null,` +
		`"priority":1,"crawl":"c2","key":"127.0.0.1",` +
		`"metadata":{"appid":["testapp"],"attrs":["{\"a\":1}"],"spiderid":["link"],"useragent":["x"]}}` + "\n"
	if status != 200 || text != want {
		t.Errorf("document is %d %s; want %s", status, text, want)
	}
	if status, text := d.get("/docindex/urls/nobody"); status != 404 ||
		!strings.Contains(text, "no such document") {
		t.Errorf("unknown document is %d %s", status, text)
	}
}

func TestCrawlRefusals(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	got := command(t, "", "crawl", "submit", "--at", d.at,
		requests(t, crawlOf("c", "http://127.0.0.1/", `,"priority":101`),
			crawlOf("c", "http://127.0.0.1/", ""), fmt.Sprintf(testStop, "c")))
	got.want(t, 1, `"status":"new"`, "request 1 crawl: priority: 101 is out of range")
	got.want(t, 1, "", "request 3 is no request to submit\nurlserver: 2 requests refused")
	command(t, "{", "crawl", "info", "--at", d.at, "-").want(t, 1, "", "request 1")
	command(t, crawlOf("c", "http://127.0.0.1/", `,"priority":101`), "crawl", "submit", "--at", d.at, "-").
		want(t, 1, "", "urlserver: 1 request refused\n")
	command(t, "http://127.0.0.1/", "crawl", "submit", "--at", d.at, "-").want(t, 1, "",
		"request 1 is not JSON: invalid character 'h' looking for beginning of value; urlserver schema "+
			"prints what requests look like; urlserver put takes plain URLs")
	command(t, "\ufeff"+crawlOf("mark", "http://127.0.0.1/mark", ""), "crawl", "submit", "--at", d.at, "-").
		want(t, 0, `"status":"new"`, "") // a byte order mark is passed over
	command(t, "", "crawl").want(t, 2, "", "no command")
	command(t, "", "crawl", "stop").want(t, 2, "", "usage: urlserver crawl stop ID|FILE")
	resp, err := http.Post(d.at+"/api/actions", "application/json",
		strings.NewReader(strings.Repeat("x", 10<<20)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := bufio.NewReader(resp.Body).ReadString('\n')
	if resp.StatusCode != 400 || !strings.HasPrefix(text, `{"error":"message of 131073 bytes`) {
		t.Errorf("a body of 10 MB: %s %s", resp.Status, text)
	}
}

// Notices report crawls that have expired or are completed.
func TestCrawlNotices(t *testing.T) {
	t.Parallel() // it mostly waits
	d := startDaemon(t, settings(t, `monitor.completed_after = "1s"`))
	sp := dialSpider(t, d.spiders)
	command(t, crawlOf("done", "http://127.0.0.1/a", ""), "crawl", "submit", "--at", d.at, "-").want(t, 0,
		"new", "")
	sp.done(sp.next()[0])
	notice := func() (n map[string]any) {
		t.Helper()
		text, err := json.Marshal(d.log.until("crawl control")["notice"])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := notice(); n["action"] != "completed" || n["crawlid"] != "done" || n["total_done"] != 1.0 {
		t.Errorf("notice is %v", n)
	}
	sp.conn.Close()
	d.log.until("spider gone")
	command(t, crawlOf("old", "http://127.0.0.1/b", fmt.Sprintf(`,"expires":%d`, time.Now().Unix()+1)),
		"crawl", "submit", "--at", d.at, "-").want(t, 0, "new", "")
	if n := notice(); n["action"] != "expired" || n["crawlid"] != "old" || n["total_expired"] != 1.0 {
		t.Errorf("notice is %v", n)
	}
}

// The same over Kafka, with the daemon and its spider.
func TestCrawlOverKafka(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1),
		kfake.SeedTopics(1, "demo.incoming", "demo.inbound_actions"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	d := startDaemon(t, settings(t, fmt.Sprintf("[monitor]\nbrokers = [%q]\ncompleted_after = \"1s\"",
		cluster.ListenAddrs()[0])))
	sp := dialSpider(t, d.spiders)
	app, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.ConsumeTopics("demo.outbound_testapp"), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.MetadataMaxAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	send := func(topic, text string) {
		t.Helper()
		if err := app.ProduceSync(t.Context(),
			&kgo.Record{Topic: topic, Value: []byte(text)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var replies []string
	reply := func() string {
		t.Helper()
		for len(replies) == 0 {
			app.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
				replies = append(replies, string(r.Value))
			})
		}
		first := replies[0]
		replies = replies[1:]
		return first
	}
	send("demo.incoming", crawlOf("c1", "http://127.0.0.1/a", ""))
	first := sp.next()
	send("demo.incoming", crawlOf("c1", "http://127.0.0.1/b", `,"priority":3`))
	for uuid := 0; ; uuid++ { // requests of two topics arrive in any order
		send("demo.inbound_actions",
			fmt.Sprintf(`{"action":"info","appid":"testapp","uuid":"u%d","spiderid":"link","crawlid":"c1"}`, uuid))
		if got := reply(); strings.Contains(got,
			`"total_pending":1,"total_domains":1,"low_priority":3,"high_priority":3,`) {
			break
		} else if !strings.Contains(got, `"total_pending":0,`) {
			t.Fatalf("reply is %s", got)
		}
	}
	send("demo.inbound_actions", fmt.Sprintf(testStop, "c1"))
	if got := reply(); !strings.HasPrefix(got, `{"action":"stop","total_purged":1,`) {
		t.Errorf("reply is %s", got)
	}
	send("demo.incoming", crawlOf("c2", "http://127.0.0.1/c", ""))
	sp.done(first[0])
	if got := sp.next(); got[3] != "http://127.0.0.1/c" {
		t.Errorf("sent is %v", got)
	} else {
		sp.done(got[0])
	}
	if got := reply(); !strings.HasPrefix(got,
		`{"action":"completed","total_done":1,"spiderid":"link","appid":"testapp","crawlid":"c2"`) {
		t.Errorf("notice is %s", got)
	}
	if code, log := d.stop(); code != 0 {
		t.Errorf("exit status %d, log %s", code, log)
	}
}
