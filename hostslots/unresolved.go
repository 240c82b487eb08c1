package hostslots

import "urlserver/internal/container/slab"

// unresolved is the hosts without a group that have documents, and those documents.
type unresolved struct {
	docs        int
	failingDocs int              // of hosts whose names fail to resolve for now
	failing     recordList[host] // these hosts
	failed      []uint32         // hosts whose documents NextFailed returns
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
			if queue == 0 { // few, if any, have documents that may not be sent
				queue = s.anyQueue(h)
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

// anyQueue returns an origin or pool queue of a host that has a queued document; 0: none has.
func (s *Slots) anyQueue(h *host) uint32 {
	for id := h.origins; id != 0; id = s.origins.At(id).next {
		if s.origins.At(id).queue != 0 {
			return id
		}
	}
	return 0
}
