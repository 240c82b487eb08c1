package redis

import (
	"errors"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
)

// TestFull: a Redis without memory refuses commands that need some. The error says so, and nothing
// is changed. With memory again all calls succeed.
func TestFull(t *testing.T) {
	server := redistest.Start(t)
	s, ctx := realStore(t, time.Second, server.Addr()), t.Context()
	if _, err := s.AddHost(ctx, "a.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	server.CLI("CONFIG", "SET", "maxmemory", "1")
	for what, call := range map[string]func() error{
		"AddHost":         func() error { _, err := s.AddHost(ctx, "b.test", time.Time{}); return err },
		"TryReserve":      func() error { _, err := s.TryReserve(ctx, "a.test", time.Minute, ""); return err },
		"ReserveNextHost": func() error { _, err := s.ReserveNextHost(ctx, time.Minute, 1, ""); return err },
	} {
		if err := call(); !errors.Is(err, reservation.ErrFull) {
			t.Errorf("%s in a full Redis: %v; want ErrFull", what, err)
		}
	}
	server.CLI("CONFIG", "SET", "maxmemory", "0")
	if _, err := s.TryReserve(ctx, "a.test", time.Minute, ""); err != nil {
		t.Errorf("with memory again: %v", err)
	}
}

// TestNextIsThereFromTheBeginning: the hash of a group has the field n before the first request.
func TestNextIsThereFromTheBeginning(t *testing.T) {
	b := bench(t, 0, redistest.Start(t).Addr())
	s := b.Store.(*Store)
	if _, err := s.AddHost(t.Context(), "a.test", b.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.AddDocuments(t.Context(), "10.0.0.1", time.Time{}, "", 2); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a.test", "10.0.0.1"} {
		if n, err := do(t, s, []string{"HGET"}, s.cfg.Prefix+"CHG{chg}:"+id, "n").AsInt64(); err != nil ||
			n != b.Now().UnixMilli() {
			t.Errorf("n of %s is %d, %v; want now, %d", id, n, err, b.Now().UnixMilli())
		}
	}
}
