package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"urlserver/reservation"
)

var _ reservation.Counter = (*Store)(nil)

// Hold is [reservation.Counter.Hold]. The documents count for the crawl DEFAULT.
func (s *Store) Hold(ctx context.Context, holder string, first bool, ttl time.Duration, held []reservation.Held) (known bool, err error) {
	if err := reservation.Holder(holder); err != nil || holder == "" || ttl < 0 {
		return false, fmt.Errorf("%w holder %.100q, or ttl %v", reservation.ErrInvalid, holder, ttl)
	}
	begin := "0"
	if first {
		begin = "1"
	}
	var ops []op
	for rest := held; len(ops) == 0 || len(rest) > 0; rest = rest[min(holdBatch, len(rest)):] {
		args := []string{holder, begin, decimal(ttl.Milliseconds())}
		for _, h := range rest[:min(holdBatch, len(rest))] {
			host, err := reservation.Host(h.Host)
			if err != nil {
				return false, err
			}
			if h.Documents < 0 || h.Documents > 1e9 {
				return false, fmt.Errorf("%w count %d: from 0 to a billion is allowed", reservation.ErrInvalid, h.Documents)
			}
			args = append(args, host, strconv.Itoa(h.Documents))
		}
		ops = append(ops, op{&s.scripts.hold, args})
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
