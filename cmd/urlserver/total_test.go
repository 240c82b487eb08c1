package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	reserveredis "urlserver/reservation/redis"
)

// lateStore is a reservation whose first answer to a call of one kind comes late: the call has its
// effect at once, and the caller hears of it when late closes, or has stopped waiting by then.
type lateStore struct {
	reservation.Store
	what  string
	begun atomic.Bool
	done  chan struct{} // closed when the call has had its effect
	late  chan struct{}
}

func (s *lateStore) delay(ctx context.Context, what string) {
	if what != s.what || s.begun.Swap(true) {
		return
	}
	close(s.done)
	select {
	case <-s.late:
	case <-ctx.Done():
	}
}

func (s *lateStore) AddHost(ctx context.Context, host string, earliest time.Time) (bool, error) {
	added, err := s.Store.AddHost(ctx, host, earliest)
	s.delay(ctx, "AddHost")
	return added, err
}

func (s *lateStore) TryReserve(ctx context.Context, host string, lease time.Duration,
	holder string) (reservation.Reservation, error) {
	r, err := s.Store.TryReserve(ctx, host, lease, holder)
	if err == nil {
		s.delay(ctx, "TryReserve")
	}
	return r, err
}

// TestNothingCountsAfterTheEnd ends a daemon while a service's answer is on its way, or lost.
// Nothing counts in Redis then.
func TestNothingCountsAfterTheEnd(t *testing.T) {
	for name, late := range map[string]struct {
		what string
		lost bool
	}{
		"AddHost":      {what: "AddHost"},
		"TryReserve":   {what: "TryReserve"},
		"AddHost lost": {what: "AddHost", lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			redis := redistest.Start(t)
			plain := reserveredis.New(reserveredis.Config{Addrs: []string{redis.Addr()},
				Penalty: 100 * time.Millisecond})
			defer plain.Close()
			store := &lateStore{Store: plain, what: late.what, done: make(chan struct{}), late: make(chan struct{})}
			addr := serveReservations(t, store)
			lease := "1h" // nothing ends by itself
			if late.lost {
				lease = "4s" // an answer that takes a quarter of it is lost
			}
			d := startDaemon(t,
				settings(t, fmt.Sprintf("[reservation]\nkind = \"grpc\"\nlease = %q\naddrs = [%q]\n", lease, addr)))
			dialSpider(t, d.spiders)
			putOf(t, d.at, "{\"url\":\"http://127.9.0.1/\"}\n")
			<-store.done
			if !late.lost {
				d.end()
				// A daemon that gives up what it waits for has done so by then, on a machine that
				// is not too busy.
				time.AfterFunc(answerAfterEnd, func() { close(store.late) })
			}
			d.stop()
			if total := strings.TrimSpace(redis.CLI("GET", "chg_total{chg}")); total != "0" {
				t.Errorf("chg_total is %s when the daemon has ended, of %s; want 0", total,
					strings.TrimSpace(redis.CLI("HKEYS", "chg_known{chg}")))
			}
		})
	}
}

const answerAfterEnd = 300 * time.Millisecond
