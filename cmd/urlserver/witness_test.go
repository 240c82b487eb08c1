package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/docindex/memory"
	"urlserver/internal/sim"
)

// seenIndex is a doc index that a witness hears all of.
type seenIndex struct {
	docindex.Store
	witness *sim.Witness
}

func (x seenIndex) Lease(ctx context.Context, most int, reject []string, lease time.Duration,
	b *docindex.Batch) error {
	err := x.Store.Lease(ctx, most, reject, lease, b)
	x.witness.Taken(b)
	return err
}

func (x seenIndex) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	for i := range o.Len() {
		x.witness.Outcome(o.At(i))
	}
	return x.Store.Outcomes(ctx, o)
}

// seenCrawl is a daemon with an index and spiders, and the oracle of the simulation that judges it.
type seenCrawl struct {
	*daemon
	witness *sim.Witness
	file    string
	text    string // of the settings that do not change
	all     int    // documents
	before  int    // documents done
	reloads int
	since   time.Time
}

// startSeen starts a daemon with so many documents of each host, 127.1.0.0 and on; told changes
// what the witness is told of the settings.
func startSeen(t *testing.T, hosts, each int, changing string, told ...func(*configs.Config)) *seenCrawl {
	t.Helper()
	store := memory.New()
	var puts docindex.Puts
	for i := range each {
		for host := range hosts {
			if err := puts.Add(docindex.Put{URL: fmt.Appendf(nil, "http://127.1.0.%d/%d", host, i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := store.Put(t.Context(), &puts); err != nil {
		t.Fatal(err)
	}
	c := &seenCrawl{all: hosts * each}
	index := seenIndex{Store: store}
	server := httptest.NewUnstartedServer(nil)
	c.text = strings.Replace(fmt.Sprintf(base, ""), "Req_Host_Per_Sec = 1000\n", "", 1) +
		fmt.Sprintf("Timeout_Spider_Status = 3600\ndocindex.kind = \"http\"\ndocindex.url = "+
			"\"http://%s/docindex\"\n", server.Listener.Addr())
	c.file = write(t, "urlserver.toml", c.text+changing)
	cfg := c.settings(t)
	for _, change := range told {
		change(&cfg)
	}
	c.witness = sim.NewWitness(cfg, c.all+1)
	index.witness = c.witness
	server.Config.Handler = httpserver.Handler(index)
	server.Start()
	t.Cleanup(server.Close)
	c.daemon = startDaemon(t, c.file)
	return c
}

// settings are those in the file.
func (c *seenCrawl) settings(t *testing.T) configs.Config {
	t.Helper()
	cfg, err := configs.Load(c.file)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// spider connects one that has each document done after a while; most 0: never.
func (c *seenCrawl) spider(n uint32, most time.Duration) {
	c.t.Helper()
	c.witness.Connected(n)
	conn, err := net.Dial("tcp", c.spiders)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	rng := rand.New(rand.NewPCG(uint64(n), 0))
	go func() {
		for in := bufio.NewScanner(conn); in.Scan(); {
			c.witness.Line(n, in.Text())
			if most > 0 {
				trans, _, _ := strings.Cut(in.Text(), " ")
				time.AfterFunc(time.Duration(rng.Int64N(int64(most))), func() { c.done(n, conn, trans) })
			}
		}
	}()
}

func (c *seenCrawl) done(n uint32, conn net.Conn, trans string) {
	c.witness.Status(n, trans+" DONE 200")
	fmt.Fprintf(conn, "%s DONE 200\n", trans) // a spider that has gone is not heard
}

// reload has the daemon and the witness take other settings over: told by POST, and every other
// time by SIGHUP.
func (c *seenCrawl) reload(changing string) {
	c.t.Helper()
	c.reloads++
	mark := fmt.Sprint(1_000_000 + c.reloads) // told from outside by a setting that changes nothing here
	rewrite(c.t, c.file, c.text+"robots.max_size = "+mark+"\n"+changing)
	c.witness.Reload(c.settings(c.t), func() {
		if c.reloads%2 == 0 {
			c.hangUp(mark)
			return
		}
		if code, told := postReload(c.t, c.daemon); code != 200 || fmt.Sprint(told["refused"]) != "[]" {
			c.t.Fatalf("reload: %d %v", code, told)
		}
	})
}

// hangUp sends the signal for a reload, and waits until the settings with a mark are in force.
func (c *seenCrawl) hangUp(mark string) {
	c.t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		c.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, text := c.ask("GET", "/api/settings", "")
		if strings.Contains(text, `"robots.max_size","value":"`+mark+`"`) {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("after SIGHUP the settings in force are %s; want robots.max_size %s among them", text, mark)
		}
	}
}

// fair ends the test where the witness has a complaint, or no document is done any more.
func (c *seenCrawl) fair() {
	c.t.Helper()
	if done := c.witness.Done(); done > c.before || c.since.IsZero() {
		c.before, c.since = done, time.Now()
	}
	err := c.witness.Complaint()
	if err == nil && time.Since(c.since) < patience {
		return
	}
	if !c.indexWell() {
		c.t.Skip("the machine stood still for longer than a call of the index may take")
	}
	c.t.Fatalf("%d of %d documents are done; complaint: %v", c.witness.Done(), c.all, err)
}

// complains waits for a complaint of one of some rules.
func (c *seenCrawl) complains(want ...sim.Rule) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); c.witness.Complaint() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("no complaint of %q; %d of %d documents are done", want, c.witness.Done(), c.all)
		}
	}
	err, _ := errors.AsType[*sim.Complaint](c.witness.Complaint())
	if !slices.Contains(want, err.Rule) {
		c.t.Errorf("%v; want a complaint of %q", err, want)
	}
}

// indexWell reports whether the daemon has had every answer of the index. One that was lost is no
// fault of its.
func (c *seenCrawl) indexWell() bool {
	_, text := c.ask("GET", "/metrics", "")
	return strings.Contains(text, `urlserver_index_request_errors_total{call="candidates"} 0`) &&
		strings.Contains(text, `urlserver_index_request_errors_total{call="outcomes"} 0`)
}

// A daemon that does other than the witness is told is found out.
func TestWitnessBites(t *testing.T) {
	all := func(r configs.HostRule) func(*configs.Config) {
		r.Hosts = []string{"*"}
		return func(c *configs.Config) { c.Rules = []configs.HostRule{r} }
	}
	for _, c := range []struct {
		name  string
		late  bool                  // the witness is told of it as of a reload
		told  func(*configs.Config) // what is not so
		fetch time.Duration
		want  []sim.Rule
	}{
		{name: "another rate", late: true, told: func(c *configs.Config) {
			c.ReqHostPerSec = 0.0001
		}, fetch: time.Millisecond, want: []sim.Rule{sim.RuleGapSite}},
		{name: "a block", late: true, told: all(configs.HostRule{Block: true}), fetch: time.Millisecond,
			want: []sim.Rule{sim.RuleBlockedByRule}},
		{name: "a group", told: all(configs.HostRule{Group: "one"}),
			want: []sim.Rule{sim.RuleOpenSite, sim.RuleGapSite}},
		{name: "open requests", told: func(c *configs.Config) {
			c.ReqHostConcurrent = 1
		}, want: []sim.Rule{sim.RuleOpenSite}},
		{name: "documents in flight", told: func(c *configs.Config) {
			c.Spider.MaxInFlight = 3
		}, want: []sim.Rule{sim.RuleInFlight}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const settings = "Req_Host_Per_Sec = 100\nReq_Host_Concurrent = 2\n"
			if !c.late {
				d := startSeen(t, 8, 40, settings, c.told)
				d.spider(0, c.fetch)
				d.complains(c.want...)
				return
			}
			d := startSeen(t, 8, 40, settings)
			cfg := d.settings(t)
			c.told(&cfg)
			d.witness.Reload(cfg, func() {})
			d.spider(0, c.fetch)
			d.complains(c.want...)
		})
	}
}
