package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"urlserver/reservation"
)

// maxCrawl bounds the ID of a crawl, in bytes.
const maxCrawl = 255

// AddDocuments adds n documents of a crawl ("": DEFAULT) to a group's count. While the count is
// above zero, the group is served as a host of its own name. Such a group needs neither AddHost nor
// DeleteHost: it leaves the queues when it is released with a count of zero.
func (s *Store) AddDocuments(ctx context.Context, group string, earliest time.Time, crawl string,
	n int) error {
	host, crawl, err := checkDocuments(group, crawl, n)
	if err != nil {
		return err
	}
	a := s.one(ctx, &s.scripts.add, "5", host, decimal(reservation.Millis(earliest)), crawl,
		strconv.Itoa(n), "documents")
	return a.each(0, 1).failure("group %s", host)
}

// Done subtracts n documents from a group's count, under a reservation. Counts never fall below
// zero. It returns how many are left.
func (s *Store) Done(ctx context.Context, group string, token uint64, crawl string,
	n int) (left int64, err error) {
	host, crawl, err := checkDocuments(group, crawl, n)
	if err != nil {
		return 0, err
	}
	a := s.one(ctx, &s.scripts.done, host, strconv.FormatUint(token, 10), crawl, strconv.Itoa(n))
	return a.number(0), a.failure("group %s", host)
}

func checkDocuments(group, crawl string, n int) (host, id string, err error) {
	if n < 1 || n > 1e9 {
		return "", "", fmt.Errorf("%w count %d: from 1 to a billion is allowed", reservation.ErrInvalid, n)
	}
	if !isCrawl(crawl) {
		return "", "", fmt.Errorf("%w crawl %.100q: up to %d bytes without control characters are allowed",
			reservation.ErrInvalid, crawl, maxCrawl)
	}
	if crawl == "" {
		crawl = defaultCrawl
	}
	host, err = reservation.Host(group)
	return host, crawl, err
}

// isCrawl reports whether documents can be counted under a crawl's ID.
func isCrawl(id string) bool {
	return len(id) <= maxCrawl && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f })
}
