package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/configs"
	"urlserver/internal/resolver"
)

const (
	lookups       = 200_000
	lookupsTarget = 10_000 // a second
	lookupsAhead  = 4096
)

// takeLookups looks up distinct names as fast as possible.
func takeLookups(ctx context.Context, b *bench) (rows []row, err error) {
	var addr string
	dns, err := b.start(ctx, "dns", &names{Addrs: lookups}, &addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dns.stop()) }()
	cfg := configs.Default().Resolver
	r, err := resolver.New(resolver.Config{
		Servers: []string{addr}, Timeout: cfg.Timeout, Attempts: cfg.Attempts, Concurrency: cfg.Concurrency,
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, HostsFile: "-",
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	took, failed := lookUpAll(ctx, r)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stats := r.Stats()
	rate := lookups / took.Seconds()
	return []row{{
		what: "DNS look-ups a second", target: "≥ " + count(lookupsTarget), measured: count(rate),
		met: judge(rate >= lookupsTarget && failed == 0),
		how: fmt.Sprintf("%s distinct names, A and AAAA each, at most %s waiting, default settings, "+
			"from a server in another process over UDP; %d failed, %d tries timed out",
			count(lookups), count(lookupsAhead), failed, stats.Timeouts),
	}}, nil
}

func lookUpAll(ctx context.Context, r *resolver.Resolver) (took time.Duration, failed int64) {
	start := time.Now()
	ahead := make(chan struct{}, lookupsAhead)
	var wrong atomic.Int64
	var pending sync.WaitGroup
	for i := range lookups {
		if ctx.Err() != nil {
			break
		}
		ahead <- struct{}{}
		pending.Add(1)
		r.Resolve(hostName(i), func(a netip.Addr, err error) {
			if n, ok := numberOf(a); err != nil || !ok || n != i {
				wrong.Add(1)
			}
			<-ahead
			pending.Done()
		})
	}
	pending.Wait()
	return time.Since(start), wrong.Load()
}
