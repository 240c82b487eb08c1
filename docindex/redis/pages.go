package redis

import (
	"context"
	"slices"
	"time"

	"urlserver/docindex"
)

var _ docindex.PageCounter = (*Store)(nil)

// placesLease is how long places last that nobody settles: much longer than a put of putBatch URLs.
const placesLease = 30 * time.Second

// Answers of the script pages to "take", before the limits.
const (
	pagesTaken     = ""
	pagesUncounted = "e" // and the epoch
)

// TakePages is [docindex.PageCounter.TakePages].
func (s *Store) TakePages(
	ctx context.Context, crawl string, domains []string, most, mostOfDomain int64,
) (t docindex.PlacesTaken, err error) {
	id := s.owner + "." + decimal(s.places(1))
	args := append([]string{"take", crawl, id, decimal(placesLease.Milliseconds()), decimal(most),
		decimal(mostOfDomain)}, domains...)
	a, err := s.one(ctx, shardOf(crawl), pagesScript, args...)
	if err != nil {
		return t, err
	}
	answer := list(a.value)
	switch {
	case len(answer) == 1 && len(text(answer[0])) > 0:
		return docindex.PlacesTaken{Uncounted: true, Epoch: text(answer[0])[len(pagesUncounted):]}, nil
	case len(answer) != 1+len(domains) || text(answer[0]) != pagesTaken:
		return t, errStrange
	}
	for _, m := range answer[1:] {
		t.Limits = append(t.Limits, docindex.PageLimit(number(m)))
	}
	if slices.Contains(t.Limits, docindex.Placed) {
		t.ID = id
	}
	return t, nil
}

// SettlePages is [docindex.PageCounter.SettlePages].
func (s *Store) SettlePages(ctx context.Context, crawl, taken string, free, stored []string) error {
	args := append([]string{"settle", crawl, taken, decimal(int64(len(free)))}, free...)
	_, err := s.one(ctx, shardOf(crawl), pagesScript, append(args, stored...)...)
	return err
}

// CountPages is [docindex.PageCounter.CountPages].
func (s *Store) CountPages(ctx context.Context, crawl, epoch string, pages int64, domains map[string]int64) error {
	of := "0"
	if domains != nil {
		of = "1"
	}
	args := []string{"count", crawl, epoch, decimal(pages), of}
	for domain, n := range domains {
		args = append(args, domain, decimal(n))
	}
	_, err := s.one(ctx, shardOf(crawl), pagesScript, args...)
	return err
}

// ForgetPages is [docindex.PageCounter.ForgetPages].
func (s *Store) ForgetPages(ctx context.Context, crawl string) error {
	_, err := s.one(ctx, shardOf(crawl), pagesScript, "forget", crawl)
	return err
}
