package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/grpcserver"
	reservations "urlserver/reservation/memory"
	"urlserver/urlserver"
)

// seen is a view of two daemons' spiders like a web server's. Lines may be delayed, so it records
// the earliest possible time of each request to a host: after the answer to the one before, and a
// gap after that was sent.
type seen struct {
	mu   sync.Mutex // guards all below
	t    *testing.T
	open map[string]bool
	next map[string]time.Time // earliest time of the next line
	free map[string]time.Time // time of the last answer
	urls map[string]int
}

const (
	sharedGap   = 200 * time.Millisecond
	sharedClock = 2 * time.Millisecond // the inaccuracy of Redis' clock, which counts milliseconds
)

func (s *seen) ask(host, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.open[host] {
		s.t.Errorf("%s is asked while another request is open", host)
	}
	sent := s.next[host]
	if now.Before(sent) {
		s.t.Errorf("%s is asked %v too soon; the gap is %v", host, sent.Sub(now), sharedGap)
	}
	if free := s.free[host]; free.After(sent) {
		sent = free
	}
	s.open[host], s.next[host] = true, sent.Add(sharedGap-sharedClock)
	s.urls[url]++
}

func (s *seen) answer(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[host], s.free[host] = false, time.Now()
}

// A lease is longer than a pause of the machine. Otherwise a group could be reserved by the other
// daemon while a spider still has a document of it.
const shared = `
[docindex]
seeds = [%q]
[reservation]
kind = "redis"
addrs = [%q]
lease = "20s"
`

// TestDaemonsShareHosts runs two daemons with documents of the same hosts, and one Redis.
func TestDaemonsShareHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	redistest.Need(t)
	redis := redistest.Start(t)
	s := &seen{t: t, open: map[string]bool{}, next: map[string]time.Time{}, free: map[string]time.Time{},
		urls: map[string]int{}}
	const hosts, docs = 3, 8
	var spiders sync.WaitGroup
	for n := range 2 {
		var urls strings.Builder
		for i := range hosts * docs {
			fmt.Fprintf(&urls, "http://127.9.0.%d/%d-%d\n", 1+i%hosts, n, i)
		}
		file := strings.Replace(base, "Req_Host_Per_Sec = 1000", "Req_Host_Per_Sec = 5", 1)
		d := startDaemon(t, write(t, fmt.Sprintf("u%d.toml", n),
			fmt.Sprintf(file, fmt.Sprintf(shared, write(t, fmt.Sprint("seeds", n), urls.String()), redis.Addr()))))
		f := dialSpider(t, d.spiders)
		spiders.Go(func() {
			for range hosts * docs {
				line := f.next() // TRANS_ID DOC_ID HOST_IP URL
				s.ask(line[2], line[3])
				time.Sleep(sharedGap / 8)
				s.answer(line[2])
				f.done(line[0])
			}
		})
	}
	spiders.Wait()
	if len(s.urls) != 2*hosts*docs {
		t.Errorf("%d URLs were asked for; want %d", len(s.urls), 2*hosts*docs)
	}
}

// serveReservations serves a reservation over gRPC until the test ends.
func serveReservations(t *testing.T, store reservation.Store) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- grpcserver.New(grpcserver.Config{Store: store, Log: zerolog.Nop()}).Serve(ctx, l) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// A daemon that lacks the lease of a host explains who holds it, and until when.
func TestExplainNamesTheHolder(t *testing.T) {
	store := reservations.New(reservations.Config{})
	addr, ctx := serveReservations(t, store), t.Context()
	if _, err := store.AddHost(ctx, "127.9.0.1", time.Time{}); err != nil {
		t.Fatal(err)
	}
	lease, err := store.TryReserve(ctx, "127.9.0.1", time.Hour, "far.example:7")
	if err != nil {
		t.Fatal(err)
	}

	d := startDaemon(t, settings(t, fmt.Sprintf("[reservation]\nkind = \"grpc\"\naddrs = [%q]\n", addr)))
	sp := dialSpider(t, d.spiders)
	command(t, "http://127.9.0.1/theirs\nhttp://127.9.0.2/ours\n", "put", "--at", d.at, "-").want(t, 0,
		`{"new":2,`, "")
	if url := sp.next()[3]; url != "http://127.9.0.2/ours" {
		t.Errorf("%s is sent", url)
	}
	want := fmt.Sprintf(
		"its group 127.9.0.1 is not reserved: the reservation is asked again and again; far.example:7 has it until %s",
		lease.LeaseEnd.UTC().Format(time.RFC3339))
	d.explains("127.9.0.1", want)
	if _, text := d.ask("GET", "/api/hosts/127.9.0.1", ""); !strings.Contains(text, want) {
		t.Errorf("/api/hosts/127.9.0.1 says %s; want %s", text, want)
	}
	if ours := command(t, "", "explain", "--at", d.at, "127.9.0.2"); strings.Contains(ours.out, "reserv") {
		t.Errorf("of its own host it says %s", ours.out)
	}
	if x, err := store.Explain(ctx, "127.9.0.2"); err != nil || x.Holder != holder() {
		t.Errorf("the reservation says of the daemon's host: %+v, %v; want %s for holder", x, err, holder())
	}
}

// silent is a reservation that receives requests and never answers.
type silent struct {
	reservation.Store
	swept chan struct{}
}

func (s *silent) Sweep(ctx context.Context) error {
	s.swept <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// TestSweepOfASilentReservation: the janitor cancels a sweep without an answer, and tries again.
func TestSweepOfASilentReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		store := &silent{swept: make(chan struct{})}
		s := server{janitor: time.Second, reserver: &urlserver.Reserver{Store: store}}
		var janitor sync.WaitGroup
		janitor.Go(func() { s.sweepReservation(ctx) })
		began := time.Now()
		for range 3 {
			<-store.swept
		}
		if took := time.Since(began); took > 3*(sweepTime+time.Second) {
			t.Errorf("the third sweep began after %v", took)
		}
		end()
		janitor.Wait()
	})
}
