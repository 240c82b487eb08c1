package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/docindex/memory"
)

// A document's whole way: put, sent, done, told of, explained.
func TestServe(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	sp := dialSpider(t, d.spiders)
	command(t, "http://127.0.0.1/a\nhttp://127.0.0.2/b\n", "put", "--at", d.at, "-").
		want(t, 0, `{"new":2,"known":0,"invalid":0}`+"\n", "put: 2 lines sent")
	first, second := sp.next(), sp.next()
	if urls := []string{first[3], second[3]}; !slices.Contains(urls, "http://127.0.0.1/a") ||
		!slices.Contains(urls, "http://127.0.0.2/b") {
		t.Errorf("sent are %v", urls)
	}
	got := command(t, "", "status", "--at", d.at)
	got.want(t, 0, "held       2, 0 in leftover, 2 in flight", "")
	got.want(t, 0, sp.conn.LocalAddr().String()+": 2 in flight, 2 sent, 0 done", "")
	sp.done(first[0])
	command(t, "http://127.0.0.3/c", "put", "--at", d.at, "-").want(t, 0, `{"new":1,`, "")
	third := sp.next()
	d.shows("/api/status", `"done":1,"expired"`) // whoever reads the DONE may be later than the third
	sp.done(second[0])
	sp.done(third[0])
	sp.conn.Close()
	d.log.until("spider gone")
	if code, log := d.stop(); code != 0 || !strings.Contains(log, `"message":"stopped"`) {
		t.Errorf("exit status %d, log %s", code, log)
	}
}

// What was done is sent again.
func TestServeRefetches(t *testing.T) {
	t.Parallel() // it mostly waits
	d := startDaemon(t,
		settings(t, "[docindex]\nmax_retry = \"1s\"\nrefetch_after = { ok = \"1s\", error = \"8760h\" }"))
	sp := dialSpider(t, d.spiders)
	command(t, "http://127.0.0.1/a\n", "put", "--at", d.at, "-").want(t, 0,
		`{"new":1,"known":0,"invalid":0}`, "")
	first := sp.next()
	for range 2 {
		command(t, "", "status", "--at", d.at).want(t, 0, "held       1, 0 in leftover, 1 in flight", "")
		ended := time.Now()
		sp.done(first[0])
		again := sp.next()
		if gap := time.Since(ended); again[1] != first[1] || again[3] != first[3] || gap < time.Second {
			t.Errorf("after %v %q is sent again; want %q after a second at least", gap, again, first)
		}
		first = again
	}
	sp.done(first[0])
	sp.conn.Close()
}

func TestStatusAsJSON(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	got := command(t, "", "status", "--json", "--at", d.at)
	var s struct {
		Slots struct{ Total int }
		Index map[string]any
	}
	if err := json.Unmarshal([]byte(got.out), &s); err != nil || s.Slots.Total != 4096 ||
		s.Index["last_error"] != "" {
		t.Errorf("output %q: %v", got.out, err)
	}
}

func TestExplain(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	sp := dialSpider(t, d.spiders)
	command(t, "", "explain", "--at", d.at, "127.0.0.1").want(t, 1, "", "127.0.0.1 is not known")
	command(t, "", "explain", "--at", d.at, "a/b").want(t, 1, "", "400 Bad Request")
	command(t, "http://127.0.0.1/a\n", "put", "--at", d.at, "-").want(t, 0, `{"new":1,`, "")
	sp.next()
	got := command(t, "", "explain", "--at", d.at, "127.0.0.1")
	for _, want := range []string{"127.0.0.1:  all its documents are at spiders (1)\n",
		"group       127.0.0.1\n",
		"documents   0 queued, 1 in flight\n", "gap         0.001 s\n",
		"blocked     no\n", "robots.txt  disabled, fetched never"} {
		got.want(t, 0, want, "")
	}
	got = command(t, "", "explain", "--json", "--at", d.at, "127.0.0.1")
	var x struct {
		Host, Why string
		InFlight  int `json:"in_flight"`
	}
	if err := json.Unmarshal([]byte(got.out), &x); err != nil || x.Host != "127.0.0.1" || x.InFlight != 1 ||
		x.Why == "" {
		t.Errorf("output %q: %v", got.out, err)
	}
}

// A host that a rule is for is told of with the rule and its group.
func TestExplainNamesTheRule(t *testing.T) {
	d := startDaemon(t, settings(t, "[[rules]]\nnetworks = [\"127.1.0.0/30\"]\nper_sec = 50\ngroup = \"few\"\n"))
	command(t, "http://127.1.0.1/a\n", "put", "--at", d.at, "-").want(t, 0, `{"new":1,`, "")
	dialSpider(t, d.spiders).next()
	got := command(t, "", "explain", "--at", d.at, "127.1.0.1")
	got.want(t, 0, "group       few\n", "")
	got.want(t, 0, "[[rules]] 1 (127.1.0.0/30)\n", "")
}

// explains waits until explain says something about a host.
func (d *daemon) explains(host, want string) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		got := command(d.t, "", "explain", "--at", d.at, host)
		if strings.Contains(got.out, want) {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("explain %s: %s%s; want %s", host, got.out, got.errs, want)
		}
	}
}

// A host of which the embedded index has given all to others is told of, though the daemon holds
// nothing.
func TestExplainOfALentHost(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	command(t, "", "explain", "--at", d.at, "127.0.0.1").want(t, 1, "", "127.0.0.1 is not known")
	for i := range 256 { // the first ones the daemon may have taken itself, before it was asked for any
		host := fmt.Sprintf("127.0.1.%d", i)
		command(t, "http://"+host+"/a\n", "put", "--at", d.at, "-").want(t, 0, `{"new":1,`, "")
		resp, err := http.Post(d.at+"/docindex/candidates", "application/json", strings.NewReader(`{"max": 1000}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), host+"/") {
			got := command(t, "", "explain", "--at", d.at, host)
			got.want(t, 0, host+":", "")
			got.want(t, 0, "1 of its documents are out, but not here: 1 with daemons that took them as "+
				"candidates over HTTP", "")
			got.want(t, 0, "documents   0 queued, 0 in flight\n", "")
			return
		}
	}
	t.Error("the daemon takes all itself, which has no spider, though it is asked for candidates")
}

func TestToken(t *testing.T) {
	d := startDaemon(t, settings(t, `http.token = "secret"`))
	command(t, "", "status", "--at", d.at).want(t, 1, "", "401 Unauthorized")
	command(t, "", "status", "--at", d.at).want(t, 1, "", "--token or URLSERVER_TOKEN")
	command(t, "", "status", "--at", d.at, "--token", "wrong").want(t, 1, "", "401 Unauthorized")
	command(t, "", "status", "--at", d.at, "--token", "secret").want(t, 0, "slots", "")
	t.Setenv(tokenEnv, "secret")
	command(t, "", "status", "--at", d.at).want(t, 0, "slots", "")
	command(t, "http://127.0.0.1/\n", "put", "--at", d.at, "-").want(t, 0, `"new":1`, "")
	command(t, "", "status", "--at", d.at, "--token", "wrong").want(t, 1, "", "401 Unauthorized")
	if help := command(t, "", "status", "--help"); strings.Contains(help.out, "secret") {
		t.Errorf("help shows the token: %s", help.out)
	}
}

func TestSeeds(t *testing.T) {
	one := write(t, "one.txt", "\ufeffhttp://127.0.0.1/a\r\n\r\n  http://127.0.0.1/b  \nnope\n"+
		strings.Repeat("x", 2*maxSeedLine)+"\nhttp://127.0.0.1/a")
	two := write(t, "two.txt", strings.Repeat("http://127.0.0.1/b\n", seedBatch)+"http://127.0.0.1/c\n")
	d := startDaemon(t, settings(t, fmt.Sprintf("docindex.seeds = [%q, %q]", one, two)))
	command(t, "http://127.0.0.1/a\nhttp://127.0.0.1/b\nhttp://127.0.0.1/c\nhttp://127.0.0.1/d\n", "put",
		"--at", d.at, "-").
		want(t, 0, `{"new":1,"known":3,"invalid":0}`, "")
}

func TestSeedsAreLogged(t *testing.T) {
	seeds := write(t, "seeds.txt", "http://127.0.0.1/a\nnope\n"+strings.Repeat("y", 2*maxSeedLine))
	// The seeds are in before the missing file stops the start.
	got := command(t, "", "serve", settings(t, fmt.Sprintf("docindex.seeds = [%q, %q]", seeds, seeds+"x")))
	got.want(t, 1, "", `"new":1,"known":0,"invalid":2`)
	got.want(t, 1, "", "line 2: ")
	got.want(t, 1, "", "line 3: longer than 65536 bytes")
	got.want(t, 1, "", "urlserver: docindex.seeds: open "+seeds+"x: no such file")
}

func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ name, more, errs string }{
		{name: "unknown key", more: "x = 1", errs: "settings refused:\n"},
		{name: "frontier of an index elsewhere",
			more: "frontier.listen = \"127.0.0.1:0\"\n[docindex]\nkind = \"http\"\nurl = " +
				"\"http://127.0.0.1:1/\"", errs: "needs an embedded index"},
		{name: "frontier's certificate",
			more: "frontier.listen = \"127.0.0.1:0\"\nfrontier.tls_cert = " +
				"\"/nonexistent\"\nfrontier.tls_key = \"x\"", errs: "frontier.tls_cert /nonexistent"},
		{name: "a disk that is none", more: "docindex.kind = \"disk\"\ndocindex.path = \"/dev/null/x\"",
			errs: "/dev/null/x cannot be opened as an index"},
		{name: "Kafka with an index elsewhere",
			more: "monitor.brokers = [\"127.0.0.1:1\"]\n[docindex]\nkind = \"http\"\nurl = " +
				"\"http://127.0.0.1:1/\"", errs: "monitor.brokers: "},
		{name: "Kafka's certificate",
			more: "[monitor]\nbrokers = [\"127.0.0.1:1\"]\nsecurity_protocol = \"SSL\"\ntls_ca = " +
				"\"/nonexistent\"", errs: "monitor.tls_ca"},
		{name: "seeds of an index elsewhere",
			more: "docindex.kind = \"http\"\ndocindex.url = \"http://127.0.0.1:1/\"\ndocindex.seeds = " +
				"[\"x\"]", errs: "docindex.seeds"},
		{name: "refetching from an index elsewhere",
			more: "[docindex]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\nrefetch_after = { ok = \"1h\" }",
			errs: "docindex.refetch_after is of an embedded index"},
		{name: "missing seeds", more: `docindex.seeds = ["/nonexistent"]`,
			errs: "docindex.seeds: open /nonexistent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			command(t, "", "serve", settings(t, c.more)).want(t, 1, "", c.errs)
		})
	}
	for _, key := range []string{"spider.listen", "http.listen"} {
		off := "spider.listen = \"\"\nhttp.listen = \"\"\n"
		file := write(t, "taken.toml", strings.Replace(off, key+` = ""`,
			fmt.Sprintf("%s = %q", key, taken.Addr()), 1))
		command(t, "", "serve", file).want(t, 1, "", key+": listen tcp "+taken.Addr().String())
	}
	command(t, "", "serve", "/nonexistent").want(t, 1, "", "no such file")
}

// The doc index may be elsewhere: here, in another daemon.
func TestServeWithRemoteIndex(t *testing.T) {
	store := memory.New()
	var puts docindex.Puts
	if err := puts.Add(docindex.Put{URL: []byte("http://127.0.0.1/far")}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), &puts); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserver.Handler(store).ServeHTTP(w, r)
		if strings.HasSuffix(r.URL.Path, "/outcomes") {
			told <- r.Header.Get("Authorization")
		}
	}))
	defer far.Close()
	d := startDaemon(t,
		settings(t, fmt.Sprintf("[docindex]\nkind = \"http\"\nurl = %q\ntoken = \"far-token\"", far.URL+"/docindex")))
	sp := dialSpider(t, d.spiders)
	sp.done(sp.next()[0])
	if got := <-told; got != "Bearer far-token" {
		t.Errorf("the index got Authorization %q", got)
	}
	if n := store.Stats().Outcomes[docindex.Done]; n != 1 {
		t.Errorf("the index knows of %d done; want 1", n)
	}
	command(t, "http://127.0.0.1/\n", "put", "--at", d.at, "-").want(t, 1,
		`{"new":0,"known":0,"invalid":0}`, "docindex.kind")
	if code, log := d.stop(); code != 0 {
		t.Errorf("exit status %d, log %s", code, log)
	}
}
