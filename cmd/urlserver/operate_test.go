package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The operator's commands change the state of a running daemon.
func TestOperate(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	at := strings.TrimPrefix(d.at, "http://") // host:port is enough
	command(t, "http://host.test/\n", "put", "--at", at, "-").want(t, 0, `"new":1`, "")

	command(t, "", "pause", "--at", at).want(t, 0, "sending is paused\n", "")
	command(t, "", "status", "--at", at).want(t, 0, "paused", "")
	command(t, "", "resume", "--at", at).want(t, 0, "sending goes on\n", "")
	if got := command(t, "", "status", "--at", at); strings.Contains(got.out, "paused") {
		t.Errorf("after resume: %s", got.out)
	}

	command(t, "", "block", "host.test", "--until", "2090-01-02T03:04:05Z", "--at", at).want(t, 0,
		"host.test is blocked until 2090-01-02T03:04:05Z\n", "")
	command(t, "", "explain", "host.test", "--at", at).want(t, 0, "2090-01-02T03:04:05Z", "")
	command(t, "", "block", "host.test", "--until", "9999-12-31T23:59:59Z", "--at", at).want(t, 0,
		": no block lasts longer than a hundred years\n", "")
	command(t, "", "unblock", "host.test", "--at", at).want(t, 0, "host.test is unblocked\n", "")
	command(t, "", "explain", "host.test", "--at", at).want(t, 0, "\nblocked     no\n", "")
	command(t, "", "block", "host.test", "--at", at).want(t, 0, "until it is unblocked", "")
	command(t, "", "explain", "host.test", "--at", at).want(t, 0, "blocked by the operator until ", "")
	for _, wrong := range [][]string{
		{"--until", "tomorrow"}, {"--until", "2000-01-01T00:00:00Z"}, {"--for", "-1h"},
		{"--for", "1h", "--until", "2090-01-02T03:04:05Z"},
	} {
		command(t, "", append([]string{"block", "host.test", "--at", at}, wrong...)...).want(t, 2, "", wrong[0])
	}

	command(t, "", "delay", "host.test", "90s", "--at", at).want(t, 0,
		"host.test: at least 1m30s between two URLs\n", "")
	command(t, "", "delay", "host.test", "0s", "--at", at).want(t, 0, "host.test: no delay\n", "")
	command(t, "", "put", "http://host.test/", "--at", at).want(t, 1, "",
		"echo http://host.test/ | urlserver put -")
	command(t, "", "delay", "host.test", "1.5s", "--at", at).want(t, 2, "", "whole seconds")
	command(t, "", "reload", "--at", at).want(t, 0, "nothing has changed\n", "")
}

// Without --at, an environment variable has the daemon's address.
func TestAtOfTheEnvironment(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	t.Setenv(atEnv, strings.TrimPrefix(d.at, "http://"))
	command(t, "", "status").want(t, 0, "slots", "")
	command(t, "", "status", "--at", "ftp://x").want(t, 2, "", "an address as in http://127.0.0.1:8080")
}

// Crawls are listed, shown and stopped by their IDs.
func TestCrawlsByID(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	var all []string
	for i := range 3 {
		all = append(all, crawlOf("c1", fmt.Sprintf("http://127.0.0.1/%d", i), ""))
	}
	all = append(all, crawlOf("c2", "http://127.0.0.1/a", ""),
		strings.Replace(crawlOf("c2", "http://127.0.0.1/b", ""), "testapp", "otherapp", 1))
	if got := command(t, "", "crawl", "submit", "--at", d.at, requests(t, all...)); got.code != 0 {
		t.Fatalf("submit: %+v", got)
	}
	command(t, "", "crawl", "list", "c1", "--at", d.at).want(t, 0, "c1     testapp      link    running", "")
	command(t, "", "crawl", "show", "c1", "--json", "--at", d.at).want(t, 0, `"state": "running"`, "")
	command(t, "", "crawl", "show", "c1", "--at", d.at).want(t, 0,
		"state         running\nexpires       never\n", "")
	command(t, "", "crawl", "show", "c3", "--at", d.at).want(t, 1, "", `no crawl "c3"`)
	command(t, "", "crawl", "stop", "c1", "--at", d.at).want(t, 0, `"action":"stop","total_purged":3`, "")
	command(t, "", "crawl", "show", "c1", "--at", d.at).want(t, 0, "state         stopped\n", "")
	command(t, "", "crawl", "stop", "c2", "--at", d.at).want(t, 1, "",
		`2 crawls are called "c2"; say which with --app and --spider`)
	command(t, "", "crawl", "stop", "c2", "--app", "otherapp", "--at", d.at).want(t, 0, `"total_purged":1,`, "")
}

// While sending is paused explain says so, also of a host whose documents are all in the doc index.
func TestExplainPaused(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	command(t, "", "delay", "127.0.0.1", "1h", "--at", d.at).want(t, 0, "at least 1h", "")
	command(t, "http://127.0.0.1/1\nhttp://127.0.0.1/2\n", "put", "--at", d.at, "-").want(t, 0, `"new":2`, "")
	sp := dialSpider(t, d.spiders)
	fmt.Fprintln(sp.conn, sp.next()[0], "DONE 200")
	const wait = "1 of its documents wait in the doc index"
	d.explains("127.0.0.1", wait)
	command(t, "", "pause", "--at", d.at).want(t, 0, "sending is paused\n", "")
	got := command(t, "", "explain", "127.0.0.1", "--at", d.at)
	got.want(t, 0, wait, "")
	got.want(t, 0, "; sending is paused by the operator; urlserver resume ends that\n", "")
}

// TestCrawlsWithStrangeIDs: a crawl is bounded, shown and stopped by its ID, whatever that looks like in a
// path, and no other crawl is.
func TestCrawlsWithStrangeIDs(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	const url = "http://127.0.0.1/"
	command(t, url, "put", "--at", d.at, "-", "--crawl", "c1").want(t, 0, `"new":1`, "")
	show := func(id string, want ...string) {
		t.Helper()
		got := command(t, "", "crawl", "show", id, "--at", d.at)
		for _, w := range want {
			if got.code != 0 || !strings.Contains(strings.Join(strings.Fields(got.out), " ")+" ", w) {
				t.Errorf("show %s: exit status %d, %q, %q; want %q", id, got.code, got.out, got.errs, w)
			}
		}
	}
	for _, id := range []string{"..", ".", "x/../c1", "../crawls/c1", "a/b", "50%", "%2e%2e", "a?b#c", "a b+ü", "...",
		"//", strings.Repeat("l", 1000), "x" + strings.Repeat("ü", 128), "x" + strings.Repeat("ü", 128) + "y"} {
		command(t, url, "put", "--at", d.at, "-", "--crawl", id, "--depth", "7").want(t, 0, `"new":1`, "")
		show(id, " state running ", " depth at most 7 ")
		command(t, "", "crawl", "stop", id, "--at", d.at).want(t, 0, `"stopped":true`, "")
		show(id, " state stopped ")
	}
	show("c1", " state running ", " scope anything ")
	for _, verb := range []string{"show", "stop"} {
		command(t, "", "crawl", verb, "", "--at", d.at).want(t, 2, "", "the crawl ID is empty")
	}
}

// A crawl of put is shown and stopped by its ID, with a scope or without, and is then shown as
// stopped at once.
func TestCrawlsOfPut(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	const urls = "http://127.0.0.1/a\nhttp://127.0.0.1/b\n"
	for _, flags := range [][]string{{"--crawl", "plain"}, {"--crawl", "bounded", "--host", "127.0.0.1"},
		{"--crawl", "testdata"}} { // a folder has that name, too
		command(t, urls, append([]string{"put", "--at", d.at, "-"}, flags...)...).want(t, 0, `"new":2`, "")
		command(t, "", "crawl", "list", "--at", d.at).want(t, 0, "SCHEDULED", "")
		command(t, "", "crawl", "show", flags[1], "--at", d.at).want(t, 0,
			" "+flags[1]+"\nstate ", "") // no line without a value
		command(t, "", "crawl", "show", flags[1], "--at", d.at).want(t, 0, "given out ", "")
		command(t, "", "crawl", "stop", flags[1], "--at", d.at).want(t, 0, `"stopped":true`, "")
		command(t, "", "crawl", "show", flags[1], "--at", d.at).want(t, 0, " stopped\n", "")
		command(t, "", "crawl", "list", flags[1], "--at", d.at).want(t, 0, " stopped ", "")
		command(t, "http://127.0.0.1/c\n", append([]string{"put", "--at", d.at, "-"}, flags[:2]...)...).
			want(t, 0, `"new":0,"known":0,"invalid":0,"dropped":1`, "")
	}
	for _, id := range []string{"plain", "bounded", "testdata"} {
		d.shows("/api/crawls?text="+id, `"dropped":1,`) // lists are some seconds old
		got := strings.Join(strings.Fields(command(t, "", "crawl", "show", id, "--at", d.at).out), " ")
		if !strings.Contains(got, " dropped 1 ") || strings.Contains(got, "purged") {
			t.Errorf("show says %s; want one dropped, and nothing of purged", got)
		}
	}
	command(t, "", "crawl", "show", "plain", "--app", "a", "--at", d.at).want(t, 1, "", `no crawl "plain"`)
}

// A crawl that PUT gave a scope, and whose documents name an application, is one crawl.
func TestCrawlOfPutAndApplication(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	if code, text := d.sets("/api/crawls/both", `{"scope":{"hosts":["127.0.0.1"]}}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	puts := `{"url":"http://127.0.0.1/","crawl":"both","metadata":{"appid":["testapp"],"spiderid":["link"]}}` +
		"\n" + `{"url":"http://127.0.0.1/plain","crawl":"both"}`
	file := write(t, "puts.ndjson", puts)
	command(t, "", "put", "--at", d.at, file).want(t, 0, `"new":2`, "")
	command(t, "", "crawl", "show", "both", "--at", d.at).want(t, 0, "hosts         127.0.0.1\n", "")
	command(t, "", "crawl", "stop", "both", "--at", d.at).want(t, 0, "", "")
	d.shows("/api/crawls/both", `"stopped":true,"scheduled":0,"in_transit":0,"completed":2,`)
}

// TestStopClosesTheID: a crawl all of whose documents are of an application is stopped by its ID.
// After that nothing is taken for the ID, not even what belongs to no application.
func TestStopClosesTheID(t *testing.T) {
	d := startDaemon(t, settings(t, ""))
	file := write(t, "puts.ndjson",
		`{"url":"http://127.0.0.1/","crawl":"one","metadata":{"appid":["testapp"],"spiderid":["link"]}}`)
	command(t, "", "put", "--at", d.at, file).want(t, 0, `"new":1`, "")
	command(t, "", "crawl", "stop", "one", "--at", d.at).want(t, 0, "", "")
	file = write(t, "plain.ndjson", `{"url":"http://127.0.0.1/plain","crawl":"one"}`)
	command(t, "", "put", "--at", d.at, file).want(t, 0, `"new":0`, "")
}

func TestUnknownCommand(t *testing.T) {
	command(t, "", "stauts").want(t, 2, "", `unknown command "stauts"; did you mean status?`)
	command(t, "", "crawl", "lst").want(t, 2, "", `unknown command "lst"; did you mean list?`)
	command(t, "", "xyzzy").want(t, 2, "", `unknown command "xyzzy"; try urlserver --help`)
	if got, want := command(t, "", "--version"), command(t, "", "version"); got.code != 0 ||
		got.out != want.out {
		t.Errorf("--version: %+v; want %q", got, want.out)
	}
}

// Each visible command has an example in its help.
func TestExamples(t *testing.T) {
	for _, cmd := range rootCommand().Commands() {
		for _, cmd := range append(cmd.Commands(), cmd) {
			if name := cmd.Name(); cmd.HasSubCommands() || cmd.Hidden || name == "help" ||
				name == "version" || name == "completion" || name == "demo" {
				continue
			}
			if !strings.Contains(cmd.Example, cmd.CommandPath()) {
				t.Errorf("%s has no example: %q", cmd.CommandPath(), cmd.Example)
			}
		}
	}
}
