package redis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/reservationtest"
)

func TestCluster(t *testing.T) {
	nodes, addrs := redistest.StartCluster(t)
	redistest.SetNodeTimeout(t, nodes, time.Minute) // so that a busy machine makes none fail over
	t.Run("suite", func(t *testing.T) {
		reservationtest.Run(t, func(t *testing.T) reservationtest.Bench { return bench(t, 5000, addrs...) })
	})
	t.Run("fail-over", func(t *testing.T) { testFailOver(t, nodes, addrs) })
}

// TestSlotMoves moves the slot of the keys to another node, which has only some of them for a while. Nothing
// is reserved meanwhile; afterwards all is as before.
func TestSlotMoves(t *testing.T) {
	nodes, addrs := redistest.StartCluster(t)
	s, other, ctx := realStore(t, time.Second, addrs...), realStore(t, time.Second, addrs...), t.Context()
	if _, err := s.AddHost(ctx, "held.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	held, err := s.TryReserve(ctx, "held.test", time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	move, finish := redistest.MoveSlot(t, nodes, "{chg}")
	within, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	move("p:chg_busy{chg}")
	for _, key := range []string{"p:chg_known{chg}", "p:chg_wait{chg}"} {
		if _, err := other.AddHost(within, "held.test", time.Time{}); isAnswer(err) {
			t.Errorf("AddHost while %s and others move is answered: %v", key, err)
		}
		if r, err := other.TryReserve(within, "held.test", time.Hour, ""); isAnswer(err) {
			t.Errorf("TryReserve while %s and others move: %+v, %v; want an error of the cluster", key, r, err)
		}
		move(key)
	}
	finish()
	if err := answered(t, func() error {
		_, err := s.ExtendHost(ctx, "held.test", held.Token, time.Hour)
		return err
	}); err != nil {
		t.Errorf("ExtendHost after the move: %v", err)
	}
}

// testFailOver kills the master of the keys: there are no reservations until its replica has taken
// over, and then no new ones for the longest lease; what had reached the replica is held still.
func testFailOver(t *testing.T, nodes []*redistest.Server, addrs []string) {
	const longest = 5 * time.Second
	s, ctx := realStore(t, time.Second, addrs...), t.Context()
	for _, host := range []string{"held.test", "free.test"} {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	held, err := s.TryReserve(ctx, "held.test", 2*time.Minute, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ExtendHost(ctx, "held.test", held.Token, longest); err != nil {
		t.Fatal(err)
	}
	master := redistest.Owner(t, nodes, "{chg}")
	redistest.Eventually(t, "the replica to follow",
		func() bool { return strings.TrimSpace(master.CLI("WAIT", "1", "1000")) == "1" })
	redistest.SetNodeTimeout(t, nodes, 3*time.Second)
	bind := func(group string) string {
		bound, err := s.Bind(ctx, []reservation.Binding{{Host: "bound.test", Group: group}}, time.Hour)
		if err != nil {
			return ""
		}
		return bound[0].Group
	}
	if group := bind("192.0.2.1"); group != "192.0.2.1" {
		t.Fatalf("Bind = %q", group)
	}
	master.Kill()
	redistest.Eventually(t, "the replica to take over", func() bool {
		end, err := s.ExtendHost(ctx, "held.test", held.Token, 2*time.Minute)
		if errors.Is(err, reservation.ErrStale) { // it took longer than the lease
			return true
		}
		return err == nil && !end.IsZero()
	})
	reserve := func() error {
		_, err := s.TryReserve(ctx, "free.test", longest, "")
		return err
	}
	if err := answered(t, reserve); !errors.Is(err, reservation.ErrNotNow) {
		t.Errorf("TryReserve after the fail-over = %v; want ErrNotNow for the longest lease", err)
	}
	group := ""
	redistest.Eventually(t, "an answer to Bind", func() bool {
		group = bind("192.0.2.2")
		return group != ""
	})
	if group != "192.0.2.1" {
		t.Errorf("after the fail-over the host is bound to %s; want the binding that was answered", group)
	}
	if redistest.Owner(t, nodes, "{chg}") == master {
		t.Error("the killed master answers")
	}
}
