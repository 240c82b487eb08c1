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

// With a thousand clients per listener for 60s, the pace is checked, too.
var (
	hostileCount = flag.Int("hostile", 40, "hostile clients a target")
	hostileTime  = flag.Duration("hostile-for", 2*time.Second,
		"how long they attack the daemon; from 60s on each has to be cut, and the pace has to keep")
)

const (
	hostileMemory = 64 << 20
	judgedFrom    = time.Minute
	hostileLoss   = 0.1 // of the pace, and of the cores
)

// crawlPace is the size and the rate of a crawl under hostile load.
type crawlPace struct {
	hosts, each int // documents of each host
	perSec      int // requests per second to a host
}

// hostileLoad is a daemon, its host reservation service and its spider.
type hostileLoad struct {
	t       *testing.T
	daemon  *child
	service *child // hostreservation
	http    string
	worker  *worker
	targets []*target
}

// target is a listener and its hostile clients.
type target struct {
	name, addr string
	kinds      []*hostile
}

// settings returns the settings file of a daemon with a token at each listener, and seeds.
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

// startHostileLoad starts a crawl. It returns when the first document is done, before any hostile
// client connects.
func startHostileLoad(t *testing.T, pace crawlPace) *hostileLoad {
	t.Helper()
	cert := certstest.New(t)
	s := &hostileLoad{t: t, service: startCommand(t, childService, "serve", "--listen", "127.0.0.1:0",
		"--metrics", "127.0.0.1:0", "--token", "right")}
	metrics := s.service.log.until("metrics")["address"].(string)
	reservations := s.service.log.until("serving")["address"].(string)
	s.daemon = startCommand(t, "urlserver", "serve", pace.settings(t, cert, reservations))
	s.http = s.daemon.log.until("listening for HTTP")["address"].(string)
	clients := s.daemon.log.until("listening for clients")["address"].(string)
	spiders := s.daemon.log.until("listening for spiders")["address"].(string)
	s.targets = []*target{
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

// begin starts the clients of some listeners; lift ends them.
func (s *hostileLoad) begin(targets []*target) (lift func()) {
	var all []func()
	for _, d := range targets {
		all = append(all, attack(s.t.Context(), d.addr, d.kinds, *hostileCount))
	}
	return func() {
		for _, lift := range all {
			lift()
		}
	}
}

// end checks the results of the crawl, and ends it.
func (s *hostileLoad) end() {
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

// A crawl continues while slow, silent, oversized and malformed clients connect to every listener
// of a daemon, and then of its host reservation service. Each document is sent once, none to an
// unauthenticated client, the operator gets answers, and the memory does not grow. Where it can be
// measured, the pace does not fall: that of this crawl, and that of a crawl at full pace.
func TestHostileClients(t *testing.T) {
	calm := *hostileTime / 2
	const hosts, phases = 100, 2
	perSec, spare := 20, 20*time.Second
	// without a check of the pace, use one that keeps the crawl running on a slow machine
	if *hostileTime < judgedFrom {
		perSec, spare = 4, 2*time.Minute
	}
	s := startHostileLoad(t, crawlPace{hosts: hosts, perSec: perSec,
		each: perSec * int((calm + phases**hostileTime + spare).Seconds())})
	before := s.pace(calm)
	rss := []int{memoryOf(t, s.daemon, "VmRSS"), memoryOf(t, s.service, "VmRSS")}
	t.Logf("%v; they have %d and %d MB", before, rss[0]>>20, rss[1]>>20)
	for _, targets := range [phases][]*target{s.targets[:3], s.targets[3:]} {
		s.underLoad(targets, before)
	}
	for i, c := range []*child{s.daemon, s.service} {
		if most := memoryOf(t, c, "VmHWM"); most-rss[i] > hostileMemory {
			t.Errorf("the %s grew by %d MB; want at most %d", []string{"daemon", "reservation"}[i],
				(most-rss[i])>>20, hostileMemory>>20)
		}
	}
	s.end()
	if *hostileTime >= judgedFrom {
		judgeFullPace(t)
	}
}

// underLoad checks the crawl while clients are connected, compared with before.
func (s *hostileLoad) underLoad(targets []*target, before pace) {
	s.t.Helper()
	lift := s.begin(targets)
	sent := s.worker.done.Load()
	under := s.pace(*hostileTime)
	s.worker.goesOn(s.t, sent)
	command(s.t, "", "status", "--at", "http://"+s.http, "--token", "right").want(s.t, 0, "in flight", "")
	lift()
	s.t.Logf("%v under %d clients at each of %d targets, from %q on; they have had %d and %d MB", under,
		*hostileCount, len(targets), targets[0].name,
		memoryOf(s.t, s.daemon, "VmHWM")>>20, memoryOf(s.t, s.service, "VmHWM")>>20)
	if *hostileTime < judgedFrom {
		return
	}
	for _, d := range targets {
		s.t.Logf("%.0f connections a second at %s", float64(came(d.kinds))/hostileTime.Seconds(), d.name)
		if missing := mustCut(d.name, d.kinds); missing != nil {
			s.t.Errorf("never cut: %q", missing)
		}
	}
	s.judge(before, under)
}

// judge checks that the pace is kept. If spider and clients, which share this machine, leave the
// daemon too little CPU, it checks the clients' CPU cost instead: a crawl that uses all cores has
// that much less.
func (s *hostileLoad) judge(before, under pace) {
	s.t.Helper()
	cost, most := under.daemon-before.daemon/before.perSec*under.perSec, hostileLoss*float64(runtime.NumCPU())
	s.t.Logf("the clients cost the daemon %.3f of a core, and the reservation %.3f", cost,
		under.service-before.service)
	if under.perSec < before.perSec*(1-hostileLoss) && cost > most {
		s.t.Errorf("the pace fell from %.0f to %.0f documents a second, and the clients cost the daemon "+
			"%.3f of a core; want at most %.2f",
			before.perSec, under.perSec, cost, most)
	}
}

// judgeFullPace runs a crawl at a high pace alone, and then with clients at the daemon's listeners.
func judgeFullPace(t *testing.T) {
	t.Helper()
	const hosts, perSec, settling, all = 2000, 25, 5 * time.Second, 20 * time.Second
	s := startHostileLoad(t, crawlPace{hosts: hosts, each: int(perSec * (2*settling + 2*all).Seconds()),
		perSec: perSec})
	time.Sleep(settling) // while hosts are reserved and requested for the first time
	before := s.pace(all / 2)
	lift := s.begin(s.targets[:3])
	under := s.pace(all)
	lift()
	s.end()
	t.Logf("at full pace: %v; %v under hostile load", before, under)
	s.judge(before, under)
}

// pace is the number of documents done per second, and the share of a core that each process uses.
type pace struct{ perSec, daemon, service float64 }

func (p pace) String() string {
	return fmt.Sprintf("%.0f documents a second; daemon and reservation take %.3f and %.3f of a core",
		p.perSec, p.daemon, p.service)
}

func (s *hostileLoad) pace(within time.Duration) pace {
	s.t.Helper()
	return s.over(func() float64 { return s.worker.rate(within) })
}

// over measures the pace while rate runs.
func (s *hostileLoad) over(rate func() float64) pace {
	s.t.Helper()
	daemon, service, began := cpuOf(s.t, s.daemon), cpuOf(s.t, s.service), time.Now()
	perSec := rate()
	took := time.Since(began).Seconds()
	return pace{perSec, (cpuOf(s.t, s.daemon) - daemon).Seconds() / took,
		(cpuOf(s.t, s.service) - service).Seconds() / took}
}
