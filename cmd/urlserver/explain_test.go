package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// All times of an explanation have one format. If the server has no robots.txt, the explanation
// says so.
func TestExplainTimesAndRobots(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/hosts/a.test", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"host":"a.test","why":"not before 2026-11-23T06:39:19Z: the gap",
"last_send":"2026-11-23T06:39:18.299Z","next_send":"2090-11-23T06:39:18.799Z","gap_s":0.5,
"blocked_until":"2026-11-23T07:00:00.001Z",
"site":{"name":"a.test","gap_s":0,"open":0,"most_open":0,"next_send":null},
"fetched":{"5xx":1,"last_error":"status 500","last_error_at":"2026-11-23T06:39:17.5Z"},
"robots":{"state":"unavailable","fetched_at":"2026-11-23T06:39:16.796Z","crawl_delay_s":0}}`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	shown := command(t, "", "explain", "a.test", "--at", s.URL)
	for _, want := range []string{
		"site        not known\n", "last send   2026-11-23T06:39:18Z\n", "next send   2090-11-23T06:39:19Z\n",
		"; last failure: status 500, at 2026-11-23T06:39:17Z\n", "blocked     until 2026-11-23T07:00:01Z\n",
		"robots.txt  the server has none, all is allowed, fetched 2026-11-23T06:39:16Z, Crawl-delay 0 s\n",
	} {
		shown.want(t, 0, want, "")
	}
}

// The explanation of a host in a refused network names the setting that allows it.
func TestExplainRefusedNetwork(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	dialSpider(t, d.spiders)
	command(t, "http://10.0.0.1/\n", "put", "--at", d.at, "-").want(t, 0, `"new":1`, "")
	d.shows("/api/status", `"dns":1`)
	command(t, "", "explain", "10.0.0.1", "--at", d.at).want(t, 0, "resolver.allow_networks", "")
}

// The explanation of a host whose name does not exist says so, and keeps the operator's delay in
// view while nothing waits.
func TestExplainNoSuchHost(t *testing.T) {
	servers := serveNames(t, func(string) string { return "" })
	text := strings.Replace(fmt.Sprintf(base, ""), "127.0.0.1:9", servers, 1)
	d := startDaemon(t, write(t, "urlserver.toml", text))
	dialSpider(t, d.spiders)
	command(t, "http://nowhere.test/\n", "put", "--at", d.at, "-").want(t, 0, `"new":1`, "")
	d.shows("/api/status", `"dns":1`)
	command(t, "", "delay", "nowhere.test", "90s", "--at", d.at).want(t, 0, "", "")
	shown := command(t, "", "explain", "nowhere.test", "--at", d.at)
	for _, want := range []string{
		"last failure: the name does not exist, or has no address, at ",
		"none: it had no address to ask when it was looked up\n",
		"the operator's delay of 1m30s will hold for what comes",
	} {
		shown.want(t, 0, want, "")
	}
}

func TestReloadedPrint(t *testing.T) {
	var out strings.Builder
	r := reloaded{Applied: []string{"Queue_Len", "log.level"}, Certificates: []string{"spider"}}
	r.Refused = append(r.Refused, struct{ Setting, Why string }{"Queue_Count", afterRestart})
	err := r.print(&out)
	if want := "applied: Queue_Len\napplied: log.level\ncertificates read again: spider\n" +
		"not applied: Queue_Count: holds only after a restart\n"; out.String() != want {
		t.Errorf("%q; want %q", out.String(), want)
	}
	if want := "1 of 3 changed settings not applied; the former values go on"; err == nil || err.Error() != want {
		t.Errorf("%v; want %q", err, want)
	}
}
