package reservationtest

import (
	"errors"
	"strings"
	"time"

	"urlserver/reservation"
)

func testMany(r *rig) {
	calls := []reservation.Call{
		{Verb: reservation.AddHost, Host: "a.test"},
		{Verb: reservation.AddHost, Host: "B.test", Time: r.Now().Add(time.Hour)},
		{Verb: reservation.AddHost, Host: "not a host"},
		{Verb: reservation.TryReserve, Host: "c.test", Lease: lease},
	}
	answers := r.Do(r.Context(), calls)
	if len(answers) != len(calls) || !answers[0].Added || !answers[1].Added {
		r.Fatalf("Do = %+v; want two added", answers)
	}
	r.wants(answers[2].Err, reservation.ErrInvalid, "adding a bad host")
	r.wants(answers[3].Err, reservation.ErrUnknown, "reserving one never added")
	answers = r.Do(r.Context(), []reservation.Call{
		{Verb: reservation.TryReserve, Host: "a.test", Lease: lease, Holder: "x"},
		{Verb: reservation.TryReserve, Host: "b.test", Lease: lease},
	})
	a := answers[0].Reservation
	if answers[0].Err != nil || a.Host != "a.test" || a.Group != "a.test" ||
		!a.LeaseEnd.Equal(r.Now().Add(lease)) {
		r.Errorf("reserved %+v, %v; want a.test", a, answers[0].Err)
	}
	r.wants(answers[1].Err, reservation.ErrNotNow, "reserving one due in an hour")
	answers = r.Do(r.Context(), []reservation.Call{
		{Verb: reservation.ExtendHost, Host: "a.test", Token: a.Token, Lease: 2 * lease},
		{Verb: reservation.ReleaseHost, Host: "b.test", Token: a.Token},
		{Verb: reservation.DeleteHost, Host: "b.test"},
	})
	if answers[0].Err != nil || !answers[0].LeaseEnd.Equal(r.Now().Add(2*lease)) || answers[2].Err != nil {
		r.Errorf("Do = %+v; want a extended, b deleted", answers)
	}
	if err := answers[1].Err; !errors.Is(err, reservation.ErrStale) &&
		!errors.Is(err, reservation.ErrUnknown) {
		r.Errorf("releasing another host = %v; want ErrStale, or ErrUnknown if it was deleted first", err)
	}
	if got := r.Do(r.Context(), nil); len(got) != 0 {
		r.Errorf("Do of nothing = %+v", got)
	}
}

func testInvalid(r *rig) {
	ctx := r.Context()
	r.add("known", "a.test")
	r.alias("it", "a.test")
	for _, host := range []string{"", " ", "a b", "a/b", "a.test:80", "u@a.test", "a..b", "1.2.3.4.5",
		"[::1", "%", "a\x00", strings.Repeat("a", 300), "it"} {
		_, err := r.AddHost(ctx, host, time.Time{})
		r.wants(err, reservation.ErrInvalid, "AddHost(%.20q)", host)
		if host == "it" {
			continue
		}
		r.wants(r.DeleteHost(ctx, host, 0, time.Time{}), reservation.ErrInvalid, "DeleteHost(%.20q)", host)
		r.wants(r.SetAlias(ctx, "x", []string{host}), reservation.ErrInvalid, "SetAlias(x, %.20q)", host)
		_, err = r.Store.Explain(ctx, host)
		r.wants(err, reservation.ErrInvalid, "Explain(%.20q)", host)
		_, err = r.Bind(ctx, []reservation.Binding{{Host: "a.test", Group: host}}, lease)
		r.wants(err, reservation.ErrInvalid, "Bind(a.test, %.20q)", host)
	}
	for _, alias := range []string{"", "a.b", "localhost", "LocalHost", "a b", "ü", "known",
		strings.Repeat("a", 254)} {
		r.wants(r.SetAlias(ctx, alias, []string{"a.test"}), reservation.ErrInvalid, "SetAlias(%.20q)", alias)
	}
	for _, bad := range []time.Duration{0, -1, time.Microsecond, reservation.MaxLease + 1} {
		_, err := r.TryReserve(ctx, "a.test", bad, "")
		r.wants(err, reservation.ErrInvalid, "TryReserve for %v", bad)
		_, err = r.ReserveNextHost(ctx, bad, 1, "")
		r.wants(err, reservation.ErrInvalid, "ReserveNextHost for %v", bad)
		_, err = r.ExtendHost(ctx, "a.test", 1, bad)
		r.wants(err, reservation.ErrInvalid, "ExtendHost for %v", bad)
	}
	_, err := r.Bind(ctx, []reservation.Binding{{Host: "a.test", Group: "g"}}, 0)
	r.wants(err, reservation.ErrInvalid, "Bind for no time")
	_, err = r.TryReserve(ctx, "a.test", lease, "a\n")
	r.wants(err, reservation.ErrInvalid, "TryReserve by a holder of two lines")
}

// testForms: all spellings of a host mean the same host, and results have the normal form.
func testForms(r *rig) {
	ctx := r.Context()
	for given, want := range map[string]string{
		"ÜBUNG.test": "xn--bung-zra.test", "[2001:DB8::1]": "2001:db8::1", "0x7f.1": "127.0.0.1",
		"intranet": "intranet", "a_b.test": "a_b.test",
	} {
		if added, err := r.AddHost(ctx, given, time.Time{}); err != nil || !added {
			r.Errorf("AddHost(%s) = %v, %v; want true", given, added, err)
		}
		if added, err := r.AddHost(ctx, want, time.Time{}); err != nil || added {
			r.Errorf("AddHost(%s) after %s = %v, %v; want false", want, given, added, err)
		}
		got, err := r.TryReserve(ctx, given, lease, "")
		if err != nil || got.Host != want || got.Group != want {
			r.Errorf("TryReserve(%s) = %+v, %v; want %s", given, got, err, want)
		}
		if err := r.ReleaseHost(ctx, given, got.Token, time.Time{}); err != nil {
			r.Errorf("ReleaseHost(%s): %v", given, err)
		}
	}
}
