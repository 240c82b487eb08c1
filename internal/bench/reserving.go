package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urlserver/urlserver"
)

const (
	reservingHosts = 100_000
	reservingURLs  = 1_000_000
	reservingRate  = 0.5 // requests per second to a host, as by default
	reservingShare = 0.1 // largest share of the CPU
	reservingEnds  = time.Minute
)

// takeReserving fills and empties 100,000 slots at the default pace, without and with a
// reservation.
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
			how: "1,000,000 URLs on 100,000 addresses, each asked once in 2 s; CPU of the daemon's " +
				"process from the first URL put until all is answered and given back, " +
				"less that of a run without",
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
	if err := b.profileOf(d, "reserving-"+name+".prof"); err != nil {
		return 0, err
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
	if _, err := await(ctx, d, reservingEnds,
		func(s *urlserver.Status) bool { return s.Leases == 0 }); err != nil {
		return 0, err // the time of the releases counts, too
	}
	err = d.ask("usage", "", &after)
	return after.CPU - before.CPU, err
}
