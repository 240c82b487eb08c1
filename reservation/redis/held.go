package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"urlserver/reservation"
)

var _ reservation.Counter = (*Store)(nil)

// ReportHoldings is [reservation.Counter.ReportHoldings].
func (s *Store) ReportHoldings(ctx context.Context, holder string, first bool, ttl time.Duration,
	held []reservation.Holding) (known bool, err error) {
	if err := reservation.CheckHolder(holder); err != nil || holder == "" || ttl < 0 {
		return false, fmt.Errorf("%w holder %.100q, or ttl %v", reservation.ErrInvalid, holder, ttl)
	}
	begin := "0"
	if first {
		begin = "1"
	}
	var ops []op
	for rest := held; len(ops) == 0 || len(rest) > 0; {
		args, hosts := []string{holder, begin, decimal(ttl.Milliseconds())}, 0
		for ; hosts < min(holdBatch, len(rest)) && len(args) < holdArgs; hosts++ {
			if args, err = appendHeld(args, rest[hosts]); err != nil {
				return false, err
			}
		}
		ops, rest = append(ops, op{&s.scripts.hold, args}), rest[hosts:]
	}
	for _, a := range s.run(ctx, ops) {
		if err := a.failure("documents held by %s", holder); err != nil {
			return false, err
		}
		if a.number(0) == 0 {
			return false, nil
		}
	}
	return true, nil
}

// appendHeld appends a host's arguments: its documents of DEFAULT, and of each other crawl.
func appendHeld(args []string, h reservation.Holding) ([]string, error) {
	host, err := reservation.Host(h.Host)
	if err != nil {
		return nil, err
	}
	rest, place := h.Documents, len(args)+1
	args = append(args, host, "")
	for _, c := range h.Crawls[:min(len(h.Crawls), reservation.MaxCrawlsPerHost)] {
		if c.Documents < 1 || c.Documents > rest {
			return nil, fmt.Errorf("%w count %d of crawl %.100q, of %d documents held",
				reservation.ErrInvalid, c.Documents, c.Crawl, h.Documents)
		}
		if c.Crawl != "" && c.Crawl != defaultCrawl && isCrawl(c.Crawl) {
			rest -= c.Documents
			args = append(args, "/"+c.Crawl, strconv.Itoa(c.Documents))
		}
	}
	if rest < 0 || h.Documents > 1e9 {
		return nil, fmt.Errorf("%w count %d: from 0 to a billion is allowed",
			reservation.ErrInvalid, h.Documents)
	}
	args[place] = strconv.Itoa(rest)
	return args, nil
}
