package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"urlserver/docindex/redis"
)

const (
	scaleURLs     = 20_000
	scaleHosts    = 2_000
	scalePatience = 5 * time.Minute
	scaleLook     = 100 * time.Millisecond
)

// takeDaemons measures one, two and four daemons with one index in Redis. Their reservations are
// in the same Redis.
func takeDaemons(ctx context.Context, b *bench) (rows []row, err error) {
	alone := 0.0
	for _, daemons := range []int{1, 2, 4} {
		s := scale{daemons: daemons, urls: scaleURLs, hosts: scaleHosts}
		err := s.run(ctx, b)
		if errors.Is(err, errNoRedis) {
			fmt.Fprintln(b.errs, err)
			return nil, nil
		}
		if err != nil {
			return rows, err
		}
		if daemons == 1 {
			alone = s.rate()
		}
		rows = append(rows, s.row(alone))
	}
	return rows, nil
}

// scale is a run of some daemons with one Redis.
type scale struct {
	daemons, urls, hosts int

	took                 time.Duration // from the start of the first daemon until Redis has the last outcome
	byDaemons, bySpiders time.Duration // CPU time of all of them
	byRedis              scheduled
}

func (s *scale) rate() float64 { return float64(s.urls) / s.took.Seconds() }

func (s *scale) run(ctx context.Context, b *bench) (err error) {
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	store := redis.New(redis.Config{Addrs: []string{server.addr}, Lease: time.Minute, Janitor: time.Minute})
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := fill(ctx, store, s.hosts, 0, s.urls); err != nil {
		return err
	}
	before, err := server.used()
	if err != nil {
		return err
	}
	if err := s.work(ctx, b, server.addr, store); err != nil {
		return err
	}
	after, err := server.used()
	s.byRedis = scheduled{ran: after.ran - before.ran, waited: after.waited - before.waited}
	return err
}

// work starts daemons and their spiders, and waits until all documents are completed.
func (s *scale) work(ctx context.Context, b *bench, addr string, store *redis.Store) (err error) {
	began := time.Now()
	job := daemon{Slots: 4096, PerSec: 1e6, MaxInFlight: 10_000, Batch: 1000, Reservation: addr, Shared: addr}
	var daemons, spiders []*child
	defer func() {
		for _, c := range append(spiders, daemons...) {
			err = errors.Join(err, c.stop())
		}
	}()
	for n := range s.daemons {
		var door string
		d, err := b.start(ctx, "daemon", &job, &door)
		if err != nil {
			return err
		}
		daemons = append(daemons, d)
		if err := b.profileOf(d, fmt.Sprintf("daemons-%d-%d.prof", s.daemons, n)); err != nil {
			return err
		}
		spider, err := b.start(ctx, "spider", &spider{Addr: door, Conns: 1}, nil)
		if err != nil {
			return err
		}
		spiders = append(spiders, spider)
	}
	if err := s.await(ctx, store); err != nil {
		return err
	}
	s.took = time.Since(began)
	if s.byDaemons, err = cpuOf(daemons); err != nil {
		return err
	}
	s.bySpiders, err = cpuOf(spiders)
	return err
}

// await waits until all documents are completed.
func (s *scale) await(ctx context.Context, store *redis.Store) error {
	ctx, cancel := context.WithTimeout(ctx, scalePatience)
	defer cancel()
	for {
		st := store.Stats()
		if st.Completed == s.urls {
			return nil
		}
		if err := pause(ctx, scaleLook); err != nil {
			return fmt.Errorf("%d daemons: scheduled %d, in transit %d, completed %d: %w", s.daemons,
				st.Scheduled, st.InTransit, st.Completed, err)
		}
	}
}

func cpuOf(children []*child) (sum time.Duration, err error) {
	for _, c := range children {
		var u usage
		if err := c.ask("usage", "", &u); err != nil {
			return 0, err
		}
		sum += u.CPU
	}
	return sum, nil
}

func (s *scale) row(alone float64) row {
	perMillion := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(s.urls) }
	share := func(d time.Duration) float64 { return 100 * float64(d) / float64(s.took) }
	return row{
		what: fmt.Sprintf("URLs/s from an index and a reservation in one Redis, daemons: %d", s.daemons),
		measured: fmt.Sprintf("%s (CPU of a million URLs: daemons %.0f s, Redis %.0f s, spiders %.1f s)",
			count(s.rate()), perMillion(s.byDaemons), perMillion(s.byRedis.ran), perMillion(s.bySpiders)),
		beside: fmt.Sprintf("%.2f of one daemon's; Redis works for %.0f %% of the time and waits for a "+
			"core for %.0f %%; all together on %.1f of %d cores",
			s.rate()/alone, share(s.byRedis.ran), share(s.byRedis.waited),
			share(s.byDaemons+s.bySpiders+s.byRedis.ran)/100, runtime.NumCPU()),
		how: fmt.Sprintf("%s URLs on %s addresses, no gaps, robots.txt off, 4,096 slots and a spider "+
			"that says DONE at once for each daemon;"+
			" from the start of the first daemon until Redis has the last outcome", count(s.urls),
			count(s.hosts)),
	}
}
