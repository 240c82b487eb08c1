package urlserver

import (
	"context"
	"time"

	"urlserver/reservation"
)

// addedLeases is the number of leases after which a daemon deletes a host that it added and has
// neither reserved nor tried for since.
const addedLeases = 2

// added has the hosts that this daemon added to a store that counts no documents, and that it has
// not reserved now. Such a host counts as one document while the store knows it, so a daemon has to
// delete it: one that has reserved it, when it releases the host and holds no document of it; or
// this one, when it has not tried for the host for a while, or ends. The zero value is ready.
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

// again notes that this daemon tries for a host, if it has added the host.
func (a *added) again(host string, now time.Time) {
	if _, is := a.since[host]; is {
		a.add(host, now)
	}
}

func (a *added) remove(host string) { delete(a.since, host) }

// before takes out the hosts that were added no later than a moment, no more than most of them.
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

// clean deletes the hosts that this daemon left no later than a moment from the store. A host that
// another daemon has reserved stays; that daemon deletes it when it releases it. The store keeps
// the time of the next request to a deleted host.
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
