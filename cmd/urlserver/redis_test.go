package main

import (
	"fmt"
	"syscall"
	"testing"

	"urlserver/reservation/redis/redistest"
)

// TestServeRedis kills one of two daemons with an index in Redis: the other one has all fetched.
func TestServeRedis(t *testing.T) {
	redis := redistest.Start(t)
	const docs = 12
	seeds := ""
	for i := range docs {
		seeds += fmt.Sprintf("http://127.9.0.%d/%d\n", 1+i%4, i)
	}
	file := settings(t, fmt.Sprintf("[docindex]\nkind = \"redis\"\naddrs = [%q]\nprefix = \"crawl:\"\nseeds = [%q]\nmax_retry = \"1s\"\n"+
		"[reservation]\nkind = \"redis\"\naddrs = [%[1]q]\nlease = \"2s\"\npenalty = \"100ms\"\njanitor = \"200ms\"", redis.Addr(), write(t, "seeds", seeds)))
	c := startChild(t, file)
	first := dialSpider(t, c.spiders)
	first.next()
	first.next()
	c.signal(syscall.SIGKILL)
	c.wait()
	d := startDaemon(t, file)
	second := dialSpider(t, d.spiders)
	seen := map[string]bool{}
	fetch := func() {
		line := second.next() // TRANS_ID DOC_ID HOST_IP URL
		seen[line[3]] = true
		second.done(line[0])
	}
	for len(seen) < docs {
		fetch()
	}
	command(t, "http://127.9.0.1/0\nhttp://127.9.0.1/new\n", "put", "--at", d.at, "-").want(t, 0, `{"new":1,"known":1,"invalid":0}`, "")
	for !seen["http://127.9.0.1/new"] {
		fetch()
	}
}
