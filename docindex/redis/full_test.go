package redis

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/internal/testkit/redistest"
)

// TestFull: a Redis without memory refuses what needs some, says so, and goes on when it has memory
// again; a daemon that comes meanwhile hears the same.
func TestFull(t *testing.T) {
	server := redistest.Start(t)
	put := func(s *Store) error {
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte("http://a.example/")}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Put(t.Context(), &p)
		return err
	}
	s := newStore(Config{Addrs: []string{server.Addr()}}, nil)
	defer s.Close()
	if _, err := s.Count(t.Context(), nil); err != nil { // so that it is a store
		t.Fatal(err)
	}
	server.CLI("CONFIG", "SET", "maxmemory", "1")
	late := newStore(Config{Addrs: []string{server.Addr()}}, nil)
	defer late.Close()
	for name, s := range map[string]*Store{"early": s, "late": late} {
		if err := put(s); !errors.Is(err, docindex.ErrFull) || errors.Is(err, docindex.ErrUnavailable) {
			t.Errorf("%s: Put into a full Redis: %v; want ErrFull", name, err)
		}
	}
	w := httptest.NewRecorder()
	httpserver.Handler(s).ServeHTTP(w, httptest.NewRequest("POST", "/docindex/urls",
		strings.NewReader("http://a.example/\n")))
	if w.Code != http.StatusInsufficientStorage {
		t.Errorf("over HTTP: %d %s; want 507", w.Code, w.Body)
	}
	server.CLI("CONFIG", "SET", "maxmemory", "0")
	if err := put(s); err != nil {
		t.Errorf("with memory again: %v", err)
	}
	if n, err := s.Count(t.Context(), nil); err != nil || n.Scheduled != 1 {
		t.Errorf("%+v, %v; want one document", n, err)
	}
}

// TestNoMaster: a Redis that has become a replica, as after a fail-over, takes nothing for now: callers may
// repeat what they did. The error says so once, not once for each shard.
func TestNoMaster(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(Config{Addrs: []string{server.Addr()}}, nil)
	defer s.Close()
	put := func() error {
		var p docindex.Puts
		for n := range 100 {
			if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://h%d.example/", n)}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Put(t.Context(), &p)
		return err
	}
	if _, err := s.Count(t.Context(), nil); err != nil { // so that it is a store
		t.Fatal(err)
	}
	server.CLI("REPLICAOF", "127.0.0.1", "1")
	err := put()
	if !errors.Is(err, docindex.ErrUnavailable) || strings.Count(err.Error(), "READONLY") != 1 {
		t.Errorf("Put into a replica: %v; want ErrUnavailable, and READONLY once", err)
	}
	w := httptest.NewRecorder()
	httpserver.Handler(s).ServeHTTP(w, httptest.NewRequest("POST", "/docindex/urls",
		strings.NewReader("http://a.example/\n")))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("over HTTP: %d %s; want 503", w.Code, w.Body)
	}
	server.CLI("REPLICAOF", "NO", "ONE")
	if err := put(); err != nil {
		t.Errorf("Put into a master again: %v", err)
	}
}
