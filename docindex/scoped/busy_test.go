package scoped_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/redis"
	"urlserver/docindex/scoped"
	"urlserver/internal/testkit/redistest"
)

// gate is a store whose puts of some URL begin with a call of before.
type gate struct {
	docindex.Store
	url    string
	before func() error
}

func (g *gate) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	for i := range p.Len() {
		if put, _ := p.At(i); string(put.URL) == g.url {
			if err := g.before(); err != nil {
				return docindex.PutResult{}, err
			}
		}
	}
	return g.Store.Put(ctx, p)
}

// TestMaxPagesWaits puts a new URL while the last place is taken for a URL that turns out to be known:
// it is not refused.
func TestMaxPagesWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Store: memory.New(), url: "http://a.test/known", before: func() error { return nil }}
		s := scoped.New(g)
		put(t, s, of("c", "http://a.test/known")...)
		set(t, s, "c", `{"max_pages":2,"max_pages_domain":2}`)
		g.before = func() error { time.Sleep(time.Second); return nil }
		done := make(chan docindex.Verdict)
		go func() {
			v, _ := put(t, s, of("c", "http://a.test/known")...)
			done <- v[0]
		}()
		synctest.Wait()
		began := time.Now()
		v, _ := put(t, s, of("c", "http://a.test/new", "http://b.test/new")...)
		if v[0] != docindex.New || v[1] != docindex.Outside || time.Since(began) < time.Second {
			t.Errorf("after %v verdicts %v; want the first taken when the other put had ended", time.Since(began), v)
		}
		if v := <-done; v != docindex.Same {
			t.Errorf("the known URL: %v", v)
		}
	})
}

// TestMaxPagesWaitsShortly puts URLs while another put has the last place and does not end. A known URL
// does not wait. A new one waits for some seconds, and is taken when its put is repeated.
func TestMaxPagesWaitsShortly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Store: memory.New(), url: "http://a.test/known", before: func() error { return nil }}
		s := scoped.New(g)
		put(t, s, of("c", "http://a.test/known", "http://b.test/known")...)
		set(t, s, "c", `{"max_pages":3}`)
		end := make(chan struct{})
		g.before = func() error { <-end; return nil }
		done := make(chan docindex.Verdict)
		go func() {
			v, _ := put(t, s, of("c", "http://a.test/known")...)
			done <- v[0]
		}()
		synctest.Wait()
		var p docindex.Puts
		for _, one := range of("c", "http://new.test/", "http://b.test/known") {
			if err := p.Add(one); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		_, err := s.Put(t.Context(), &p)
		if waited := time.Since(began); !errors.Is(err, docindex.ErrUnavailable) || waited > 5*time.Second {
			t.Errorf("after %v: %v; want %v in some seconds", waited, err, docindex.ErrUnavailable)
		}
		if p.Verdict(0) != docindex.Unsettled || p.Verdict(1) != docindex.Same {
			t.Errorf("verdicts %v and %v; want the known URL taken", p.Verdict(0), p.Verdict(1))
		}
		began = time.Now()
		if v, _ := put(t, s, of("c", "http://b.test/known")...); v[0] != docindex.Same || time.Since(began) > 0 {
			t.Errorf("the known URL: %v after %v; want no wait", v[0], time.Since(began))
		}
		close(end)
		if v := <-done; v != docindex.Same {
			t.Errorf("the put with the place: %v", v)
		}
		if v, _ := put(t, s, of("c", "http://new.test/")...); v[0] != docindex.New {
			t.Errorf("the new URL once more: %v; want it taken", v[0])
		}
	})
}

// TestMaxPagesOfCancelledPut: places of a put whose caller leaves in the middle are free again at once,
// for other daemons, too.
func TestMaxPagesOfCancelledPut(t *testing.T) {
	addr := redistest.Start(t).Addr()
	daemon := func() *redis.Store {
		s := redis.New(redis.Config{Addrs: []string{addr}, Lease: time.Minute, Janitor: time.Minute})
		t.Cleanup(func() { s.Close() })
		return s
	}
	within := daemon()
	ctx, cancel := context.WithCancel(t.Context())
	g := &gated{Store: within, gate: gate{Store: within, url: "http://a.test/1"}}
	g.gate.before = func() error { cancel(); return ctx.Err() }
	s := scoped.New(g)
	set(t, s, "c", `{"max_pages":2}`)
	var p docindex.Puts
	for _, one := range of("c", "http://a.test/1", "http://a.test/2") {
		if err := p.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(ctx, &p); !errors.Is(err, context.Canceled) {
		t.Errorf("the put: %v; want %v", err, context.Canceled)
	}
	v, _ := put(t, scoped.New(daemon()), of("c", "http://b.test/1", "http://b.test/2", "http://b.test/3")...)
	if v[0] != docindex.New || v[1] != docindex.New || v[2] != docindex.Outside {
		t.Errorf("verdicts %v; want two places", v)
	}
}

// TestMaxPagesOfDomainsLater limits domains while another daemon puts that has not heard of it.
func TestMaxPagesOfDomainsLater(t *testing.T) {
	addr := redistest.Start(t).Addr()
	var stores []*scoped.Store
	for range 2 {
		s := redis.New(redis.Config{Addrs: []string{addr}, Lease: time.Minute, Janitor: time.Minute})
		t.Cleanup(func() { s.Close() })
		stores = append(stores, scoped.New(s))
	}
	set(t, stores[0], "c", `{"max_pages":100}`)
	put(t, stores[1], of("c", "http://a.test/0")...)
	set(t, stores[0], "c", `{"max_pages":100,"max_pages_domain":2}`)
	put(t, stores[1], of("c", "http://a.test/1", "http://a.test/2", "http://a.test/3")...)
	v, _ := put(t, stores[0], of("c", "http://a.test/4", "http://b.test/")...)
	if v[0] != docindex.Outside || v[1] != docindex.New {
		t.Errorf("verdicts %v; want no more of the domain, and one of another", v)
	}
}

// gated is a store of several daemons behind a gate.
type gated struct {
	*redis.Store
	gate gate
}

func (g *gated) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	return g.gate.Put(ctx, p)
}

// slowCount is a store whose counts take a second.
type slowCount struct {
	docindex.Store
	counts atomic.Int64
}

func (s *slowCount) Count(ctx context.Context, of *docindex.Scope) (docindex.Counts, error) {
	s.counts.Add(1)
	time.Sleep(time.Second)
	return s.Store.Count(ctx, of)
}

// TestMaxPagesCountsOnce puts eight times at once where documents are to be counted. Puts of what an
// index had before of another crawl do not make it count again.
func TestMaxPagesCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		within := &slowCount{Store: memory.New()}
		s := scoped.New(within)
		put(t, s, of("c", "http://a.test/known")...)
		set(t, s, "c", `{"max_pages":100}`)
		before := within.counts.Load()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if v, _ := put(t, s, of("c", fmt.Sprintf("http://a.test/%d", i))...); v[0] != docindex.New {
					t.Errorf("verdict %v; want the URL taken", v[0])
				}
			})
		}
		all.Wait()
		if n := within.counts.Load() - before; n != 1 {
			t.Errorf("eight puts count %d times; want once", n)
		}
		for crawl, want := range map[string]int64{"other": 0, "c": 1} {
			before := within.counts.Load()
			p := docindex.Puts{Kept: true}
			if err := p.Add(of(crawl, "http://a.test/kept")[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			put(t, s, of("c", "http://a.test/after/"+crawl)...)
			if n := within.counts.Load() - before; n != want {
				t.Errorf("after a kept URL of crawl %q a put counts %d times; want %d", crawl, n, want)
			}
		}
	})
}
