package redis

import (
	"fmt"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/reservationtest"
)

// counts checks the field c of hosts h0.test, h1.test and so on, and that the totals are their sum.
func counts(t *testing.T, s *Store, want ...int64) {
	t.Helper()
	total := int64(0)
	for i, n := range want {
		got, _ := do(t, s, []string{"HGET"}, s.cfg.Prefix+fmt.Sprintf("CHG{chg}:h%d.test", i), "c").AsInt64()
		if total += n; got != n {
			t.Errorf("c of h%d.test = %d; want %d", i, got, n)
		}
	}
	all, _ := do(t, s, []string{"GET"}, s.cfg.Prefix+"chg_total{chg}").AsInt64()
	crawl, _ := do(t, s, []string{"HGET"}, s.cfg.Prefix+"chg_exec{chg}", "DEFAULT").AsInt64()
	if all != total || crawl != total {
		t.Errorf("chg_total = %d, chg_exec of DEFAULT = %d; want %d", all, crawl, total)
	}
}

func held(n ...int) (list []reservation.Holding) {
	for i, n := range n {
		list = append(list, reservation.Holding{Host: fmt.Sprintf("h%d.test", i), Documents: n})
	}
	return list
}

// heldBench returns a store with the reports of two holders.
func heldBench(t *testing.T) (b reservationtest.Bench, s *Store, tell func(holder string, first, known bool,
	n ...int)) {
	t.Helper()
	b = bench(t, 0, redistest.Start(t).Addr())
	s = b.Store.(*Store)
	tell = func(holder string, first, known bool, n ...int) {
		t.Helper()
		if got, err := s.ReportHoldings(t.Context(), holder, first, time.Minute, held(n...)); err != nil ||
			got != known {
			t.Errorf("Hold(%s) = %v, %v; want %v", holder, got, err, known)
		}
	}
	tell("a", true, true, 5, 1)
	tell("b", true, true, 2)
	return b, s, tell
}

func TestHoldCounts(t *testing.T) {
	_, s, tell := heldBench(t)
	counts(t, s, 7, 1)
	tell("a", false, true, 3) // instead of 5; the other host is unchanged
	tell("a", false, true, 3) // again, as after a lost answer
	counts(t, s, 5, 1)
	tell("c", false, false, 9) // an unknown holder
	counts(t, s, 5, 1)
	got, err := s.TryReserve(t.Context(), "h0.test", time.Minute, "b")
	if err != nil {
		t.Fatal(err)
	}
	tell("a", false, true, 0, 0)
	tell("b", false, true, 0)
	counts(t, s, 0, 0)
	if err := s.ReleaseHost(t.Context(), "h0.test", got.Token, time.Time{}); err != nil {
		t.Errorf("ReleaseHost with nothing held = %v", err)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Hosts != 0 {
		t.Errorf("%d hosts are known, %v; want none, as nobody holds a document", st.Hosts, err)
	}
}

// TestHoldersDie: the counts of a holder that is silent for too long are removed. If it comes back
// it gets an error.
func TestHoldersDie(t *testing.T) {
	b, s, tell := heldBench(t)
	b.Advance(40 * time.Second)
	tell("b", false, true)
	b.Advance(30 * time.Second)
	tell("a", false, false, 6)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts(t, s, 2, 0)
	tell("a", false, false, 6)
	tell("a2", true, true, 6)
	counts(t, s, 8, 0)
}

// TestLostLeaseOfNobody: if no holder has documents of a host, its reservation ends with its lease.
func TestLostLeaseOfNobody(t *testing.T) {
	b, s, tell := heldBench(t)
	if _, err := s.TryReserve(t.Context(), "h1.test", time.Second, "a"); err != nil {
		t.Fatal(err)
	}
	tell("a", false, true, 0, 0)
	b.Advance(2 * time.Second)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Hosts != 1 {
		t.Errorf("%d hosts are known, %v; want one", st.Hosts, err)
	}
	counts(t, s, 2, 0)
}
