package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/redis"
)

const (
	pairsTarget  = 20_000
	pairsCallers = 16
	pairsTime    = 5 * time.Second
	aloneTarget  = 4
)

// takeWaiting measures reservations and releases through one Redis, with few and with many waiting
// groups.
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
			what: fmt.Sprintf("reserve and release through one Redis: %s groups waiting, %d callers",
				count(groups), pairsCallers),
			target: "≥ " + count(pairsTarget) + "/s",
			measured: fmt.Sprintf("%s/s; CPU of a pair: Redis %.1f µs, callers %.1f µs", count(p.rate),
				micros(p.redis), micros(p.callers)),
			met: judge(p.rate >= pairsTarget),
			how: "1,000 groups are due, the others in an hour; each caller reserves the next one and " +
				"releases it at once;" +
				" CPU of Redis' main thread by the kernel's schedstat, of the callers by their whole process",
		}
		if few.rate == 0 {
			few = p
		} else {
			r.beside = fmt.Sprintf("%.2f of the rate with 10,000, %.2f of Redis' CPU", p.rate/few.rate,
				float64(p.redis)/float64(few.redis))
		}
		rows = append(rows, r)
	}
	alone, err := pairsAlone(ctx, server)
	if err != nil {
		return rows, err
	}
	served, err := pairsServed(ctx, b, server)
	return append(rows, alone, served), err
}

// pairsAlone measures reservations and releases of one caller. In turn with these it measures
// commands that do nothing in Redis.
func pairsAlone(ctx context.Context, server *redisServer) (r row, err error) {
	s := redis.New(redis.Config{Addrs: []string{server.addr}, Prefix: "a:"})
	defer s.Close()
	if err := addGroups(ctx, s, 1000); err != nil {
		return r, err
	}
	conn, err := net.Dial("tcp", server.addr)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	const turns, each = 10, 1000
	var pairs, pings time.Duration
	for range turns {
		took, err := timeOf(each, func() error { return pair(ctx, s) })
		pairs += took
		if err != nil {
			return r, err
		}
		took, err = timeOf(each, func() error { return ping(conn) })
		pings += took
		if err != nil {
			return r, err
		}
	}
	const n = turns * each
	return row{
		what:   "reserve and release through one Redis: one caller",
		target: fmt.Sprintf("≤ %d round trips", aloneTarget),
		measured: fmt.Sprintf("%.1f; a pair, which is two calls, %.0f µs", float64(pairs)/float64(pings),
			micros(pairs/n)),
		met:    judge(pairs <= aloneTarget*pings),
		beside: fmt.Sprintf("PING: %.0f µs", micros(pings/n)),
		how:    "1,000 groups are due; pairs and PINGs in turns of 1,000",
	}, nil
}

func timeOf(times int, do func() error) (time.Duration, error) {
	began := time.Now()
	for range times {
		if err := do(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func ping(conn net.Conn) error {
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, len("+PONG\r\n")))
	return err
}

// pairs is a rate of reservations with their releases, and the CPU time of one.
type pairs struct {
	rate                    float64
	redis, callers, service time.Duration
}

func pairsOf(ctx context.Context, s *redis.Store, server *redisServer, groups int) (p pairs, err error) {
	if err := addGroups(ctx, s, groups); err != nil {
		return p, err
	}
	return pairsThrough(ctx, s, server)
}

// pairsThrough measures pairs of pairsCallers callers, and the CPU time of Redis and of this process.
func pairsThrough(ctx context.Context, s reservation.Store, server *redisServer) (p pairs, err error) {
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
	p.redis, p.callers = (redisAfter.ran-redisBefore.ran)/time.Duration(n),
		(after.CPU-before.CPU)/time.Duration(n)
	return p, err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// addGroups adds a thousand groups that are due, and others that are due later.
func addGroups(ctx context.Context, s *redis.Store, groups int) error {
	const due, batch = 1000, 1000
	later := time.Now().Add(time.Hour)
	for from := 0; from < groups; from += batch {
		calls := make([]reservation.Call, batch)
		for i := range calls {
			calls[i] = reservation.Call{Verb: reservation.AddHost,
				Host: fmt.Sprintf("h%d.test", from+i), Time: later}
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

func countPairs(ctx context.Context, s reservation.Store) (n int64, err error) {
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

func pair(ctx context.Context, s reservation.Store) error {
	got, err := s.ReserveNextHost(ctx, time.Minute, 1, "bench")
	if err != nil {
		return err
	}
	return s.ReleaseHost(ctx, got[0].Host, got[0].Token, time.Time{})
}
