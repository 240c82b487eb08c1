package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
)

// A call that two nodes redirect to each other for ever fails. Before that the client follows some
// redirects, as it must while slots move.
func TestMovedForEver(t *testing.T) {
	fake := redistest.StartFake(t)
	s := New(Config{Addrs: fake.Addrs[:1]})
	defer s.Close()
	held := make([]reservation.Holding, 2*holdBatch)
	for i := range held {
		held[i].Host = fmt.Sprintf("h%d.example", i)
	}
	for _, call := range []struct {
		name    string
		met     bool
		scripts int // number of scripts that the fake has run
		do      func() error
	}{
		{name: "the first one", scripts: 1, do: func() error { _, err := s.Stats(t.Context()); return err }},
		{name: "one script", met: true, scripts: 1,
			do: func() error { _, err := s.TryReserve(t.Context(), "a.example", time.Second, "us"); return err }},
		{name: "two scripts", met: true, scripts: 2,
			do: func() error { _, err := s.ReportHoldings(t.Context(), "us", true, time.Second, held); return err }},
	} {
		fake.Scripts.Store(0)
		setMet(s, call.met)
		err := call.do()
		if err == nil || !strings.Contains(err.Error(), "MOVED") {
			t.Errorf("%s: %v; want that it is with another node", call.name, err)
		}
		if n := int(fake.Scripts.Load()) / call.scripts; n < 2 || n > maxMoves+1 {
			t.Errorf("%s: sent %d times; want a few", call.name, n)
		}
	}
}

// If Redis echoes the password in an error, the password is not in the store's error.
func TestErrorsHideThePassword(t *testing.T) {
	fake := redistest.StartFake(t)
	says := "ERR who is s3cret?"
	fake.Says.Store(&says)
	s := New(Config{Addrs: fake.Addrs[:1], Password: "s3cret"})
	defer s.Close()
	for _, met := range []bool{false, true} {
		setMet(s, met)
		if _, err := s.Stats(t.Context()); err == nil || !strings.Contains(err.Error(), "who is ***?") {
			t.Errorf("%v; want the error without the password", err)
		}
	}
	if err := s.Work(t.Context()); err == nil || !strings.Contains(err.Error(), "who is ***?") {
		t.Errorf("Work: %v; want the error without the password", err)
	}
}

// setMet makes a store believe that it has told this Redis of itself, or that it has not.
func setMet(s *Store, met bool) {
	s.met.Store(s.changes.Load())
	if !met {
		s.changes.Add(1)
	}
}
