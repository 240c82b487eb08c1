package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
)

// addressPace collects what leaves for one address, by whoever asked for it.
type addressPace struct {
	mu    sync.Mutex // guards all below
	first time.Time  // when a client began the first call that got URLs
	at    []time.Time
	from  map[string]int
}

func (p *addressPace) left(from string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, time.Now())
	p.from[from]++
}

// got notes a client's call, and when it began.
func (p *addressPace) got(urls []string, asked time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(urls) > 0 && (p.first.IsZero() || asked.Before(p.first)) {
		p.first = asked
	}
}

func (p *addressPace) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.at)
}

// spiderOf fetches for a daemon until the test ends.
func (p *addressPace) spiderOf(t *testing.T, d *daemon, name string) {
	s := dialSpider(t, d.spiders)
	go func() {
		for {
			line, err := s.in.ReadString('\n')
			if err != nil {
				return
			}
			p.left(name)
			if _, err := fmt.Fprintf(s.conn, "%s DONE 200\n", strings.Fields(line)[0]); err != nil {
				return
			}
		}
	}()
}

// clientOf gets URLs of a daemon until there are so many in all.
func (p *addressPace) clientOf(t *testing.T, d *daemon, name string, all int) {
	c := dialFrontier(t, d)
	for end := time.Now().Add(patience); p.count() < all && time.Now().Before(end); {
		asked := time.Now()
		urls := c.get()
		p.got(urls, asked)
		for range urls {
			p.left(name)
		}
		for _, url := range urls {
			c.ended(url)
		}
		if len(urls) == 0 {
			time.Sleep(10 * time.Millisecond) // until the next call
		}
	}
}

// judge checks that all came, some by each, and no faster than the pace allows. A URL may arrive late;
// the first one left no sooner than it was asked for.
func (p *addressPace) judge(t *testing.T, perSec, all int, names ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	t.Logf("%d requests in %v: %v", len(p.at), p.at[len(p.at)-1].Sub(p.at[0]), p.from)
	if len(p.at) < all {
		t.Errorf("%d requests; want %d", len(p.at), all)
	}
	slices.SortFunc(p.at, time.Time.Compare)
	gap := time.Second / time.Duration(perSec)
	took := p.at[len(p.at)-1].Sub(p.first)
	if least := time.Duration(len(p.at)-1) * gap; p.first.IsZero() || took < least {
		t.Errorf("they took %v; want at least %v", took, least)
	}
	for _, name := range names {
		if p.from[name] == 0 {
			t.Errorf("none by %s", name)
		}
	}
}

const sharedHosts = 30

// sharedURLs are URLs of many hosts, all at one address.
func sharedURLs(from int) (urls []string) {
	for i := range 2 * sharedHosts {
		urls = append(urls, fmt.Sprintf("http://h%d.test/%d", i%sharedHosts, from+i))
	}
	return urls
}

// TestSpidersAndClientsShareAnAddress: a spider and a URL Frontier client of one daemon together
// keep the pace of an address, and the cap of a shared network.
func TestSpidersAndClientsShareAnAddress(t *testing.T) {
	t.Parallel() // it mostly waits
	rule := "[reservation]\nlease = \"4s\"\npenalty = \"1s\"\n" +
		"[[rules]]\nnetworks = [\"127.0.0.0/24\"]\nshared = true\nper_sec = 8\nconcurrent = 8\n"
	for name, more := range map[string]string{"address": "", "network": rule} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names := serveNames(t, func(string) string { return "127.0.0.2" })
			text := fmt.Sprintf(withAddresses, names, more)
			text = strings.Replace(text, "Per_Sec = 2.0", "Per_Sec = 8.0", 1)
			d := startDaemon(t, write(t, "urlserver.toml", text))
			p := &addressPace{from: map[string]int{}}
			dialFrontier(t, d).discover(sharedURLs(0)...)
			const all = 2 * sharedHosts
			first := p.count() + all/4
			p.clientOf(t, d, "client", first)
			p.spiderOf(t, d, "spider")
			p.clientOf(t, d, "client", all)
			p.judge(t, 8, all, "client", "spider")
		})
	}
}

// TestDaemonsShareAnAddressOfClients: the clients of two daemons with index and reservation in one
// Redis together keep the pace of an address.
func TestDaemonsShareAnAddressOfClients(t *testing.T) {
	t.Parallel() // it mostly waits
	redis := redistest.Start(t)
	names := serveNames(t, func(string) string { return "127.0.0.2" })
	text := strings.Replace(fmt.Sprintf(withAddresses, names, ""), "Per_Sec = 2.0", "Per_Sec = 8.0", 1)
	text += fmt.Sprintf("[docindex]\nkind = \"redis\"\naddrs = [%q]\n[reservation]\nkind = \"redis\"\n"+
		"addrs = [%[1]q]\nlease = \"4s\"\npenalty = \"1s\"\njanitor = \"1s\"\n", redis.Addr())
	p := &addressPace{from: map[string]int{}}
	const all = 2 * sharedHosts
	var both sync.WaitGroup
	for n := range 2 {
		d := startDaemon(t, write(t, "urlserver.toml", text))
		if n == 0 {
			dialFrontier(t, d).discover(sharedURLs(0)...)
		}
		both.Go(func() { p.clientOf(t, d, fmt.Sprint("client ", n), all) })
	}
	both.Wait()
	p.judge(t, 8, all)
}

// TestDaemonThatStoodStill stops a daemon's process for longer than its lease while it has documents
// of a host. Meanwhile a client of another daemon is told by that host to leave it alone. The first
// daemon obeys when it goes on, though nobody has told it.
func TestDaemonThatStoodStill(t *testing.T) {
	t.Parallel()                     // it mostly waits
	const patience = 6 * time.Second // that the host asks for
	redis := redistest.Start(t)
	names := serveNames(t, func(string) string { return "127.0.0.2" })
	text := fmt.Sprintf(withAddresses, names, "") +
		fmt.Sprintf("[docindex]\nkind = \"redis\"\naddrs = [%q]\n[reservation]\nkind = \"redis\"\n"+
			"addrs = [%[1]q]\nlease = \"2s\"\npenalty = \"1s\"\njanitor = \"1s\"\n", redis.Addr())
	client := dialFrontier(t, startDaemon(t, write(t, "urlserver.toml", text)))
	first := startChild(t, write(t, "urlserver.toml", text))
	client.discover("http://h.test/0", "http://h.test/1", "http://h.test/2", "http://h.test/3")
	spider := dialSpider(t, first.spiders)
	spider.next()
	first.signal(syscall.SIGSTOP)
	var given []string
	redistest.Eventually(t, "a URL for the client", func() bool {
		given = client.get()
		return len(given) > 0
	})
	told := time.Now()
	client.ended(given[0], "status", "503", "retry-after", fmt.Sprint(int(patience.Seconds())))
	first.signal(syscall.SIGCONT)
	spider.conn.Close()
	dialSpider(t, first.spiders).next()
	if after := time.Since(told); after < patience {
		t.Errorf("a page of the host was sent after %v; want none before %v", after, patience)
	}
	first.signal(syscall.SIGKILL)
	first.wait()
}

// TestDaemonsReachThePaceOfAddresses: clients of several daemons with index and reservation in
// one Redis ask a few addresses. Together they reach nine tenths of the pace that is allowed, and
// never more than it. It takes six leases, whose length URLSERVER_LONG says.
func TestDaemonsReachThePaceOfAddresses(t *testing.T) {
	lease, err := time.ParseDuration(os.Getenv("URLSERVER_LONG"))
	if err != nil {
		t.Skip("set URLSERVER_LONG=60s to run it")
	}
	const daemons, addresses, hosts, perSec = 4, 3, 30, 1
	span := 6 * lease
	redis := redistest.Start(t)
	names := serveNames(t, func(name string) string {
		n := 0
		_, _ = fmt.Sscanf(name, "h%d.", &n)
		return fmt.Sprintf("127.0.0.%d", 2+n%addresses)
	})
	text := strings.Replace(fmt.Sprintf(withAddresses, names, ""), "Per_Sec = 2.0",
		fmt.Sprintf("Per_Sec = %d.0", perSec), 1)
	text += fmt.Sprintf("[docindex]\nkind = \"redis\"\naddrs = [%q]\n[reservation]\nkind = \"redis\"\n"+
		"addrs = [%[1]q]\nlease = %[2]q\npenalty = \"1s\"\njanitor = \"1s\"\n", redis.Addr(), lease.String())
	paces := map[int]*addressPace{}
	for i := range addresses {
		paces[i] = &addressPace{from: map[string]int{}}
	}
	var all sync.WaitGroup
	var urls []string
	for i := range addresses * perSec * int(span.Seconds()) {
		urls = append(urls, fmt.Sprintf("http://h%d.test/%d", i%hosts, i))
	}
	began := time.Now()
	for n := range daemons {
		d := startDaemon(t, write(t, "urlserver.toml", text))
		c := dialFrontier(t, d)
		if n == 0 {
			c.discover(urls...)
		}
		all.Go(func() {
			for time.Since(began) < span {
				urls := c.get()
				for _, url := range urls {
					host := 0
					_, _ = fmt.Sscanf(url, "http://h%d.", &host)
					paces[host%addresses].left(fmt.Sprint("client ", n))
				}
				for _, url := range urls {
					c.ended(url)
				}
				if len(urls) == 0 {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	for i, p := range paces {
		warm := 15 * time.Second // the first leases
		first := began.Add(warm)
		count := 0
		for _, at := range p.at {
			if at.After(first) {
				count++
			}
		}
		due := float64(perSec) * (span - warm).Seconds()
		t.Logf("address %d: %d of %.0f requests, %v", i, count, due, p.from)
		if share := float64(count) / due; share < 0.9 || float64(count-1) > due {
			t.Errorf("address %d: %.2f of the pace; want 0.9 to 1", i, share)
		}
	}
}
