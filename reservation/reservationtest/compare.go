package reservationtest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"urlserver/reservation"
)

var (
	modelHosts = []string{"a.test", "b.test", "c.test", "d.test", "e.test", "10.0.0.1",
		"10.0.0.2", "f.test"}
	modelGroups  = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	modelAliases = []string{"one", "two", "three"}
)

const modelSteps = 1500

var seed = flag.Uint64("model-seed", 0, "of the random calls, another than the ones that are always tried")

// comparison makes the same random calls to a store and to the model.
type comparison struct {
	*rig
	m      *model
	rand   *rand.Rand
	step   int
	did    string
	tokens []reservation.Reservation // all leases so far
}

// modelSeeds returns fixed seeds, so that runs repeat. The seeds in the list have found faults.
func modelSeeds() []uint64 {
	if *seed != 0 {
		return []uint64{*seed}
	}
	return []uint64{1, 2, 3}
}

func testModel(r *rig, seed uint64) {
	w := &comparison{rig: r, m: newModel(r.Now(), Penalty), rand: rand.New(rand.NewPCG(seed, 0))}
	for w.step = range min(modelSteps, r.Many) {
		w.act()
		w.compare()
	}
}

func (w *comparison) host() string             { return modelHosts[w.rand.IntN(len(modelHosts))] }
func (w *comparison) in() time.Duration        { return time.Duration(w.rand.IntN(40)-10) * time.Second }
func (w *comparison) millis(t time.Time) int64 { return max(w.m.now, t.UnixMilli()) }

// same checks that two errors are of one kind.
func (w *comparison) same(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("step %d: %s = %v; want %v", w.step, w.did, err, want)
	}
}

func (w *comparison) act() {
	switch w.rand.IntN(12) {
	case 0, 1:
		w.addHost()
	case 2:
		w.tryHost()
	case 3, 4:
		w.nextHost()
	case 5, 6, 7:
		w.endHost()
	case 8:
		w.bindHost()
	case 9:
		w.changeAlias()
	case 10, 11:
		d := time.Duration(w.rand.IntN(25)) * time.Second
		w.did = fmt.Sprintf("pass(%v)", d)
		w.m.advance(d)
		w.pass(d)
	}
}

func (w *comparison) addHost() {
	host, at := w.host(), w.Now().Add(w.in())
	w.did = fmt.Sprintf("AddHost(%s, %v)", host, at)
	added, err := w.AddHost(w.Context(), host, at)
	w.same(err, nil)
	h := w.m.host(host)
	if added == h.added {
		w.Fatalf("step %d: %s = %v", w.step, w.did, added)
	}
	if due := w.millis(at); added || due < h.due {
		h.due = due
	}
	h.added = true
}

func (w *comparison) tryHost() {
	host := w.host()
	w.did = fmt.Sprintf("TryReserve(%s)", host)
	want := map[reservation.State]error{reservation.Unknown: reservation.ErrUnknown, reservation.Ready: nil}
	err, known := want[w.m.explain(host).State]
	if !known {
		err = reservation.ErrNotNow
	}
	got, gotErr := w.TryReserve(w.Context(), host, 20*time.Second, "model")
	w.same(gotErr, err)
	if err == nil {
		w.take(got)
	}
}

func (w *comparison) nextHost() {
	most := 1 + w.rand.IntN(3)
	w.did = fmt.Sprintf("ReserveNextHost(%d)", most)
	got, err := w.ReserveNextHost(w.Context(), 20*time.Second, most, "model")
	if err != nil || len(got) > most {
		w.same(err, reservation.ErrNotNow)
	}
	for _, one := range got {
		w.take(one)
	}
	if s := w.m.stats(); len(got) < most && s.Ready > 0 && !w.Lazy {
		w.Fatalf("step %d: %s = %+v with %d more ready", w.step, w.did, got, s.Ready)
	}
}

// take checks a lease.
func (w *comparison) take(got reservation.Reservation) {
	w.Helper()
	if x := w.m.explain(got.Host); x.State != reservation.Ready || x.Group != got.Group {
		w.Fatalf("step %d: %s = %+v; the host is %+v", w.step, w.did, got, x)
	}
	if highest := max(w.m.tokens[got.Host], w.m.tokens[got.Group]); got.Token <= highest ||
		got.LeaseEnd.UnixMilli() != w.m.now+20_000 {
		w.Fatalf("step %d: %s = %+v; want a token over %d, 20 s", w.step, w.did, got, highest)
	}
	w.m.reserved(got, "model")
	w.tokens = append(w.tokens, got)
}

// endHost ends or extends a lease, often a stale one, or deletes an idle host.
func (w *comparison) endHost() {
	host, token := w.host(), uint64(0)
	if n := len(w.tokens); n > 0 && w.rand.IntN(5) > 0 {
		one := w.tokens[max(0, n-1-w.rand.IntN(6))]
		host, token = one.Host, one.Token
	}
	next := w.Now().Add(w.in())
	l, want := w.m.held(host, token)
	switch w.rand.IntN(4) {
	case 0:
		w.did = fmt.Sprintf("ExtendHost(%s, %d)", host, token)
		end, err := w.ExtendHost(w.Context(), host, token, 30*time.Second)
		if w.same(err, want); err == nil {
			if l.end = w.m.now + 30_000; end.UnixMilli() != l.end {
				w.Fatalf("step %d: %s = %v", w.step, w.did, end)
			}
			w.m.used(l)
		}
	case 1:
		w.did = fmt.Sprintf("DeleteHost(%s, %d, %v)", host, token, next)
		if w.m.host(host).added && token == 0 && w.m.of(host) == nil {
			l, want = nil, nil
		}
		err := w.DeleteHost(w.Context(), host, token, next)
		if w.same(err, want); err != nil {
			return
		}
		if l != nil {
			w.m.end(l, w.millis(next))
		} else if w.millis(next) > w.m.now {
			w.m.raise(host, w.millis(next))
			w.m.raise(w.m.group(host), w.millis(next))
		}
		w.m.host(host).added = false
	default:
		w.did = fmt.Sprintf("ReleaseHost(%s, %d, %v)", host, token, next)
		err := w.ReleaseHost(w.Context(), host, token, next)
		if w.same(err, want); err == nil {
			w.m.end(l, w.millis(next))
		}
	}
}

func (w *comparison) bindHost() {
	b := reservation.Binding{Host: w.host(), Group: modelGroups[w.rand.IntN(len(modelGroups))]}
	w.did = fmt.Sprintf("Bind(%v)", b)
	got, err := w.Bind(w.Context(), []reservation.Binding{b}, 30*time.Second)
	w.same(err, nil)
	if want := w.m.bind(b, 30*time.Second); got[0] != want {
		w.Fatalf("step %d: %s = %v; want %v", w.step, w.did, got, want)
	}
}

func (w *comparison) changeAlias() {
	alias, hosts := modelAliases[w.rand.IntN(len(modelAliases))], []string(nil)
	for _, i := range w.rand.Perm(len(modelHosts))[:w.rand.IntN(4)] {
		hosts = append(hosts, modelHosts[i])
	}
	if w.step%2 == 0 {
		w.joinAlias(alias, hosts)
		return
	}
	w.did = fmt.Sprintf("SetAlias(%s, %q)", alias, hosts)
	w.same(w.SetAlias(w.Context(), alias, hosts), nil)
	w.m.setAlias(alias, hosts)
}

func (w *comparison) joinAlias(alias string, hosts []string) {
	w.did = fmt.Sprintf("JoinAlias(%s, %q)", alias, hosts)
	got, err := w.JoinAlias(w.Context(), alias, hosts)
	w.same(err, nil)
	if want := w.m.joinAlias(alias, hosts); !slices.Equal(got, want) {
		w.Fatalf("step %d: %s = %q; want %q", w.step, w.did, got, want)
	}
}

// compare checks that the store and the model explain every host alike.
func (w *comparison) compare() {
	w.Helper()
	for _, host := range modelHosts {
		got, err := w.Store.Explain(w.Context(), host)
		w.same(err, nil)
		want := w.m.explain(host)
		if !got.Until.Equal(want.Until) {
			w.Fatalf("step %d: after %s %s is %+v; want %+v", w.step, w.did, host, got, want)
		}
		if got.Until = want.Until; got != want {
			w.Fatalf("step %d: after %s %s is %+v; want %+v", w.step, w.did, host, got, want)
		}
	}
	got, err := w.Store.Stats(w.Context())
	got.Repaired = 0
	if want := w.m.stats(); err != nil || got != want {
		w.Fatalf("step %d: after %s: Stats = %+v, %v; want %+v", w.step, w.did, got, err, want)
	}
}
