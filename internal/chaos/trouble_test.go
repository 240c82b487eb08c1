package chaos

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// schedule is a list of functions with the times at which to call them. One goroutine uses it.
type schedule struct{ entries []entry }

type entry struct {
	at time.Time
	do func()
}

func (a *schedule) after(d time.Duration, do func()) {
	a.entries = append(a.entries, entry{time.Now().Add(d), do})
}

// do calls the functions that are due.
func (a *schedule) do() {
	now := time.Now()
	due := slices.Clone(a.entries)
	a.entries = slices.DeleteFunc(a.entries, func(e entry) bool { return !e.at.After(now) })
	for _, e := range due {
		if !e.at.After(now) {
			e.do()
		}
	}
}

// note counts an event and logs it.
func (r *rig) note(what, whom string) {
	r.happened[what]++
	r.log(what, whom)
}

func (r *rig) log(what, whom string) {
	r.events = append(r.events, fmt.Sprintf("%s %s %s", time.Now().Format(clock), what, whom))
}

// some returns a random time, half to one and a half of the mean.
func (r *rig) some(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(r.rnd.Int64N(int64(mean)))
}

// again calls trouble repeatedly, with random pauses, until all trouble ends.
func (r *rig) again(mean time.Duration, trouble func()) {
	r.schedule.after(time.Duration(r.rnd.Int64N(int64(2*mean))), func() {
		if r.trouble {
			trouble()
			r.again(mean, trouble)
		}
	})
}

// plan plans all sorts of trouble.
func (r *rig) plan() {
	for _, d := range r.daemons {
		r.again(2*r.lease, func() { r.disturb(d) })
	}
	for _, s := range r.spiders {
		r.again(4*r.lease, func() { r.lose(s) })
	}
	for _, w := range r.proxies {
		r.again(2*r.lease, func() {
			r.note("connections cut", w.to)
			w.cut()
		})
		if w.onLine != nil { // a delay of lines makes the next ones seem early
			continue
		}
		r.again(4*r.lease, func() {
			r.note("connections slow", w.to)
			w.delay.Store(int64(r.some(r.lease / 30)))
			r.schedule.after(r.some(r.lease/2), func() { w.delay.Store(0) })
		})
	}
	for _, s := range r.stores {
		fail := func() {
			r.note(s.what, "")
			r.reserves = time.Now().Add(time.Hour)
			s.fail()
			r.schedule.after(r.some(s.away), func() {
				s.mend()
				r.log("mended", s.what)
				r.reserves = time.Now().Add(r.settle)
			})
		}
		r.schedule.after(*during/3, func() {
			fail()
			r.again(s.every, func() {
				if time.Now().After(r.reserves) { // it can be reserved again
					fail()
				}
			})
		})
	}
}

// disturb kills, stops or freezes a daemon for a while.
func (r *rig) disturb(d *daemon) {
	if d.frozen || !d.runs() {
		return
	}
	switch n := r.rnd.IntN(10); {
	case n < 4:
		r.note("daemons killed", d.name)
		d.kill()
		r.restart(d)
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

// restart starts a daemon that has ended.
func (r *rig) restart(d *daemon) {
	r.index.set(d.taker(), false, false)
	r.schedule.after(r.some(r.lease/4), d.start)
}

// stopped waits for a daemon that gets a signal to stop.
func (r *rig) stopped(d *daemon, deadline time.Time) {
	switch {
	case !d.runs():
		r.restart(d)
	case time.Now().After(deadline):
		r.note("daemons that did not stop in time", d.name)
		d.kill()
		r.restart(d)
	default:
		d.frozen = true // so that nothing else happens to it meanwhile
		r.schedule.after(50*time.Millisecond, func() { d.frozen = false; r.stopped(d, deadline) })
	}
}

func (r *rig) freeze(d *daemon, d2 time.Duration) {
	d.frozen = true
	r.index.set(d.taker(), true, false)
	d.signal(syscall.SIGSTOP)
	r.schedule.after(d2, func() {
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
		r.schedule.after(r.some(time.Second), s.start)
	}
}
