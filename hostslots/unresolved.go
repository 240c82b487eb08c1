package hostslots

import (
	"slices"

	"urlserver/internal/container/slab"
)

// unresolved is the hosts without a group that have documents, and those documents.
type unresolved struct {
	docs        int
	failingDocs int              // of hosts whose names fail to resolve for now
	failing     recordList[host] // these hosts
	failed      []uint32         // hosts whose documents NextFailed returns
	queues      []uint32         // origins and pool queues that anyQueue has yet to return, the next one last
}

func (u *unresolved) init(hosts *slab.Slab[host]) {
	u.failing = newRecordList(hosts, func(h *host) *link { return &h.member })
}

// add adds n to the number of documents of a host without a group.
func (u *unresolved) add(h *host, n int) {
	u.docs += n
	if h.failing {
		u.failingDocs += n
	}
}

// SetFailing sets whether the name of the host, which is not bound, fails to resolve for now. A
// failing host is in Rejects, and its documents are in Counts.Failing. Bind resets it.
func (h Host) SetFailing(failing bool) {
	s, r := h.s, h.record()
	if r.group != 0 || r.failing == failing {
		return
	}
	r.failing = failing
	s.unresolved.failing.set(h.id, failing)
	if failing {
		s.unresolved.failingDocs += int(r.docs)
		return
	}
	s.unresolved.failingDocs -= int(r.docs)
	s.rejects.unrejected++
}

// Fail gives up a host without an address: NextFailed returns its documents. It does nothing if
// the host is bound.
func (h Host) Fail() {
	r := h.record()
	if r.group != 0 || r.failed || r.docs == 0 {
		return
	}
	r.failed = true
	h.s.unresolved.failed = append(h.s.unresolved.failed, h.id)
}

// NextFailed takes a document of a host that Host.Fail gave up out of its queue, for the caller to
// End; doc is 0 if there is none.
func (s *Slots) NextFailed() (doc, hostID uint32) {
	u := &s.unresolved
	for len(u.failed) > 0 {
		hostID = u.failed[len(u.failed)-1]
		h := s.hosts.At(hostID)
		if h.failed { // it may have been bound since
			queue := h.first
			if queue == 0 { // no document may be sent: robots.txt is not known, or no spider is free
				queue = s.anyQueue(hostID)
			}
			if queue != 0 {
				return s.dequeueFirst(queue), hostID
			}
		}
		h.failed = false
		u.failed = u.failed[:len(u.failed)-1]
	}
	return 0, 0
}

// anyQueue returns an origin or pool queue of a host that has a queued document; 0: none has. It
// lists all such queues of the host once, returns them in successive calls, and lists them again
// when the list is used up. So a call costs O(1) on average unless documents arrive in between.
func (s *Slots) anyQueue(hostID uint32) uint32 {
	u := &s.unresolved
	for {
		for ; len(u.queues) > 0; u.queues = u.queues[:len(u.queues)-1] {
			id := u.queues[len(u.queues)-1]
			if o := s.origins.At(id); o.host == hostID && o.queue != 0 { // it may have been emptied or forgotten since
				return id
			}
		}
		for id := s.hosts.At(hostID).origins; id != 0; id = s.origins.At(id).next {
			if s.origins.At(id).queue != 0 {
				u.queues = append(u.queues, id)
			}
		}
		if len(u.queues) == 0 {
			u.queues = nil
			return 0
		}
		slices.Reverse(u.queues)
	}
}
