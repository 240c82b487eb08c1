package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/redis"
	"urlserver/urlserver"
)

const (
	reservingHosts = 100_000
	reservingURLs  = 1_000_000
	reservingRate  = 0.5 // requests a second to a host, as by default
	reservingShare = 0.1 // of the CPU, at most
	reservingEnds  = time.Minute
	pairsTarget    = 20_000
	pairsCallers   = 16
	pairsTime      = 5 * time.Second
)

// takeReserving has 100,000 slots be filled and emptied at the default pace, without and with a reservation.
func takeReserving(ctx context.Context, b *bench) (rows []row, err error) {
	none, err := reservingDaemon(ctx, b, "", "none")
	if err != nil {
		return nil, err
	}
	stores := map[string]string{"memory": "memory"}
	server, err := startRedis(ctx)
	switch {
	case errors.Is(err, errNoRedis):
		fmt.Fprintln(b.errs, err)
	case err != nil:
		return nil, err
	default:
		stores["Redis"] = server.addr
		defer func() { err = errors.Join(err, server.stop()) }()
	}
	for _, name := range []string{"memory", "Redis"} {
		if stores[name] == "" {
			continue
		}
		cpu, err := reservingDaemon(ctx, b, stores[name], name)
		if err != nil {
			return rows, err
		}
		share := max(0, float64(cpu-none)/float64(cpu))
		rows = append(rows, row{
			what:   "share of reservations in " + name + " in the daemon's CPU: 100,000 slots turning over",
			target: fmt.Sprintf("< %.0f %%", 100*reservingShare),
			measured: fmt.Sprintf("%.0f %% (%.1f s; without reservations %.1f s; %.1f µs a slot)",
				100*share, cpu.Seconds(), none.Seconds(), float64((cpu-none).Microseconds())/reservingHosts),
			met: judge(share < reservingShare),
			how: "1,000,000 URLs on 100,000 addresses, each asked once in 2 s; CPU of the daemon's process from the first URL put until all is answered and given back, less that of a run without",
		})
	}
	return rows, nil
}

func reservingDaemon(ctx context.Context, b *bench, store, name string) (cpu time.Duration, err error) {
	var addr string
	job := daemon{
		Slots: reservingHosts, PerSec: reservingRate, MaxInFlight: reservingHosts, Batch: 10_000,
		URLs: reservingURLs, Hosts: reservingHosts, Reservation: store,
	}
	d, err := b.start(ctx, "daemon", &job, &addr)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if b.profiles != "" {
		if err := d.ask("profile", filepath.Join(b.profiles, "reserving-"+name+".prof"), nil); err != nil {
			return 0, err
		}
	}
	var before, after usage
	if err := d.ask("usage", "", &before); err != nil {
		return 0, err
	}
	if err := d.ask("fill", "", nil); err != nil {
		return 0, err
	}
	if err := answerLines(ctx, b, addr, 4, &result{}); err != nil {
		return 0, err
	}
	if _, err := await(ctx, d, reservingEnds, func(s *urlserver.Status) bool { return s.Claims == 0 }); err != nil {
		return 0, err // giving back counts
	}
	err = d.ask("usage", "", &after)
	return after.CPU - before.CPU, err
}

// takeWaiting reserves and releases through one Redis, with few and with many groups that wait.
func takeWaiting(ctx context.Context, b *bench) (rows []row, err error) {
	server, err := startRedis(ctx)
	if errors.Is(err, errNoRedis) {
		fmt.Fprintln(b.errs, err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	var few pairs
	for _, groups := range []int{10_000, 1_000_000} {
		s := redis.New(redis.Config{Addrs: []string{server.addr}, Prefix: fmt.Sprintf("w%d:", groups)})
		p, err := pairsOf(ctx, s, server, groups)
		s.Close()
		if err != nil {
			return rows, err
		}
		r := row{
			what:     fmt.Sprintf("reserve and release through one Redis: %s groups waiting, %d callers", count(groups), pairsCallers),
			target:   "≥ " + count(pairsTarget) + "/s",
			measured: fmt.Sprintf("%s/s; CPU of a pair: Redis %.1f µs, callers %.1f µs", count(p.rate), micros(p.redis), micros(p.callers)),
			met:      judge(p.rate >= pairsTarget),
			how: "1,000 groups are due, the others in an hour; each caller reserves the next one and releases it at once;" +
				" CPU of Redis' main thread by the kernel's schedstat, of the callers by their whole process",
		}
		if few.rate == 0 {
			few = p
		} else {
			r.beside = fmt.Sprintf("%.2f of the rate with 10,000, %.2f of Redis' CPU", p.rate/few.rate, float64(p.redis)/float64(few.redis))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// pairs is what callers get through: how many a second, and the CPU time of one.
type pairs struct {
	rate           float64
	redis, callers time.Duration
}

func pairsOf(ctx context.Context, s *redis.Store, server *redisServer, groups int) (p pairs, err error) {
	if err := addGroups(ctx, s, groups); err != nil {
		return p, err
	}
	redisBefore, err := server.used()
	if err != nil {
		return p, err
	}
	before, err := readUsage()
	if err != nil {
		return p, err
	}
	began := time.Now()
	n, err := countPairs(ctx, s)
	if err != nil || n == 0 {
		return p, err
	}
	p.rate = float64(n) / time.Since(began).Seconds()
	after, err := readUsage()
	if err != nil {
		return p, err
	}
	redisAfter, err := server.used()
	p.redis, p.callers = (redisAfter.ran-redisBefore.ran)/time.Duration(n), (after.CPU-before.CPU)/time.Duration(n)
	return p, err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// addGroups adds a thousand groups that are due, and others for later.
func addGroups(ctx context.Context, s *redis.Store, groups int) error {
	const due, batch = 1000, 1000
	later := time.Now().Add(time.Hour)
	for from := 0; from < groups; from += batch {
		calls := make([]reservation.Call, batch)
		for i := range calls {
			calls[i] = reservation.Call{Verb: reservation.AddHost, Host: fmt.Sprintf("h%d.test", from+i), Time: later}
			if from+i < due {
				calls[i].Time = time.Time{}
			}
		}
		for _, a := range s.Do(ctx, calls) {
			if a.Err != nil {
				return a.Err
			}
		}
	}
	return nil
}

func countPairs(ctx context.Context, s *redis.Store) (n int64, err error) {
	var made atomic.Int64
	var failed atomic.Pointer[error]
	var callers sync.WaitGroup
	began := time.Now()
	for range pairsCallers {
		callers.Go(func() {
			for time.Since(began) < pairsTime && failed.Load() == nil {
				if err := pair(ctx, s); err != nil {
					failed.Store(&err)
					return
				}
				made.Add(1)
			}
		})
	}
	callers.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return made.Load(), nil
}

func pair(ctx context.Context, s *redis.Store) error {
	got, err := s.ReserveNextHost(ctx, time.Minute, 1, "bench")
	if err != nil {
		return err
	}
	return s.ReleaseHost(ctx, got[0].Host, got[0].Token, time.Time{})
}
