package redis

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/reservationtest"
)

// TestBrokenKeys: a key of a wrong type costs what it is for, whichever key it is and whatever
// meets it, and nothing else. The log names it, and when somebody has deleted it, the host is
// served again.
func TestBrokenKeys(t *testing.T) {
	addr := redistest.Start(t).Addr()
	for _, key := range []string{"CHG{chg}:", "chg_due{chg}:", "chg_covers{chg}:", "chg_by{chg}:", "chg_host{chg}:"} {
		t.Run(key, func(t *testing.T) {
			b := bench(t, 0, addr)
			s, ctx := b.Store.(*Store), t.Context()
			var log bytes.Buffer
			s.cfg.Log = zerolog.New(&log)
			hosts := []string{"a.test", "bad.test", "c.test", "d.test"}
			for _, host := range hosts {
				if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			name := s.cfg.Prefix + key + "bad.test"
			do(t, s, []string{"DEL"}, name)
			if key == "chg_host{chg}:" {
				do(t, s, []string{"SADD"}, name, "x")
			} else {
				do(t, s, []string{"SET"}, name, "x")
			}

			got, _ := s.ReserveNextHost(ctx, time.Minute, 4, "me")
			calls := []reservation.Call{}
			for _, r := range got {
				if r.Host != "bad.test" {
					calls = append(calls, reservation.Call{Verb: reservation.ReleaseHost, Host: r.Host,
						Token: r.Token, Time: b.Now().Add(time.Second)})
				}
			}
			if len(calls) != 3 {
				t.Errorf("ReserveNextHost = %+v; want the three others", got)
			}
			calls = append(calls, reservation.Call{Verb: reservation.ReleaseHost, Host: "bad.test", Token: 1})
			for i, a := range s.Do(ctx, calls) {
				if a.Err != nil && i < 3 {
					t.Errorf("releasing %s: %v", calls[i].Host, a.Err)
				}
			}
			b.Advance(time.Second)
			if err := s.Sweep(ctx); err != nil {
				t.Errorf("Sweep: %v", err)
			}
			calls = calls[:0]
			for _, host := range hosts {
				calls = append(calls, reservation.Call{Verb: reservation.TryReserve, Host: host, Lease: time.Minute})
			}
			for i, a := range s.Do(ctx, calls) {
				switch bad := hosts[i] == "bad.test"; {
				case errors.Is(a.Err, reservation.ErrNotNow) && bad: // it was reserved before its key was met
				case bad && a.Err != nil && (!errors.Is(a.Err, reservation.ErrBroken) ||
					!strings.Contains(a.Err.Error(), name)):
					t.Errorf("reserving %s: %v; want ErrBroken, with the key", hosts[i], a.Err)
				case !bad && a.Err != nil:
					t.Errorf("reserving %s: %v", hosts[i], a.Err)
				}
			}
			if groups, err := s.Bind(ctx, []reservation.Binding{{Host: "bad.test", Group: "10.0.0.1"},
				{Host: "a.test", Group: "10.0.0.2"}}, time.Minute); err != nil || groups[1].Group != "10.0.0.2" {
				t.Errorf("Bind = %v, %v; want a.test bound", groups, err)
			}
			if _, err := s.Stats(ctx); err != nil {
				t.Errorf("Stats: %v", err)
			}
			b.Advance(time.Minute + reservationtest.Penalty) // all leases are lost
			for range 2 {
				if err := s.Sweep(ctx); err != nil {
					t.Errorf("Sweep: %v", err)
				}
				b.Advance(reservationtest.Penalty)
			}
			for _, host := range []string{"c.test", "d.test"} {
				if _, err := s.TryReserve(ctx, host, time.Minute, ""); err != nil {
					t.Errorf("%s after a lost lease: %v", host, err)
				}
			}
			if !strings.Contains(log.String(), name) {
				t.Errorf("the log has %q; want it to name %s", &log, name)
			}

			do(t, s, []string{"DEL"}, name)
			if err := s.Sweep(ctx); err != nil {
				t.Errorf("Sweep: %v", err)
			}
			if _, err := s.TryReserve(ctx, "bad.test", time.Minute, ""); err != nil {
				t.Errorf("bad.test when its key is gone: %v", err)
			}
			if broken, err := do(t, s, []string{"HKEYS"},
				s.cfg.Prefix+"chg_broken{chg}").AsStrSlice(); err != nil || len(broken) != 0 {
				t.Errorf("broken are still %q, %v", broken, err)
			}
		})
	}
}
