package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// badScopes are members of a scope with a fault, and what is said of it. Values are JSON, and TOML.
// submitted is what is said of it in Scrapy Cluster's names; "": there it has none.
var badScopes = []struct{ member, value, said, submitted string }{
	{"deny", `["ok", "("]`, "deny[1]: error parsing regexp: missing closing )",
		"deny_regex[1]: error parsing regexp: missing closing )"},
	{"deny", `["(?=a)"]`, "deny[0]: error parsing regexp: ", "deny_regex[0]: error parsing regexp: "},
	{"allow", `["a{2000}"]`, "allow[0]: error parsing regexp: ", "allow_regex[0]: error parsing regexp: "},
	{"allow", `[""]`, "allow[0]: the pattern is empty", "allow_regex[0]: the pattern is empty"},
	{"domains", `["http://a.test/"]`, "domains[0]: ", "allowed_domains[0]: "},
	{"domains", `["*.a.test"]`, "domains[0]: ", "allowed_domains[0]: "},
	{"domains", `["a.test", "b c"]`, "domains[1]: ", "allowed_domains[1]: "},
	{"hosts", `["a.test:80"]`, "hosts[0]: ", ""},
	{"surts", `["http://a.test/"]`, "surts[0]: ", ""},
	{"deny_extensions", `["a/b"]`, "deny_extensions[0]: ", "deny_extensions[0]: "},
	{"max_depth", `-2`, "max_depth: -2 is not from 0 to 65534", "maxdepth: -2 is out of range"},
	{"max_depth", `65535`, "max_depth: 65535 is not from 0 to 65534", "maxdepth: 65535 is out of range"},
	{"max_pages", `-1`, "max_pages: -1 is not from 0 to ", ""},
	{"max_pages_domain", `-1`, "max_pages_domain: -1 is not from 0 to ",
		"domain_max_pages: -1 is out of range"},
	{"until", `"tomorrow"`, "until: ", ""},
	{"deny", `[1]`, "deny[0]: a JSON number is of the wrong type", "deny_regex: is not a list of strings"},
	{"colour", `"red"`, "colour", "colour"},
}

// submittedAs are the names of a scope's members in a request to crawl.
var submittedAs = map[string]string{
	"domains": "allowed_domains", "allow": "allow_regex", "deny": "deny_regex", "max_depth": "maxdepth",
	"max_pages_domain": "domain_max_pages", "deny_extensions": "deny_extensions", "colour": "colour",
}

// Whoever says a bad scope is told what is wrong, and where. It changes nothing.
func TestBadScopes(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "demo.incoming"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	d := startDaemon(t, settings(t, fmt.Sprintf("[monitor]\nbrokers = [%q]\n", cluster.ListenAddrs()[0])))
	const good = `{"scope":{"domains":["a.test"],"max_depth":3}}`
	if code, text := d.sets("/api/crawls/x", good); code != http.StatusOK {
		t.Fatalf("a good scope: %d %s", code, text)
	}
	_, before := d.get("/api/crawls/x")
	var requests []string
	for _, c := range badScopes {
		body := fmt.Sprintf(`{"scope":{%q:%s}}`, c.member, c.value)
		code, text := d.sets("/api/crawls/x", body)
		if code != http.StatusBadRequest || !strings.Contains(text, c.said) {
			t.Errorf("PUT of %s: %d %s; want %s", body, code, text, c.said)
		}
		file := settings(t, fmt.Sprintf("[[crawls]]\nid = \"x\"\n%s = %s\n", c.member, c.value))
		command(t, "", "serve", file).want(t, 1, "", c.said)
		if c.submitted != "" {
			one := crawlOf("x", "http://a.test/", fmt.Sprintf(",%q:%s", submittedAs[c.member], c.value))
			command(t, one, "crawl", "submit", "--at", d.at, "-").want(t, 1, "", c.submitted)
			requests = append(requests, one)
		}
	}
	replies := overKafka(t, cluster.ListenAddrs(), requests)
	for _, c := range badScopes {
		if c.submitted != "" {
			if !strings.Contains(replies[0], c.submitted) {
				t.Errorf("%s over Kafka: %s; want %s", c.value, replies[0], c.submitted)
			}
			replies = replies[1:]
		}
	}
	for flag, said := range map[string]string{
		"--deny=(": "--deny: error parsing regexp: missing closing )", "--domain=http://a/": "--domain: ",
		"--host=a:80": "--host: ", "--depth=-2": "--depth: -2 is not from 0 to",
		"--max-pages=-1": "--max-pages: -1 is not from 0 to",
	} {
		command(t, "http://a.test/\n", "put", "--at", d.at, "--crawl", "x", flag, "-").want(t, 2, "", said)
	}
	if _, after := d.get("/api/crawls/x"); after != before {
		t.Errorf("the crawl is %s; before the bad scopes it was %s", after, before)
	}
	d.shows("/api/status", `"scheduled":0,"in_transit":0,"completed":0}`)
}

// sets makes a PUT request.
func (d *daemon) sets(path, body string) (status int, text string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPut, d.at+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

// overKafka sends requests and returns the replies, one each.
func overKafka(t *testing.T, brokers, requests []string) (replies []string) {
	t.Helper()
	app, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("demo.outbound_testapp"),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.MetadataMaxAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	for _, text := range requests {
		record := &kgo.Record{Topic: "demo.incoming", Value: []byte(text)}
		if err := app.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for len(replies) < len(requests) {
		app.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			replies = append(replies, string(r.Value))
		})
	}
	return replies
}
