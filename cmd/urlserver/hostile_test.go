package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"urlserver/internal/testkit/certstest"
)

// With a thousand a door for 60s, the pace is judged, too.
var (
	hostileCount = flag.Int("hostile", 40, "hostile clients a door")
	hostileTime  = flag.Duration("hostile-for", 2*time.Second,
		"how long they besiege the daemon; from 60s on each has to be cut, and the pace has to keep")
)

const (
	siegeMemory = 64 << 20
	judgedFrom  = time.Minute
	siegeLoss   = 0.1 // of the pace, and of what cores there are
)

// crawlPace is what a crawl under siege is like.
type crawlPace struct {
	hosts, each int // documents of each host
	perSec      int // requests to a host
}

// siege is a daemon, the host reservation service that it works with, and a spider of it.
type siege struct {
	t       *testing.T
	daemon  *child
	service *child // hostreservation
	http    string
	worker  *worker
	doors   []*door
}

// door is a listener, and who is at it.
type door struct {
	name, addr string
	kinds      []*hostile
}

// settings is a file of a daemon with a token at each door, and seeds.
func (p crawlPace) settings(t *testing.T, cert certstest.Certificate, reservations string) string {
	t.Helper()
	var seeds strings.Builder
	for i := range p.each {
		for host := range p.hosts {
			fmt.Fprintf(&seeds, "http://127.1.%d.%d/%d\n", host>>8, host&255, i)
		}
	}
	file := settings(t, fmt.Sprintf(`spider.token = "right"
spider.tls_cert = %q
spider.tls_key = %q
http.token = "right"
frontier.listen = "127.0.0.1:0"
frontier.token = "right"
reservation.kind = "grpc"
reservation.addrs = [%q]
reservation.token = "right"
docindex.seeds = [%q]
`, cert.Cert, cert.Key, reservations, write(t, "seeds.txt", seeds.String())))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, file, strings.Replace(string(text), "Req_Host_Per_Sec = 1000",
		fmt.Sprintf("Req_Host_Per_Sec = %d", p.perSec), 1))
	return file
}

// startSiege starts a crawl, and returns when the first document is done. Nobody is at its doors
// yet.
func startSiege(t *testing.T, pace crawlPace) *siege {
	t.Helper()
	cert := certstest.New(t)
	s := &siege{t: t, service: startCommand(t, childService, "serve", "--listen", "127.0.0.1:0",
		"--metrics", "127.0.0.1:0", "--token", "right")}
	metrics := s.service.log.until("metrics")["address"].(string)
	reservations := s.service.log.until("serving")["address"].(string)
	s.daemon = startCommand(t, "urlserver", "serve", pace.settings(t, cert, reservations))
	s.http = s.daemon.log.until("listening for HTTP")["address"].(string)
	clients := s.daemon.log.until("listening for clients")["address"].(string)
	spiders := s.daemon.log.until("listening for spiders")["address"].(string)
	s.doors = []*door{
		{name: "spiders", addr: spiders, kinds: hostileSpiders(t, cert.Trusted())},
		{name: "HTTP", addr: s.http, kinds: hostileBrowsers("/api/status", "/docindex/urls")},
		{name: "gRPC", addr: clients, kinds: hostileClients(t, listQueues)},
		{name: "reservation", addr: reservations, kinds: hostileClients(t, setAlias)},
		{name: "metrics of the reservation", addr: metrics, kinds: hostileBrowsers("/metrics", "/healthz")},
	}
	conn, err := tls.Dial("tcp", spiders, cert.Trusted())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s.worker = work(conn, "right")
	s.worker.goesOn(t, 0)
	return s
}

// begin has clients come to some doors; lift ends it.
func (s *siege) begin(doors []*door) (lift func()) {
	var all []func()
	for _, d := range doors {
		all = append(all, besiege(s.t.Context(), d.addr, d.kinds, *hostileCount))
	}
	return func() {
		for _, lift := range all {
			lift()
		}
	}
}

// end checks what holds of any crawl, and ends it.
func (s *siege) end() {
	s.t.Helper()
	select {
	case err := <-s.worker.ended:
		s.t.Errorf("the spider's connection ended: %v", err)
	default:
	}
	if n := s.worker.twice.Load(); n > 0 {
		s.t.Errorf("%d documents were sent twice", n)
	}
	for _, c := range []*child{s.daemon, s.service} {
		c.signal(syscall.SIGTERM)
		if code := c.wait().ExitCode(); code != 0 {
			s.t.Errorf("exit status %d", code)
		}
	}
}

// A crawl goes on while slow, silent, oversized and malformed clients are at every door of a
// daemon, and then of the host reservation service that it works with: each document is sent once,
// none to a stranger, the operator is answered, memory stays; and, where that can be judged, the
// pace stays, too: that of this crawl, and that of one at full pace.
func TestHostileClients(t *testing.T) {
	calm := *hostileTime / 2
	const hosts, sieges = 100, 2
	perSec, spare := 20, 20*time.Second
	// a pace that is not judged is one that lasts, however slow the machine makes this test
	if *hostileTime < judgedFrom {
		perSec, spare = 4, 2*time.Minute
	}
	s := startSiege(t, crawlPace{hosts: hosts, perSec: perSec,
		each: perSec * int((calm + sieges**hostileTime + spare).Seconds())})
	before := s.pace(calm)
	rss := []int{memoryOf(t, s.daemon, "VmRSS"), memoryOf(t, s.service, "VmRSS")}
	t.Logf("%v; they have %d and %d MB", before, rss[0]>>20, rss[1]>>20)
	for _, doors := range [sieges][]*door{s.doors[:3], s.doors[3:]} {
		s.besieged(doors, before)
	}
	for i, c := range []*child{s.daemon, s.service} {
		if most := memoryOf(t, c, "VmHWM"); most-rss[i] > siegeMemory {
			t.Errorf("the %s grew by %d MB; want at most %d", []string{"daemon", "reservation"}[i],
				(most-rss[i])>>20, siegeMemory>>20)
		}
	}
	s.end()
	if *hostileTime >= judgedFrom {
		judgeFullPace(t)
	}
}

// besieged judges the crawl while clients are at some doors, beside what it was before.
func (s *siege) besieged(doors []*door, before pace) {
	s.t.Helper()
	lift := s.begin(doors)
	sent := s.worker.done.Load()
	under := s.pace(*hostileTime)
	s.worker.goesOn(s.t, sent)
	command(s.t, "", "status", "--at", "http://"+s.http, "--token", "right").want(s.t, 0, "in flight", "")
	lift()
	s.t.Logf("%v under %d clients at each of %d doors, from %q on; they have had %d and %d MB", under,
		*hostileCount, len(doors), doors[0].name,
		memoryOf(s.t, s.daemon, "VmHWM")>>20, memoryOf(s.t, s.service, "VmHWM")>>20)
	if *hostileTime < judgedFrom {
		return
	}
	for _, d := range doors {
		s.t.Logf("%.0f connections a second at %s", float64(came(d.kinds))/hostileTime.Seconds(), d.name)
		if missing := mustCut(d.name, d.kinds); missing != nil {
			s.t.Errorf("never cut: %q", missing)
		}
	}
	s.judge(before, under)
}

// judge has the pace keep by the clock or, where spider and clients, who share this machine with
// the daemon, leave it too little of that, the clients' cost in CPU time be low: a crawl that has
// work for all cores lacks that part of them.
func (s *siege) judge(before, under pace) {
	s.t.Helper()
	cost, most := under.daemon-before.daemon/before.perSec*under.perSec, siegeLoss*float64(runtime.NumCPU())
	s.t.Logf("the clients cost the daemon %.3f of a core, and the reservation %.3f", cost,
		under.service-before.service)
	if under.perSec < before.perSec*(1-siegeLoss) && cost > most {
		s.t.Errorf("the pace fell from %.0f to %.0f documents a second, and the clients cost the daemon "+
			"%.3f of a core; want at most %.2f",
			before.perSec, under.perSec, cost, most)
	}
}

// judgeFullPace has a crawl at a high pace run alone, and then with clients at the daemon's doors.
func judgeFullPace(t *testing.T) {
	t.Helper()
	const hosts, perSec, settling, all = 2000, 25, 5 * time.Second, 20 * time.Second
	s := startSiege(t, crawlPace{hosts: hosts, each: int(perSec * (2*settling + 2*all).Seconds()),
		perSec: perSec})
	time.Sleep(settling) // while hosts are reserved, and asked the first time
	before := s.pace(all / 2)
	lift := s.begin(s.doors[:3])
	under := s.pace(all)
	lift()
	s.end()
	t.Logf("at full pace: %v; %v under siege", before, under)
	s.judge(before, under)
}

// pace is how many documents are done in a second, and how much of a core each process takes
// meanwhile.
type pace struct{ perSec, daemon, service float64 }

func (p pace) String() string {
	return fmt.Sprintf("%.0f documents a second; daemon and reservation take %.3f and %.3f of a core",
		p.perSec, p.daemon, p.service)
}

func (s *siege) pace(within time.Duration) pace {
	s.t.Helper()
	return s.over(func() float64 { return s.worker.rate(within) })
}

// over is the pace that rate tells, and what is taken until it does.
func (s *siege) over(rate func() float64) pace {
	s.t.Helper()
	daemon, service, began := cpuOf(s.t, s.daemon), cpuOf(s.t, s.service), time.Now()
	perSec := rate()
	took := time.Since(began).Seconds()
	return pace{perSec, (cpuOf(s.t, s.daemon) - daemon).Seconds() / took,
		(cpuOf(s.t, s.service) - service).Seconds() / took}
}
