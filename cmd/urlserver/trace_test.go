package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"urlserver/internal/testkit/otlptest"
)

// obey is a spider that ends each document at once, with its status by the end of its URL.
func (d *daemon) obey() {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.spiders)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	go func() {
		for in := bufio.NewScanner(conn); in.Scan(); {
			line := strings.Fields(in.Text())
			fmt.Fprintf(conn, "%s DONE %s\n", line[0], line[3][len(line[3])-3:])
		}
	}()
}

// named is the names of spans in their order.
func named(spans []*otlp.Span) string {
	var names []string
	for _, s := range spans {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// A crawl of a few documents: a trace for each, its spans in order and within each other, and what
// became of it.
func TestTraces(t *testing.T) {
	receiver := otlptest.New(t)
	before := time.Now().Add(-time.Second)
	d := startDaemon(t, settings(t, fmt.Sprintf("[trace]\nendpoint = %q\nsample = 1", receiver.URL)))
	d.obey()
	d.put("http://127.0.0.1/200", "http://127.0.0.1/404", "http://127.0.0.2/?token=hush&200",
		"http://127.0.0.3:81/200")
	traces := receiver.Wait(t, 4)
	hosts := map[any]int{}
	for _, spans := range traces {
		root := spans[0]
		hosts[otlptest.Attribute(root, "server.address")]++
		if root.Name != "document" || otlptest.Attribute(root, "urlserver.outcome") != "done" ||
			otlptest.Attribute(root, "urlserver.doc_id") == "" {
			t.Errorf("the document's span is %v", root)
		}
		if begin := time.Unix(0, int64(root.StartTimeUnixNano)); begin.Before(before) || begin.After(time.Now()) {
			t.Errorf("it began at %v", begin)
		}
		at := root.StartTimeUnixNano
		for _, s := range spans[1:] {
			if s.StartTimeUnixNano != at || s.EndTimeUnixNano < at || s.EndTimeUnixNano > root.EndTimeUnixNano {
				t.Errorf("span %v is not behind the one before it, or not within %v", s, root)
			}
			at = s.EndTimeUnixNano
		}
		if at != root.EndTimeUnixNano {
			t.Errorf("the last span ends at %d, the document at %d", at, root.EndTimeUnixNano)
		}
		// Whether a host waits for its address depends on what the daemon knew when the document
		// came.
		if got := strings.Replace(named(spans), "dns ", "", 1); got != "document index slot spider delivery" {
			t.Errorf("spans are %s", named(spans))
		}
		if strings.Contains(fmt.Sprint(spans), "hush") || strings.Contains(fmt.Sprint(spans), "/200") {
			t.Errorf("a trace tells a URL: %v", spans)
		}
	}
	if hosts["127.0.0.1"] != 2 || hosts["127.0.0.2"] != 1 || hosts["127.0.0.3"] != 1 {
		t.Errorf("hosts are %v", hosts)
	}
	d.shows("/metrics", `urlserver_traces_total{result="sent"} 4`)
}

// Where nothing is sampled nothing is told. The share may change while the daemon runs, the
// receiver may not.
func TestTracesReload(t *testing.T) {
	receiver := otlptest.New(t)
	off := fmt.Sprintf("[trace]\nendpoint = %q\nsample = 0\n", receiver.URL)
	file := settings(t, off)
	d := startDaemon(t, file)
	d.obey()
	d.crawled("http://127.0.0.1/200", 1)
	rewrite(t, file, fmt.Sprintf(base, strings.Replace(off, "= 0", "= 1", 1)))
	if code, told := postReload(t, d); code != http.StatusOK || fmt.Sprint(told["applied"]) != "[trace.sample]" {
		t.Fatalf("%d %v; want trace.sample applied", code, told)
	}
	d.crawled("http://127.0.0.1/404", 2)
	spans := receiver.Wait(t, 1)[0]
	if got := otlptest.Attribute(spans[0], "http.response.status_code"); got != int64(404) {
		t.Errorf("the first trace is of %v; want the document put when all are sampled", got)
	}
	rewrite(t, file, fmt.Sprintf(base, "trace.sample = 1"))
	if code, told := postReload(t, d); code != http.StatusOK ||
		fmt.Sprint(told["refused"]) != "[map[setting:trace.endpoint why:holds only after a restart]]" {
		t.Errorf("%d %v; want trace.endpoint refused", code, told)
	}
	d.stop()
	if n := len(receiver.Traces()); n != 1 {
		t.Errorf("%d traces have come; want 1", n)
	}
}

func (d *daemon) put(urls ...string) {
	d.t.Helper()
	if got := command(d.t, strings.Join(urls, "\n"), "put", "--at", d.at, "-"); got.code != 0 {
		d.t.Fatalf("put: %d %s", got.code, got.errs)
	}
}

// crawled puts a URL and waits until so many are done.
func (d *daemon) crawled(url string, done int) {
	d.t.Helper()
	d.put(url)
	d.shows("/api/status", fmt.Sprintf(`"done":%d,"expired"`, done))
}

// shows waits until an answer has the text in it.
func (d *daemon) shows(path, want string) {
	d.t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, text := d.ask("GET", path, "")
		if strings.Contains(text, want) {
			return
		}
		if time.Now().After(late) {
			d.t.Fatalf("GET %s has no %s: %s", path, want, text)
		}
	}
}
