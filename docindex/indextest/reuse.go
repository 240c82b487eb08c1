package indextest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
)

// interrupted is a context that calls do in the left-th call of Err.
type interrupted struct {
	context.Context
	left int
	do   func()
}

// Err is [context.Context.Err].
func (c *interrupted) Err() error {
	if c.left--; c.left == 0 {
		c.do()
	}
	return c.Context.Err()
}

const reused = 1200 // URLs of a queue: more than any store processes while it holds its lock

// reuse deletes a queue and makes another one while calls work on the first. A store may reuse the
// queue's number; no caller may notice.
func reuse(t *testing.T, s docindex.Store) {
	old, key := docindex.Scope{Crawl: []byte("old")}, docindex.Scope{Crawl: []byte("old"), Key: []byte("a.test")}
	for name, act := range map[string]func(context.Context, docindex.Scope) error{
		"Delete": func(ctx context.Context, scope docindex.Scope) error { _, err := s.Delete(ctx, scope); return err },
		"Purge": func(ctx context.Context, scope docindex.Scope) error {
			_, err := s.Purge(ctx, scope, time.Now().Add(time.Hour))
			return err
		},
		"List": func(ctx context.Context, scope docindex.Scope) error {
			return s.List(ctx, scope, func(d *docindex.Document) bool {
				if string(d.Key) != "a.test" {
					t.Errorf("List of %s in %s visits %s", scope.Key, scope.Crawl, d.URL)
				}
				return !t.Failed()
			})
		},
	} {
		for _, scope := range []docindex.Scope{old, key} {
			for left := range 4 {
				fill(t, s, old, "a.test")
				ctx := &interrupted{Context: t.Context(), left: left + 1, do: func() {
					forget(t, s, key)
					fill(t, s, docindex.Scope{Crawl: []byte("new")}, "b.test")
					fill(t, s, docindex.Scope{Crawl: []byte("new")}, "c.test")
				}}
				_ = act(ctx, scope) // it may return an error because of the deletion
				found := ctx.left <= 0
				fresh := docindex.Scope{Crawl: []byte("new")}
				if n := Count(t, s, &fresh); found && n.Scheduled != 2*reused {
					t.Errorf("%s of %q in %s, interrupted %d: others have %+v; want %d URLs", name,
						scope.Key, scope.Crawl, left, n, 2*reused)
				}
				forget(t, s, old)
				forget(t, s, fresh)
			}
		}
	}
}

// fill puts URLs of a host into a crawl.
func fill(t *testing.T, s docindex.Store, crawl docindex.Scope, host string) {
	t.Helper()
	var puts []docindex.Put
	for i := range reused {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://%s/%d", host, i), Crawl: crawl.Crawl})
	}
	add(t, s, puts...)
}

func forget(t *testing.T, s docindex.Store, scope docindex.Scope) {
	t.Helper()
	if _, err := s.Delete(context.WithoutCancel(t.Context()), scope); err != nil {
		t.Fatalf("Delete: %v", err)
	}
}
