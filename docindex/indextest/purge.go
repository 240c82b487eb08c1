package indextest

import (
	"context"
	"errors"
	"testing"
	"time"

	"urlserver/docindex"
)

func purges(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/old1", "http://a.test/old2", "http://b.test/old")...)
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 1, Lease: time.Hour}),
		"http://a.test/old1")
	time.Sleep(time.Minute)
	add(t, s, urls("http://a.test/new", "http://c.test/new")...)
	before := time.Now()
	if n, err := s.Purge(t.Context(), docindex.Scope{}, before); err != nil || n != 3 {
		t.Errorf("Purge = %d, %v; want 3", n, err)
	}
	if n := Count(t, s, nil); n.Scheduled != 2 || n.InTransit != 0 || n.Queues != 3 {
		t.Errorf("counts are %+v; want 2 URLs in 3 queues", n)
	}
	wantURLs(t, call(t, s, any), "http://c.test/new") // a client has the deleted document of a.test
	time.Sleep(time.Hour)
	wantURLs(t, call(t, s, ofA), "http://a.test/new")
	if n, err := s.Purge(t.Context(), docindex.Scope{Key: []byte("a.test")},
		before.Add(time.Second)); err != nil || n != 1 {
		t.Errorf("Purge of a queue = %d, %v; want 1", n, err)
	}
	add(t, s, urls("http://a.test/again")...)
	time.Sleep(time.Minute)
	wantURLs(t, call(t, s, ofA), "http://a.test/again")
}

func purgeBroken(t *testing.T, s docindex.Store) {
	fill(t, s, docindex.Scope{}, "a.test")
	for _, scope := range []docindex.Scope{{}, {Key: []byte("a.test")}} {
		ctx, cancel := context.WithCancel(t.Context())
		n, err := s.Purge(&interrupted{Context: ctx, left: 1, do: cancel}, scope, time.Now().Add(time.Hour))
		if !errors.Is(err, context.Canceled) || n != 0 {
			t.Errorf("Purge(%s) = %d, %v; want 0 and that it was canceled", scope.Key, n, err)
		}
	}
	wantStates(t, s, reused, 0, 0)
}
