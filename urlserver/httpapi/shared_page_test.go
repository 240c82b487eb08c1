package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/reservation"
	"urlserver/reservation/memory"
	"urlserver/urlserver"
)

// weak is a reservation that may be away.
type weak struct {
	*memory.Store
	away atomic.Bool
}

var errAway = errors.New("nobody is there")

func (w *weak) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	if !w.away.Load() {
		return w.Store.Do(ctx, calls)
	}
	answers := make([]reservation.Answer, len(calls))
	for i := range answers {
		answers[i].Err = errAway
	}
	return answers
}

func (w *weak) Bind(ctx context.Context, bindings []reservation.Binding,
	ttl time.Duration) ([]reservation.Bound, error) {
	if w.away.Load() {
		return nil, errAway
	}
	return w.Store.Bind(ctx, bindings, ttl)
}

// What a daemon shares with others has panels where it is in use, which show what the API says,
// live.
func TestDashboardShares(t *testing.T) {
	store := &weak{Store: memory.New(memory.Config{})}
	r := newCrawl(t, setup{parts: func(p *urlserver.Parts) {
		p.Reserver = &urlserver.Reserver{Store: store, Lease: 2 * time.Second, Holder: "us", Log: zerolog.Nop()}
	}})
	var figures atomic.Pointer[crawlcontrol.KafkaCounts]
	figures.Store(&crawlcontrol.KafkaCounts{Connected: true, Lag: 4, Requests: 1234, Replies: 5, GivenUp: 6, Errors: 7})
	r.server.kafka = func() crawlcontrol.KafkaCounts { return *figures.Load() }
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#reservation-state", "It answers")
	const shown = "[...document.querySelectorAll('#t-%s tbody tr')].some((r) => r.cells[0].textContent " +
		"=== %q && r.cells[1].textContent === %q)"
	row := func(panel, name, value string) {
		t.Helper()
		b.until(shown, panel, name, value)
	}
	asTold := func() bool { // which stays so while this machine does not stand still for longer than a lease
		now := r.status().Reservation
		return now != nil && now.Held == 24 && // one a host
			js[bool](b, shown, "reservation", "held now", fmt.Sprint(now.Held)) &&
			js[bool](b, shown, "reservation", "got", fmt.Sprint(now.Granted))
	}
	for end := time.Now().Add(testTimeout); !asTold(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("reservation: %+v; the page says %s", r.status().Reservation,
				js[string](b, "document.getElementById('t-reservation').innerText"))
		}
	}
	row("kafka", "requests waiting", "4")
	row("kafka", "requests done", "1,234")
	b.shows("#kafka-state", "No failures now")
	b.accessible("what is shared")

	store.away.Store(true)
	figures.Store(&crawlcontrol.KafkaCounts{Connected: true, Lag: 40, Requests: 1234, Replies: 5,
		GivenUp: 6, Errors: 17})
	b.shows("#reservation-state", "does not answer")
	b.shows("#kafka-state", "Requests or replies fail")
	row("kafka", "requests waiting", "40")
	row("kafka", "failures, all tried again", "17")
	figures.Store(&crawlcontrol.KafkaCounts{Lag: 40, Requests: 1234, Replies: 5, GivenUp: 6, Errors: 17})
	b.shows("#kafka-state", "No broker is connected")
	figures.Store(&crawlcontrol.KafkaCounts{Connected: true, Lag: 40, Requests: 1234, Replies: 5,
		GivenUp: 6, Errors: 17})
	if s := r.status(); !s.Reservation.Away {
		t.Errorf("reservation: %+v", s.Reservation)
	}
	store.away.Store(false)
	b.shows("#reservation-state", "It answers")
	b.shows("#kafka-state", "No failures now") // none of the last seconds
}

// Without them there is no panel.
func TestDashboardSharesNothing(t *testing.T) {
	r := newCrawl(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#state", "Ready")
	if js[bool](b, "['reservation', 'kafka'].some((id) => document.getElementById(id).checkVisibility())") {
		t.Error("panels are shown of what is not in use")
	}
}
