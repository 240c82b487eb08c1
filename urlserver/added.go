package urlserver

import (
	"context"
	"time"

	"urlserver/reservation"
)

// addedLeases is for how many leases a host stays known to the store by a daemon that neither has
// it nor tries for it.
const addedLeases = 2

// added are the hosts that this daemon added to a store that counts no documents, and that it has
// not reserved now. Such a host counts as one document for as long as it is known, so somebody has
// to delete it: who reserves it when it is released with nothing held, and this daemon when it has
// not tried for it for a while, or ends. The zero value is ready.
type added struct {
	since map[string]time.Time
	queue []addedHost // in order of time; an entry whose time differs from since is outdated
}

type addedHost struct {
	name string
	at   time.Time
}

func (a *added) add(host string, now time.Time) {
	if a.since == nil {
		a.since = map[string]time.Time{}
	}
	a.since[host] = now
	a.queue = append(a.queue, addedHost{host, now})
}

// again notes that a host is tried for, if this daemon has added it.
func (a *added) again(host string, now time.Time) {
	if _, is := a.since[host]; is {
		a.add(host, now)
	}
}

func (a *added) remove(host string) { delete(a.since, host) }

// before takes out the hosts that were added no later than a moment, most of them at most.
func (a *added) before(moment time.Time, most int) (hosts []string) {
	n := 0
	for ; n < len(a.queue) && len(hosts) < most && !a.queue[n].at.After(moment); n++ {
		h := a.queue[n]
		if at, is := a.since[h.name]; is && at.Equal(h.at) {
			hosts = append(hosts, h.name)
			delete(a.since, h.name)
		}
	}
	if a.queue = a.queue[n:]; len(a.queue) == 0 {
		a.queue = nil
	}
	return hosts
}

// leave notes that the store knows a host which this daemon has not reserved.
func (r *Reserver) leave(host string, slice bool) {
	if r.adds(slice) {
		r.added.add(host, r.clock())
	}
}

// mayKnow notes that the store may know a host by a call of this daemon that was not answered.
func (r *Reserver) mayKnow(host string, slice bool) {
	if _, is := r.added.since[host]; !is {
		r.leave(host, slice)
	}
}

// cleanBatch is how many hosts the store is asked to forget at once.
const cleanBatch = 1000

// clean deletes the hosts that this daemon left no later than a moment. Whoever has one reserved
// keeps it, and deletes it when that is over; the store still knows when it may be asked next.
func (r *Reserver) clean(ctx context.Context, moment time.Time) {
	for ctx.Err() == nil {
		hosts := r.added.before(moment, cleanBatch)
		if len(hosts) == 0 {
			return
		}
		calls := r.callsOf(len(hosts))
		for i, host := range hosts {
			calls[i] = reservation.Call{Verb: reservation.DeleteHost, Host: host}
		}
		away := false
		for i, a := range r.call(ctx, calls) {
			if a.Err != nil && !answered(a.Err) {
				away = true
				r.added.add(hosts[i], r.clock())
			}
		}
		if away {
			return
		}
	}
}
