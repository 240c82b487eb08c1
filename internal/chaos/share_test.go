package chaos

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
)

const (
	sharePerSec     = 40
	shareConcurrent = 16
	shareHosts      = 300
	shareWindow     = 5 * time.Second // in which the pace is judged
)

// sharedWeb is the web servers of a shared network. It counts the requests to all of them.
type sharedWeb struct {
	oracle *oracle // of the sites
	takes  time.Duration

	mu       sync.Mutex // guards all below
	arrivals []time.Time
	open     int
	mostOpen int
}

func (w *sharedWeb) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	w.mu.Lock()
	w.open++
	w.mostOpen = max(w.mostOpen, w.open)
	w.arrivals = append(w.arrivals, time.Now())
	w.mu.Unlock()
	end := w.oracle.arrive(netip.Addr{}, host, r.URL.Path, r.UserAgent())
	time.Sleep(w.takes) // the page takes that long
	end()
	w.mu.Lock()
	w.open--
	w.mu.Unlock()
	answer := "page\n"
	if r.URL.Path == "/robots.txt" {
		answer = "User-agent: *\nAllow: /\n"
	}
	fmt.Fprint(out, answer)
}

// during returns how many requests arrived from from on and before to.
func (w *sharedWeb) during(from, to time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.arrivals {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// fullest returns the most requests that arrived within a window.
func (w *sharedWeb) fullest(window time.Duration) (most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := 0
	for last, at := range w.arrivals {
		for at.Sub(w.arrivals[first]) >= window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// TestSharedNetwork: four daemons crawl the sites of one shared network. The web servers count the
// requests: never more than the network's cap, and at least nine tenths of it.
func TestSharedNetwork(t *testing.T) {
	beside(t)
	t.Run("redis", func(t *testing.T) {
		t.Parallel() // it mostly waits
		redis := redistest.Start(t)
		r := newShareRig(t, 100*time.Millisecond)
		r.share(fmt.Sprintf("kind = \"redis\"\naddrs = [%q]", redis.Addr()), sharePerSec, 40)
	})
	t.Run("grpc", func(t *testing.T) {
		t.Parallel()
		r := newShareRig(t, 400*time.Millisecond)
		addr := r.world.own(100) + ":7072"
		r.others = append(r.others, &process{t: t, name: "service", log: filepath.Join(r.dir, "service.log"),
			args: func() []string {
				return []string{r.bin + "hostreservation", "serve", "--listen", addr, "--store", "memory",
					"--penalty", r.penalty.String(), "--janitor", r.janitor.String()}
			}})
		r.share(fmt.Sprintf("kind = \"grpc\"\naddrs = [%q]", addr), 1000, shareConcurrent)
	})
}

// shareRig is daemons and spiders that crawl one shared network.
type shareRig struct {
	*rig
	web  *sharedWeb
	late *stalls
}

func newShareRig(t *testing.T, takes time.Duration) *shareRig {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	r := &shareRig{late: &stalls{}, rig: &rig{
		t: t, rnd: rand.New(rand.NewPCG(1, 0)), bin: build(t), dir: t.TempDir(),
		lease: *leases, penalty: time.Second, janitor: time.Second,
		site: limits{gap: time.Second, open: 1}, address: limits{gap: time.Second, open: 1},
	}}
	r.late.watch(t)
	var l net.Listener
	var err error
	for range 20 { // another run may have these addresses
		r.world = newWorld(byte(100+rand.IntN(100)), shareHosts)
		if l, err = net.Listen("tcp", r.world.own(1)+":4100"); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.oracle = newOracle(r.site, nil, takes, r.late)
	r.web = &sharedWeb{oracle: r.oracle, takes: takes}
	serveWeb(t, r.world.addrs, r.web)
	r.index = newIndex(r.world.hosts, r.rnd)
	// One host in five is offered to all daemons, so that they compete for it. Each other one is
	// offered to one, so that all daemons have enough to do.
	r.index.keeps = func(taker string, host int) bool {
		return host%5 > 0 && !strings.HasPrefix(taker, fmt.Sprintf("daemon%d.", host%5-1))
	}
	srv := &http.Server{Handler: r.index}
	go srv.Serve(l) // until Close
	t.Cleanup(func() { srv.Close() })
	r.indexAddr = l.Addr().String()
	return r
}

// share runs daemons that share a cap, and judges what the web servers have seen.
func (r *shareRig) share(reservation string, perSec, concurrent int) {
	t := r.t
	t.Helper()
	r.reservation = func(int) string {
		return fmt.Sprintf(
			"%s\n[[rules]]\nnetworks = [\"127.%d.0.0/16\"]\nshared = true\nper_sec = %d\nconcurrent = %d",
			reservation, r.world.net, perSec, concurrent)
	}
	for n := range daemonCount {
		r.daemons = append(r.daemons, r.newDaemon(n))
		s := r.newSpider(n, 0)
		s.args = func() []string {
			return []string{r.bin + "spider", "serve", "--dial", r.listens(n), "--log-level", "warn"}
		}
		r.spiders = append(r.spiders, s)
	}
	t.Cleanup(r.end)
	for _, p := range r.processes() {
		p.start()
	}
	began := time.Now()
	for time.Since(began) < 8*r.lease { // four to divide the cap, and four to count
		time.Sleep(lookInterval) // between two looks
		for _, d := range r.daemons {
			if !d.runs() {
				t.Fatalf("%s has ended by itself:\n%s", d.name, d.tail())
			}
		}
	}
	from, to := began.Add(4*r.lease), began.Add(8*r.lease)
	full := min(float64(perSec), float64(concurrent)/r.web.takes.Seconds())
	got := float64(r.web.during(from, to)) / to.Sub(from).Seconds()
	late := r.late.worst(began)
	t.Logf("%.1f requests a second of %.1f; at most %d open of %d; at most %d within %v; the machine "+
		"was at most %v late",
		got, full, r.web.mostOpen, concurrent, r.web.fullest(shareWindow), shareWindow, late)
	if r.web.mostOpen > concurrent {
		t.Errorf("%d requests were open at once; want at most %d", r.web.mostOpen, concurrent)
	}
	most := float64(perSec)*(shareWindow+slack+4*late).Seconds() + daemonCount
	if n := r.web.fullest(shareWindow); float64(n) > most {
		t.Errorf("%d requests came within %v; want at most %.0f", n, shareWindow, most)
	}
	if got < 0.9*full && late < slack {
		t.Errorf("%.1f requests a second; want at least %.1f", got, 0.9*full)
	}
	r.oracle.mu.Lock()
	defer r.oracle.mu.Unlock()
	for _, text := range r.oracle.faults.first {
		t.Error(text)
	}
}
