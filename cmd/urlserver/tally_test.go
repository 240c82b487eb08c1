package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"urlserver/internal/testkit/redistest"
)

// tallied waits until Redis counts what is wanted, by crawl.
func tallied(t *testing.T, redis *redistest.Server, want map[string]string) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("chg_exec of %v", want), func() bool {
		words := strings.Fields(redis.CLI("HGETALL", "chg_exec{chg}"))
		for i := 0; i+1 < len(words); i += 2 {
			if want[words[i]] != words[i+1] {
				return false
			}
		}
		return len(words) == 2*len(want)
	})
	if len(want) == 0 {
		if total := strings.TrimSpace(redis.CLI("GET", "chg_total{chg}")); total != "0" {
			t.Errorf("chg_total = %s; want 0", total)
		}
		redistest.Eventually(t, "the end of all keys that count", func() bool {
			return strings.TrimSpace(redis.CLI("EVAL",
				`return #redis.call('KEYS', 'chg_crawls*') + #redis.call('KEYS', 'chg_parts*') + #redis.call('KEYS', 'chg_held*')`, "0")) == "0"
		})
	}
}

// putOf has a daemon store documents of crawls.
func putOf(t *testing.T, at, lines string) {
	t.Helper()
	resp, err := http.Post(at+"/docindex/urls", "application/x-ndjson", strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("put: %s, %s, %v", resp.Status, text, err)
	}
}

// TestCrawlsAreCounted: Redis counts what daemons hold of each crawl, until it is done, or a daemon
// that was killed is known to be dead.
func TestCrawlsAreCounted(t *testing.T) {
	for _, kind := range []string{"memory", "redis"} {
		t.Run(kind, func(t *testing.T) {
			redis := redistest.Start(t)
			index := "kind = \"memory\""
			if kind == "redis" {
				index = fmt.Sprintf("kind = \"redis\"\naddrs = [%q]\nprefix = \"crawl:\"", redis.Addr())
			}
			file := settings(t,
				fmt.Sprintf("[docindex]\n%s\nmax_retry = \"1s\"\n[reservation]\nkind = \"redis\"\naddrs = [%q]\n"+
					"lease = \"2s\"\npenalty = \"100ms\"\njanitor = \"200ms\"", index, redis.Addr()))
			c := startCommand(t, "urlserver", "serve", file)
			at := "http://" + c.log.until("listening for HTTP")["address"].(string)
			first := dialSpider(t, c.log.until("listening for spiders")["address"].(string))
			lines := ""
			for i, crawl := range []string{"a", "b", "", "a", "b", "DEFAULT", "a"} {
				lines += fmt.Sprintf("{\"url\":\"http://127.9.0.%d/%d\",\"crawl\":%q}\n", 1+i%2, i, crawl)
			}
			putOf(t, at, lines)
			tallied(t, redis, map[string]string{"a": "3", "b": "2", "DEFAULT": "2"})
			for range 7 {
				first.done(first.next()[0])
			}
			tallied(t, redis, nil)
			putOf(t, at, "{\"url\":\"http://127.9.0.1/x\",\"crawl\":\"c\"}\n"+
				"{\"url\":\"http://127.9.0.2/y\",\"crawl\":\"c\"}\n{\"url\":\"http://127.9.0.2/z\"}\n")
			tallied(t, redis, map[string]string{"c": "2", "DEFAULT": "1"})
			c.signal(syscall.SIGKILL)
			c.wait()
			second := startDaemon(t, file)
			if kind == "redis" { // they are the second's now
				spider := dialSpider(t, second.spiders)
				for range 3 {
					spider.done(spider.next()[0])
				}
			}
			tallied(t, redis, nil)
		})
	}
}
