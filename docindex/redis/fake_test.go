package redis

import (
	"strings"
	"testing"

	"urlserver/internal/testkit/redistest"
)

// A call that is sent from one node to the other for ever fails, after it has followed for a while,
// as it must where slots move.
func TestMovedForEver(t *testing.T) {
	fake := redistest.StartFake(t)
	s := newStore(Config{Addrs: fake.Addrs[:1]}, nil)
	defer s.Close()
	for _, call := range []struct {
		name    string
		scripts int // that it has run
		do      func() error
	}{
		{name: "on one shard", scripts: 1, do: func() error {
			_, err := s.one(t.Context(), 0, lookScript, "x")
			return err
		}},
		{name: "on all shards", scripts: shards, do: func() error {
			_,
				err := s.everywhere(t.Context(), lookScript, "x")
			return err
		}},
	} {
		fake.Scripts.Store(0)
		err := call.do()
		if err == nil || !strings.Contains(err.Error(), "MOVED") {
			t.Errorf("%s: %v; want that it is with another node", call.name, err)
		}
		if n := int(fake.Scripts.Load()) / call.scripts; n < 2 || n > maxMoves+1 {
			t.Errorf("%s: sent %d times; want a few", call.name, n)
		}
	}
}

// A Redis that repeats the password does not bring it into what is told.
func TestErrorsHideThePassword(t *testing.T) {
	fake := redistest.StartFake(t)
	says := "ERR who is s3cret?"
	fake.Says.Store(&says)
	s := newStore(Config{Addrs: fake.Addrs[:1], Password: "s3cret"}, nil)
	defer s.Close()
	if _, err := s.one(t.Context(), 0, lookScript, "x"); err == nil || !strings.Contains(err.Error(), "who is ***?") {
		t.Errorf("%v; want the error without the password", err)
	}
}
