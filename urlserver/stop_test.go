package urlserver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	memindex "urlserver/docindex/memory"
	"urlserver/reservation"
	"urlserver/reservation/memory"
	"urlserver/urlserver/engine"
)

func TestStopWaitsForWhatIsInFlight(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer time.Duration // time after the stop; 0: none
		took   time.Duration
		want   []string
	}{
		{name: "answered", answer: 7 * second, took: 7 * second, want: []string{"0 done"}},
		{name: "not answered", took: stopWait},
		{name: "too late", answer: 11 * second, took: stopWait},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, nil)
				b.index.offer("0 http://10.0.0.1/0", "1 http://10.0.0.1/1")
				s := b.spider()
				trans, _ := s.line()
				if c.answer > 0 {
					time.AfterFunc(c.answer, func() { s.conn.Write([]byte(trans + " DONE\n")) })
				}
				rest := make(chan string, 1)
				go func() { rest <- s.closed() }()
				took, err := b.stop()
				if took != c.took || err != nil {
					t.Errorf("stop took %v, %v; want %v", took, err, c.took)
				}
				if text := <-rest; text != "" {
					t.Errorf("%q was sent after the stop", text)
				}
				if taken, _ := b.index.outcomes(time.Now()); !slices.Equal(taken, c.want) {
					t.Errorf("outcomes %v; want %v", taken, c.want)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestStopWithoutWork: with nothing in flight the daemon ends at once, with or without connected
// spiders, also with documents held.
func TestStopWithoutWork(t *testing.T) {
	for _, spiders := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, nil)
			if spiders == 0 {
				b.index.offer(onHosts(9)...)
			}
			for range spiders {
				b.spider()
			}
			synctest.Wait()
			if took, err := b.stop(); took != 0 || err != nil {
				t.Errorf("with %d spiders stop took %v: %v", spiders, took, err)
			}
			if _, err := b.d.Status(t.Context()); err != ErrStopped {
				t.Errorf("Status of a stopped daemon: %v; want ErrStopped", err)
			}
			if _, _, err := b.d.Reconfigure(t.Context(), b.d.Settings()); err != ErrStopped {
				t.Errorf("Reconfigure of a stopped daemon: %v; want ErrStopped", err)
			}
		})
	}
}

// TestStopComesBeforeWhatWaits stops a busy daemon while a spider with room waits for documents.
func TestStopComesBeforeWhatWaits(t *testing.T) {
	for range 20 { // the run loop may see either first
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, nil)
			b.index.offer("0 http://10.0.0.1/0", "1 http://10.0.0.1/1")
			s := b.spider()
			trans, _ := s.line()
			time.Sleep(time.Minute)
			busy := make(chan struct{})
			b.d.post(func(*engine.Engine) { <-busy })
			synctest.Wait()
			b.end()
			s.say("%s DONE", trans)
			synctest.Wait()
			close(busy)
			if text := s.closed(); text != "" {
				t.Fatalf("%q was sent after the stop", text)
			}
			if err := <-b.ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// TestPutWakesAnIdleDaemon puts a URL into an embedded index that was empty for so long that it is
// asked once a minute.
func TestPutWakesAnIdleDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memindex.New()
		b := (&bubble{t: t, store: store}).start(nil, Parts{Index: store, Store: store})
		s := b.spider()
		time.Sleep(time.Hour)
		put(t, store, "http://10.0.0.1/")
		began := time.Now()
		trans, _ := s.line()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the document came %v after it was put; want at once", waited)
		}
		s.say("%s DONE 200", trans)
		synctest.Wait()
		if got := store.Stats().Outcomes[docindex.Done]; got != 1 {
			t.Errorf("%d documents are done in the store; want 1", got)
		}
		b.stopped()
	})
}

func put(t *testing.T, store docindex.Store, urls ...string) {
	t.Helper()
	var p docindex.Puts
	for _, u := range urls {
		if err := p.Add(docindex.Put{URL: []byte(u)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// busy is a slow reservation: each call takes until its context ends.
type busy struct {
	*memory.Store
	asked chan struct{}
}

func (b *busy) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	b.asked <- struct{}{}
	<-ctx.Done()
	answers := make([]reservation.Answer, len(calls))
	for i := range answers {
		answers[i].Err = ctx.Err()
	}
	return answers
}

// TestStopIsNoFaultOfTheReservation: calls that the daemon cancels when it stops cause no warning.
func TestStopIsNoFaultOfTheReservation(t *testing.T) {
	for _, c := range []struct {
		name  string
		stops time.Duration // after the first call of the reservation
		warns bool
	}{
		{name: "at once"},
		{name: "after a quarter of a lease", stops: 15*second + 1, warns: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &busy{memory.New(memory.Config{}), make(chan struct{}, 1000)}
				log, b := &logged{}, &bubble{t: t, index: &fakeIndex{}}
				b.start(nil, Parts{Index: b.index, Reserver: &Reserver{Store: store, Lease: time.Minute,
					Holder: "me", Log: zerolog.New(log)}})
				b.index.offer("0 http://10.0.0.1/0")
				<-store.asked
				time.Sleep(c.stops)
				b.stopped()
				if n := log.count("reservation does not answer"); (n > 0) != c.warns {
					t.Errorf("the store was blamed %d times; want it: %v", n, c.warns)
				}
			})
		})
	}
}
