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

var brokenHosts = []string{"a.test", "bad.test", "c.test", "d.test"}

// brokenStore is a store in which a key of bad.test has a wrong type.
type brokenStore struct {
	*testing.T
	*Store
	b   reservationtest.Bench
	key string
}

// TestBrokenKeys: a key of a wrong type breaks only the host or group that it belongs to, whichever
// key it is and whichever call reads it. The log names the key. When an operator has deleted it,
// the host is served again.
func TestBrokenKeys(t *testing.T) {
	addr := redistest.Start(t).Addr()
	for _, key := range []string{"CHG{chg}:", "chg_due{chg}:", "chg_covers{chg}:", "chg_by{chg}:",
		"chg_host{chg}:"} {
		t.Run(key, func(t *testing.T) {
			b := bench(t, 0, addr)
			w := brokenStore{T: t, Store: b.Store.(*Store), b: b}
			var log bytes.Buffer
			w.cfg.Log = zerolog.New(&log)
			w.breakKey(key)
			w.reserveAndRelease()
			w.reserveAll()
			w.loseLeases()
			if !strings.Contains(log.String(), w.key) {
				t.Errorf("the log has %q; want it to name %s", &log, w.key)
			}
			w.mend()
		})
	}
}

// TestCountIsNoCount: a group's hash whose field c is no count, or to which Redis cannot add, breaks only what is
// for that group.
func TestCountIsNoCount(t *testing.T) {
	for _, c := range []string{"x", "1.5", "007", "-0", "99999999999999999999", "9223372036854775807"} {
		t.Run(c, func(t *testing.T) { testCount(t, c) })
	}
}

func testCount(t *testing.T, c string) {
	b := bench(t, 0, redistest.Start(t).Addr())
	w := brokenStore{T: t, Store: b.Store.(*Store), b: b}
	w.key = w.cfg.Prefix + "CHG{chg}:bad.test"
	do(t, w.Store, []string{"HSET"}, w.key, "c", c)
	var calls []reservation.Call
	for _, host := range brokenHosts {
		calls = append(calls, reservation.Call{Verb: reservation.AddHost, Host: host})
	}
	for i, a := range w.Do(t.Context(), calls) {
		switch bad := brokenHosts[i] == "bad.test"; {
		case bad && (!errors.Is(a.Err, reservation.ErrBroken) || !strings.Contains(a.Err.Error(), w.key)):
			t.Errorf("adding %s: %v; want ErrBroken, with the key", brokenHosts[i], a.Err)
		case !bad && a.Err != nil:
			t.Errorf("adding %s: %v", brokenHosts[i], a.Err)
		}
	}
	w.sweep()
	w.mend()
}

// breakKey adds the hosts and gives the key of bad.test a wrong type.
func (w *brokenStore) breakKey(key string) {
	w.Helper()
	for _, host := range brokenHosts {
		if _, err := w.AddHost(w.Context(), host, time.Time{}); err != nil {
			w.Fatal(err)
		}
	}
	w.key = w.cfg.Prefix + key + "bad.test"
	do(w.T, w.Store, []string{"DEL"}, w.key)
	if key == "chg_host{chg}:" {
		do(w.T, w.Store, []string{"SADD"}, w.key, "x")
	} else {
		do(w.T, w.Store, []string{"SET"}, w.key, "x")
	}
}

// reserveAndRelease reserves and releases the three other hosts.
func (w *brokenStore) reserveAndRelease() {
	w.Helper()
	got, _ := w.ReserveNextHost(w.Context(), time.Minute, 4, "me")
	calls := []reservation.Call{}
	for _, r := range got {
		if r.Host != "bad.test" {
			calls = append(calls, reservation.Call{Verb: reservation.ReleaseHost, Host: r.Host,
				Token: r.Token, Time: w.b.Now().Add(time.Second)})
		}
	}
	if len(calls) != 3 {
		w.Errorf("ReserveNextHost = %+v; want the three others", got)
	}
	calls = append(calls, reservation.Call{Verb: reservation.ReleaseHost, Host: "bad.test", Token: 1})
	for i, a := range w.Do(w.Context(), calls) {
		if a.Err != nil && i < 3 {
			w.Errorf("releasing %s: %v", calls[i].Host, a.Err)
		}
	}
	w.b.Advance(time.Second)
	w.sweep()
}

// reserveAll reserves and binds hosts in batches. Only bad.test may fail, with ErrBroken.
func (w *brokenStore) reserveAll() {
	w.Helper()
	var calls []reservation.Call
	for _, host := range brokenHosts {
		calls = append(calls, reservation.Call{Verb: reservation.TryReserve, Host: host, Lease: time.Minute})
	}
	for i, a := range w.Do(w.Context(), calls) {
		switch bad := brokenHosts[i] == "bad.test"; {
		case errors.Is(a.Err, reservation.ErrNotNow) && bad: // it was reserved before its key was read
		case bad && a.Err != nil && (!errors.Is(a.Err, reservation.ErrBroken) ||
			!strings.Contains(a.Err.Error(), w.key)):
			w.Errorf("reserving %s: %v; want ErrBroken, with the key", brokenHosts[i], a.Err)
		case !bad && a.Err != nil:
			w.Errorf("reserving %s: %v", brokenHosts[i], a.Err)
		}
	}
	if groups, err := w.Bind(w.Context(), []reservation.Binding{{Host: "bad.test", Group: "10.0.0.1"},
		{Host: "a.test", Group: "10.0.0.2"}}, time.Minute); err != nil || groups[1].Group != "10.0.0.2" {
		w.Errorf("Bind = %v, %v; want a.test bound", groups, err)
	}
	if _, err := w.Stats(w.Context()); err != nil {
		w.Errorf("Stats: %v", err)
	}
}

// loseLeases lets all leases expire. The janitor frees the other hosts.
func (w *brokenStore) loseLeases() {
	w.Helper()
	w.b.Advance(time.Minute + reservationtest.Penalty)
	for range 2 {
		w.sweep()
		w.b.Advance(reservationtest.Penalty)
	}
	for _, host := range []string{"c.test", "d.test"} {
		if _, err := w.TryReserve(w.Context(), host, time.Minute, ""); err != nil {
			w.Errorf("%s after a lost lease: %v", host, err)
		}
	}
}

// mend deletes the key. bad.test can be reserved again.
func (w *brokenStore) mend() {
	w.Helper()
	do(w.T, w.Store, []string{"DEL"}, w.key)
	w.sweep()
	if _, err := w.TryReserve(w.Context(), "bad.test", time.Minute, ""); err != nil {
		w.Errorf("bad.test when its key is deleted: %v", err)
	}
	if broken, err := do(w.T, w.Store, []string{"HKEYS"},
		w.cfg.Prefix+"chg_broken{chg}").AsStrSlice(); err != nil || len(broken) != 0 {
		w.Errorf("broken are still %q, %v", broken, err)
	}
}

func (w *brokenStore) sweep() {
	w.Helper()
	if err := w.Sweep(w.Context()); err != nil {
		w.Errorf("Sweep: %v", err)
	}
}
