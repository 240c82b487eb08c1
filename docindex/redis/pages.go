package redis

import (
	"context"

	"urlserver/docindex"
)

var _ docindex.PageCounter = (*Store)(nil)

// TakePages is [docindex.PageCounter.TakePages].
func (s *Store) TakePages(
	ctx context.Context, crawl string, domains []string, most, mostOfDomain int64,
) (limits []docindex.PageLimit, counted bool, err error) {
	args := append([]string{"take", crawl, decimal(most), decimal(mostOfDomain)}, domains...)
	a, err := s.one(ctx, shardOf(crawl), pagesScript, args...)
	if err != nil {
		return nil, false, err
	}
	for _, m := range list(a.value) {
		limits = append(limits, docindex.PageLimit(number(m)))
	}
	return limits, len(limits) == len(domains), nil
}

// FreePages is [docindex.PageCounter.FreePages].
func (s *Store) FreePages(ctx context.Context, crawl string, domains []string) error {
	_, err := s.one(ctx, shardOf(crawl), pagesScript, append([]string{"free", crawl}, domains...)...)
	return err
}

// CountPages is [docindex.PageCounter.CountPages].
func (s *Store) CountPages(ctx context.Context, crawl string, pages int64, domains map[string]int64) error {
	args := []string{"count", crawl, decimal(pages)}
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
