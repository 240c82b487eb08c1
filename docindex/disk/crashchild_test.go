package disk_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

const (
	crashHosts = 13
	slowHosts  = 3 // the last of them: an hour between servings
)

func isSlow(n int64) bool { return n%crashHosts >= crashHosts-slowHosts }

func slowQueue(client int, n int64) int64 { return int64(client)*100 + n%crashHosts }

func crawlOf(client int) []byte { return fmt.Appendf(nil, "crawl%d", client) }

// crashURL returns URL n of a client, and its host.
func crashURL(client int, n int64) (url, host []byte) {
	host = fmt.Appendf(nil, "h%d.c%d.test", n%crashHosts, client)
	return fmt.Appendf(nil, "http://%s/%d", host, n), host
}

// runCrashChild works on a store until it is killed.
func runCrashChild(path string) {
	s, err := disk.Open(disk.Config{Path: path, Memory: memoryOfTests()})
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	s.Hurry()
	round, _ := strconv.Atoi(os.Getenv(crashesVar))
	var all sync.WaitGroup
	for c := range crashClients {
		all.Go(func() {
			client := crashClient{s: s, no: c, rnd: rand.New(rand.NewPCG(uint64(round), uint64(c))),
				first: int64(round) * 1_000_000}
			client.next = client.first
			if err := client.work(); err != nil {
				fmt.Fprintln(os.Stderr, "child:", err)
				os.Exit(1)
			}
		})
	}
	all.Wait()
}

type crashClient struct {
	s           *disk.Store
	no          int
	rnd         *rand.Rand
	first, next int64 // URLs of this round
	held        []int64
	stops       int64
}

// say writes a line in a single write.
func (c *crashClient) say(kind, verb string, args ...int64) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %s", kind, c.no, verb)
	for _, n := range args {
		fmt.Fprintf(&b, " %d", n)
	}
	os.Stdout.WriteString(b.String() + "\n")
}

func (c *crashClient) work() error {
	if err := c.s.Set(context.Background(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		return err
	}
	for h := int64(crashHosts - slowHosts); h < crashHosts; h++ {
		_, host := crashURL(c.no, h)
		set := docindex.Setting{Kind: docindex.SetDelay, Scope: docindex.Scope{Crawl: crawlOf(c.no), Key: host},
			Value: 3600}
		if err := c.s.Set(context.Background(), set); err != nil {
			return err
		}
	}
	for {
		var err error
		switch n := c.rnd.IntN(100); {
		case n < 45 || c.next == c.first:
			err = c.put()
		case n < 55:
			err = c.news()
		case n < 57:
			err = c.stop()
		case n < 75:
			err = c.serve()
		case n < 98:
			err = c.complete()
		case n < 99:
			err = c.s.Flush()
		default:
			err = c.forget()
		}
		if err != nil {
			return err
		}
	}
}

func (c *crashClient) store(known bool, due int64, ns ...int64) error {
	var p docindex.Puts
	for _, n := range ns {
		url, host := crashURL(c.no, n)
		put := docindex.Put{URL: url, Crawl: crawlOf(c.no), Update: known, Due: due,
			Priority: int32(n % 300), Metadata: crashApp}
		if err := p.AddExact(put, host); err != nil {
			return err
		}
	}
	_, err := c.s.Put(context.Background(), &p)
	return err
}

func (c *crashClient) put() error {
	from, to := c.next, c.next+1+c.rnd.Int64N(60)
	c.next = to
	c.say("I", "p", from, to)
	var ns []int64
	for n := from; n < to; n++ {
		ns = append(ns, n)
	}
	if err := c.store(false, docindex.Now, ns...); err != nil {
		return err
	}
	c.say("A", "p", from, to)
	return nil
}

func (c *crashClient) news() error {
	n, due := c.first+c.rnd.Int64N(c.next-c.first), time.Now().Unix()+1000+c.rnd.Int64N(1000)
	c.say("I", "k", n, due)
	if err := c.store(true, due, n); err != nil {
		return err
	}
	c.say("A", "k", n, due)
	return nil
}

func (c *crashClient) complete() error {
	if len(c.held) == 0 {
		return nil
	}
	some := c.held[:1+c.rnd.IntN(len(c.held))]
	c.held = c.held[len(some):]
	c.say("I", "c", some...)
	if err := c.store(true, docindex.Never, some...); err != nil {
		return err
	}
	c.say("A", "c", some...)
	return nil
}

var crashApp = []byte(`{"appid":["app"]}`)

// stopCrawl returns the ID of the crawl n that a client stops.
func stopCrawl(client int, n int64) docindex.CrawlID {
	return docindex.CrawlID{Spider: docindex.DefaultSpider, App: "app", Crawl: fmt.Sprintf("stop %d %d", client, n)}
}

// stop puts documents of a new crawl, and stops and purges it.
func (c *crashClient) stop() error {
	n := c.first + c.stops
	c.stops++
	id := stopCrawl(c.no, n)
	var p docindex.Puts
	count := 20 + c.rnd.IntN(100)
	for i := range count {
		put := docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/%d", i%3, i), Crawl: []byte(id.Crawl),
			Metadata: crashApp}
		if err := p.AddExact(put, docindex.HostOf(put.URL)); err != nil {
			return err
		}
	}
	if _, err := c.s.Put(context.Background(), &p); err != nil {
		return err
	}
	c.say("I", "x", n, int64(count))
	if err := c.s.StopCrawl(context.Background(), id, docindex.Stopped); err != nil {
		return err
	}
	if _, err := c.s.PurgeCrawl(context.Background(), id, nil); err != nil {
		return err
	}
	c.say("A", "x", n, int64(count))
	return nil
}

// serve gets URLs with a lease of an hour.
func (c *crashClient) serve() error {
	r := docindex.Request{Scope: docindex.Scope{Crawl: crawlOf(c.no)}, PerQueue: 50,
		MaxQueues: 1 + uint32(c.rnd.IntN(6)), Lease: time.Hour}
	c.say("I", "s", 1)
	got := []int64{1}
	err := c.s.Serve(context.Background(), r, func(h *docindex.Served) error {
		for i := range h.Len() {
			url := string(h.At(i).URL)
			n, err := strconv.ParseInt(url[strings.LastIndexByte(url, '/')+1:], 10, 64)
			if err != nil {
				return err
			}
			got = append(got, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.say("A", "s", got...)
	c.held = append(c.held, got[1:]...)
	return nil
}

// forget deletes a queue that is not one of the slow ones.
func (c *crashClient) forget() error {
	h := c.rnd.Int64N(crashHosts - slowHosts)
	_, host := crashURL(c.no, h)
	c.say("I", "d", h)
	if _, err := c.s.Delete(context.Background(), docindex.Scope{Crawl: crawlOf(c.no), Key: host}); err != nil {
		return err
	}
	var held []int64
	for _, n := range c.held {
		if n%crashHosts != h {
			held = append(held, n)
		}
	}
	c.held = held
	c.say("A", "d", h)
	return nil
}
