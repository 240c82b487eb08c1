package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"urlserver/certs/certstest"
)

// With a thousand a door for 40s, the pace is judged, too.
var (
	hostileCount = flag.Int("hostile", 40, "hostile clients a door")
	hostileTime  = flag.Duration("hostile-for", 2*time.Second, "how long they besiege the daemon; from 30s on each has to be cut, and the pace has to keep")
)

const (
	siegeHosts  = 100
	siegePerSec = 20 // a host
	siegeMemory = 64 << 20
	judgedFrom  = 30 * time.Second
	siegeLoss   = 0.1 // of the pace
)

// worker is a spider that fetches nothing: each document is done at once.
type worker struct {
	done  atomic.Int64
	twice atomic.Int64
	ended chan error
}

func work(conn net.Conn, token string) *worker {
	w := &worker{ended: make(chan error, 1)}
	go func() { w.ended <- w.run(conn, token) }()
	return w
}

func (w *worker) run(conn net.Conn, token string) error {
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	fmt.Fprintf(out, "AUTH %s\n", token)
	seen := map[string]bool{}
	for {
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		fields := strings.Fields(line)
		if seen[fields[1]] {
			w.twice.Add(1)
		}
		seen[fields[1]] = true
		fmt.Fprintf(out, "%s DONE 200\n", fields[0])
		w.done.Add(1)
	}
}

// rate is how many documents a second are done: the median over the parts of a while.
func (w *worker) rate(within time.Duration) float64 {
	const parts = 20
	var rates []float64
	for range parts {
		before, began := w.done.Load(), time.Now()
		time.Sleep(within / parts)
		rates = append(rates, float64(w.done.Load()-before)/time.Since(began).Seconds())
	}
	slices.Sort(rates)
	return rates[parts/2]
}

// memory of a process: now, and at most so far.
func memory(t *testing.T, pid int) (now, most int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for key, to := range map[string]*int{"VmRSS": &now, "VmHWM": &most} {
		m := regexp.MustCompile(key + `:\s+(\d+) kB`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in %s", key, text)
		}
		n, _ := strconv.Atoi(string(m[1]))
		*to = n << 10
	}
	return now, most
}

// siegeFile is the settings of a daemon with a token at each door, and seeds for the time that the siege takes.
func siegeFile(t *testing.T, cert certstest.Certificate, each int) string {
	t.Helper()
	var seeds strings.Builder
	for i := range each {
		for host := range siegeHosts {
			fmt.Fprintf(&seeds, "http://127.1.0.%d/%d\n", host, i)
		}
	}
	return settings(t, fmt.Sprintf(`spider.token = "right"
spider.tls_cert = %q
spider.tls_key = %q
http.token = "right"
frontier.listen = "127.0.0.1:0"
frontier.token = "right"
docindex.seeds = [%q]
`, cert.Cert, cert.Key, write(t, "seeds.txt", seeds.String())))
}

// A crawl goes on while slow, silent, oversized and malformed clients are at every door: each document is sent
// once, none to a stranger, the operator is answered, memory stays; and, where that can be judged, the pace.
func TestHostileClients(t *testing.T) {
	calm := *hostileTime / 4
	cert := certstest.New(t)
	file := siegeFile(t, cert, int(siegePerSec*(calm+*hostileTime+10*time.Second).Seconds()))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, file, strings.Replace(string(text), "Req_Host_Per_Sec = 1000", fmt.Sprintf("Req_Host_Per_Sec = %d", siegePerSec), 1))
	c := startChild(t, file)
	addr := func(message string) string {
		m := regexp.MustCompile(`"address":"([^"]*)"[^\n]*` + message).FindStringSubmatch(c.log.all())
		if m == nil {
			t.Fatalf("the log lacks %q", message)
		}
		return m[1]
	}
	browsers, clients := addr("listening for HTTP"), addr("listening for clients")
	conn, err := tls.Dial("tcp", c.spiders, cert.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := work(conn, "right")
	for w.done.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	before := w.rate(calm)
	rss, _ := memory(t, c.cmd.Process.Pid)

	doors := map[string][]*hostile{c.spiders: hostileSpiders(t, cert.Trusted()), browsers: hostileBrowsers(), clients: hostileClients(t)}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var lift []func()
	for door, kinds := range doors {
		lift = append(lift, besiege(ctx, door, kinds, *hostileCount))
	}
	sent := w.done.Load()
	under := w.rate(*hostileTime)
	for w.done.Load() == sent { // on a machine that is slow
		time.Sleep(time.Millisecond)
	}
	during := w.done.Load() - sent
	command(t, "", "status", "--at", "http://"+browsers, "--token", "right").want(t, 0, "in flight", "")
	_, most := memory(t, c.cmd.Process.Pid)
	for _, door := range lift {
		door()
	}
	t.Logf("%.0f documents a second before, %.0f under %d clients a door; memory %d MB before, %d MB at most",
		before, under, *hostileCount, rss>>20, most>>20)

	if most-rss > siegeMemory {
		t.Errorf("memory grew by %d MB, with %d documents under siege; want at most %d", (most-rss)>>20, during, siegeMemory>>20)
	}
	if *hostileTime >= judgedFrom {
		if under < before*(1-siegeLoss) {
			t.Errorf("the pace fell from %.0f to %.0f documents a second", before, under)
		}
		for door, kinds := range doors {
			if missing := mustCut(door, kinds); missing != nil {
				t.Errorf("never cut: %q", missing)
			}
		}
	}
	select {
	case err := <-w.ended:
		t.Errorf("the spider's connection ended: %v", err)
	default:
	}
	if n := w.twice.Load(); n > 0 {
		t.Errorf("%d documents were sent twice", n)
	}
	c.signal(syscall.SIGTERM)
	if code := c.wait().ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}
