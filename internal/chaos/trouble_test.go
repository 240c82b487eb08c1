package chaos

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// agenda is what is to be done when. All of it is done by one goroutine.
type agenda struct{ entries []entry }

type entry struct {
	at time.Time
	do func()
}

func (a *agenda) after(d time.Duration, do func()) {
	a.entries = append(a.entries, entry{time.Now().Add(d), do})
}

// do does what is due.
func (a *agenda) do() {
	now := time.Now()
	due := slices.Clone(a.entries)
	a.entries = slices.DeleteFunc(a.entries, func(e entry) bool { return !e.at.After(now) })
	for _, e := range due {
		if !e.at.After(now) {
			e.do()
		}
	}
}

// note counts what happens to whom, and shows it.
func (r *rig) note(what, whom string) {
	r.happened[what]++
	r.log(what, whom)
}

func (r *rig) log(what, whom string) {
	r.events = append(r.events, fmt.Sprintf("%s %s %s", time.Now().Format(clock), what, whom))
}

// some is a random time, half to one and a half of the mean.
func (r *rig) some(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(r.rnd.Int64N(int64(mean)))
}

// again has trouble come each so often, until all trouble is over.
func (r *rig) again(mean time.Duration, trouble func()) {
	r.agenda.after(time.Duration(r.rnd.Int64N(int64(2*mean))), func() {
		if r.trouble {
			trouble()
			r.again(mean, trouble)
		}
	})
}

// plan has all sorts of trouble come.
func (r *rig) plan() {
	for _, d := range r.daemons {
		r.again(2*r.lease, func() { r.trip(d) })
	}
	for _, s := range r.spiders {
		r.again(4*r.lease, func() { r.lose(s) })
	}
	for _, w := range r.wires {
		r.again(2*r.lease, func() {
			r.note("wires cut", w.to)
			w.cut()
		})
		if w.tap != nil { // whatever makes lines late on their way makes the next ones look early
			continue
		}
		r.again(4*r.lease, func() {
			r.note("wires slow", w.to)
			w.delay.Store(int64(r.some(r.lease / 30)))
			r.agenda.after(r.some(r.lease/2), func() { w.delay.Store(0) })
		})
	}
	for _, s := range r.stores {
		fail := func() {
			r.note(s.what, "")
			r.reserves = time.Now().Add(time.Hour)
			s.fail()
			r.agenda.after(r.some(s.away), func() {
				s.mend()
				r.log("mended", s.what)
				r.reserves = time.Now().Add(r.settle)
			})
		}
		r.agenda.after(*during/3, func() {
			fail()
			r.again(s.every, func() {
				if time.Now().After(r.reserves) { // it works again
					fail()
				}
			})
		})
	}
}

// trip has a daemon die, stop or freeze for a while.
func (r *rig) trip(d *daemon) {
	if d.frozen || !d.runs() {
		return
	}
	switch n := r.rnd.IntN(10); {
	case n < 4:
		r.note("daemons killed", d.name)
		d.kill()
		r.gone(d)
	case n < 5:
		r.note("daemons stopped", d.name)
		d.signal(syscall.SIGTERM)
		r.stopped(d, time.Now().Add(20*time.Second))
	case n < 6:
		r.note("daemons frozen for less than a lease", d.name)
		r.freeze(d, r.some(r.lease/2))
	default:
		r.note("daemons frozen past their leases", d.name)
		r.freeze(d, r.lease+r.some(r.lease/2))
	}
}

// gone has a daemon that has ended start again.
func (r *rig) gone(d *daemon) {
	r.index.set(d.taker(), false, false)
	r.agenda.after(r.some(r.lease/4), d.start)
}

// stopped waits for a daemon that was told to stop.
func (r *rig) stopped(d *daemon, deadline time.Time) {
	switch {
	case !d.runs():
		r.gone(d)
	case time.Now().After(deadline):
		r.note("daemons that did not stop in time", d.name)
		d.kill()
		r.gone(d)
	default:
		d.frozen = true // nothing else happens to it meanwhile
		r.agenda.after(50*time.Millisecond, func() { d.frozen = false; r.stopped(d, deadline) })
	}
}

func (r *rig) freeze(d *daemon, d2 time.Duration) {
	d.frozen = true
	r.index.set(d.taker(), true, false)
	d.signal(syscall.SIGSTOP)
	r.agenda.after(d2, func() {
		d.frozen = false
		r.log("goes on", d.name)
		r.index.set(d.taker(), true, true)
		d.signal(syscall.SIGCONT)
	})
}

func (r *rig) lose(s *process) {
	if s.runs() {
		r.note("spiders killed", s.name)
		s.kill()
		r.agenda.after(r.some(time.Second), s.start)
	}
}
