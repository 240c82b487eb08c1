package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestShow follows a URL through a running daemon.
func TestShow(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	show := func(args ...string) result { return command(t, "", append([]string{"show", "--at", d.at}, args...)...) }
	const u = "http://127.0.0.1/a"
	show(u).want(t, 1, "",
		`404 Not Found: url "`+u+
			`" of crawl "DEFAULT": no such document; put it, or name the crawl and the key that it was put with`)
	show("ftp://a/").want(t, 1, "", "400 Bad Request")
	command(t, `{"url":"`+u+`"}`+"\n"+`{"url":"http://127.0.0.1/b","crawl":"news"}`, "put", "--at", d.at,
		"-").want(t, 0, `"new":2`, "")
	got := show("HTTP://127.0.0.1:80/x/../a#part")
	for _, want := range []string{u + "\n", "crawl         DEFAULT\n", "doc_id        1\n", "last outcome  none\n",
		"next step     urlserver explain 127.0.0.1 "} {
		got.want(t, 0, want, "")
	}
	show("http://127.0.0.1/b").want(t, 1, "", `of crawl "DEFAULT": no such document`)
	show("--crawl", "news", "http://127.0.0.1/b").want(t, 0, "crawl         news\n", "")
	show("--crawl", "news", "--key", "k", "http://127.0.0.1/b").want(t, 1, "", `of crawl "news" with key "k"`)

	command(t, `{"url":"http://127.0.0.1/c","crawl":"news","unique":"u","depth":2,"payload":"aGk="}`, "put", "--at", d.at,
		"-").want(t, 0, `"new":1`, "")
	show("--crawl", "news", "http://127.0.0.1/c").want(t, 0,
		"known by      \"u\"\ndepth         2\npayload       2 bytes\nstate", "")

	sp := dialSpider(t, d.spiders)
	first := sp.next()
	for first[3] != u {
		sp.done(first[0])
		first = sp.next()
	}
	show(u).want(t, 0, "state         in transit\ndue           never, as it is in transit\nlast outcome  none\n", "")
	fmt.Fprintf(sp.conn, "%s DONE 404\n", first[0])
	d.shows("/docindex/urls?url="+u, `"state":"completed"`)
	got = show(u)
	got.want(t, 0, "state         completed\ndue           never, as it is completed\n"+
		"last outcome  done, status 404, at 20", "")
	got.want(t, 0, "next step     none; docindex.refetch_after", "")
	var x struct {
		Outcome string
		Status  int
		At      time.Time
	}
	raw := show("--json", u)
	if err := json.Unmarshal([]byte(raw.out), &x); err != nil || x.Outcome != "done" || x.Status != 404 ||
		x.At.IsZero() {
		t.Errorf("--json prints %q: %v", raw.out, err)
	}
	sp.conn.Close()
}

// TestShowPhrases prints answers at one moment.
func TestShowPhrases(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	at := now.Add(-90 * time.Minute)
	later, no, ok := now.Add(36*time.Hour), 0, 200
	base := shown{URL: "https://a.test:8443/x", State: "completed", Crawl: "c"}
	for _, c := range []struct {
		change func(d *shown)
		want   []string
	}{
		{func(d *shown) { d.State, d.Due = "scheduled", &at },
			[]string{"due           now, since 2030-01-02T01:34:05Z\n", "last outcome  none\n",
				"why it is not sent yet\n"}},
		{func(d *shown) { d.State, d.Due, d.At, d.Outcome, d.Status = "scheduled", &later, &at, "done", &ok },
			[]string{"due           2030-01-03T15:04:05Z, in 36h0m0s\n",
				"last outcome  done, status 200, at 2030-01-02T01:34:05Z, 1h30m0s ago\n",
				"next step     none; it waits"}},
		{func(d *shown) { d.At, d.Outcome, d.Status = &at, "done", &no }, []string{"done, no answer, at "}},
		{func(d *shown) { d.At, d.Outcome = &at, "done" }, []string{"done, status not known, at "}},
		{func(d *shown) { d.Outcome = "timeout" }, []string{"last outcome  timeout, time not known\n", "spiders' log"}},
		{func(d *shown) { d.At = &at }, []string{"last outcome  reported by a URL Frontier client, at 2030-"}},
		{func(d *shown) { d.Outcome, d.Status = "robots", &no }, []string{"last outcome  robots, time",
			"curl -s https://a.test:8443/robots.txt | urlserver robots --agent AGENT - https://a.test:8443/x "}},
		{func(d *shown) { d.Outcome, d.URL = "robots", "https://a.test/x?a=1&b='c'" },
			[]string{`urlserver robots --agent AGENT - 'https://a.test/x?a=1&b='\''c'\''' says`}},
		{func(d *shown) { d.Outcome = "invalid" }, []string{"resolver.allow_ports", "at most 8053 bytes"}},
		{func(d *shown) { d.Outcome = "dns" }, []string{"whether a.test has an address"}},
		{func(d *shown) { d.Outcome = "expired" }, []string{"urlserver crawl show c shows its crawl\n"}},
	} {
		d := base
		c.change(&d)
		var out strings.Builder
		if err := d.print(&out, now); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%+v prints\n%s; want %q in it", d, out.String(), want)
			}
		}
	}
}
