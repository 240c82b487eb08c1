package hostslots

import (
	"encoding/binary"
	"time"
)

// The documents of an origin that are for one crew of spiders have a queue of their own there, a lane, so that those
// that wait for a spider of theirs are in nobody's way. A lane is there while it has documents. Those for any spider,
// crew 0, are in the origin's own queue.

// crew is what the slots know of one.
type crew struct {
	lanes  int
	parked list // lanes, longest first
}

// laneFor returns the lane of an origin for a crew, made on first sight.
func (s *Slots) laneFor(originID, crewNo uint32) uint32 {
	if crewNo == 0 {
		return originID
	}
	key := append(append(s.laneKey[:0], s.OriginKey(originID)...), 0)
	key = binary.LittleEndian.AppendUint32(key, crewNo)
	s.laneKey = key
	hash := s.hash(key)
	if id := s.findOrigin(hash, key); id != 0 {
		return id
	}
	s.crew(crewNo).lanes++
	o := s.origins.At(originID)
	return s.addOrigin(key, origin{hash: hash, host: o.host, held: o.held, base: originID, crew: crewNo})
}

// relane moves a document that is not queued to the lane of its origin for a crew.
func (s *Slots) relane(doc, crewNo uint32) {
	from := s.docs.At(doc).origin
	to := s.laneFor(s.origins.At(from).origin(from), crewNo)
	if to == from {
		return
	}
	s.docs.At(doc).origin = to
	s.origins.At(to).docs++
	s.origins.At(from).docs--
	s.dropLane(from)
}

// origin is that of a lane with the given number.
func (o *origin) origin(id uint32) uint32 {
	if o.base != 0 {
		return o.base
	}
	return id
}

func (s *Slots) crew(no uint32) *crew {
	for int(no) >= len(s.crews) {
		s.crews = append(s.crews, crew{})
	}
	return &s.crews[no]
}

// dropLane forgets a lane that has no documents any more. One that is an origin's own queue is only not parked then.
func (s *Slots) dropLane(id uint32) {
	o := s.origins.At(id)
	if o.docs > 0 {
		return
	}
	s.unparkLane(o, id)
	if o.base == 0 {
		return
	}
	s.crews[o.crew].lanes--
	at := &s.hosts.At(o.host).origins
	for *at != id {
		at = &s.origins.At(*at).next
	}
	*at = o.next
	s.originByKey.Remove(o.hash, id)
	s.text.Free(o.text, int(o.textLen))
	s.origins.Free(id)
}

// Park keeps the documents of a turn's origin that are for its crew back, until Unpark.
func (s *Slots) Suspend(now time.Duration, t Selection) {
	o := s.origins.At(t.lane)
	before := o.offers()
	o.parked = true
	s.byPark.pushBack(&s.crew(o.crew).parked, t.lane)
	s.aside++
	s.offersChanged(o, before)
	s.place(now, t.Group)
}

// Unpark lets those documents go on that were kept back longest for a crew. False: there are none.
func (s *Slots) resume(now time.Duration, crewNo uint32) bool {
	id := s.crew(crewNo).parked.head
	if id == 0 {
		return false
	}
	o := s.origins.At(id)
	before := o.offers()
	s.unparkLane(o, id)
	s.offersChanged(o, before)
	s.placeHost(now, o.host)
	return true
}

// FirstParked is the document that is first among those that were kept back longest for a crew; 0: there are none.
func (s *Slots) firstSuspended(crewNo uint32) (doc uint32) {
	id := s.crew(crewNo).parked.head
	if id == 0 {
		return 0
	}
	return s.origins.At(id).queue
}

// Resume lets those documents go on that were kept back longest for a crew, of which there are some, and returns the turn
// of the first. Where ok is false it may not be sent now; Next will return it when it may.
func (s *Slots) resumeFirst(now time.Duration, crewNo uint32) (t Selection, ok bool) {
	lane := s.crew(crewNo).parked.head
	s.resume(now, crewNo)
	o := s.origins.At(lane)
	group := s.hosts.At(o.host).group
	if !o.offers() || s.hosts.At(o.host).shut() || !s.sends.Has(group) || s.sends.Due(group) > now {
		return Selection{}, false
	}
	return s.turn(group, lane), true
}

func (s *Slots) unparkLane(o *origin, id uint32) {
	if o.parked {
		o.parked = false
		s.byPark.remove(&s.crews[o.crew].parked, id)
		s.aside--
	}
}

// AnyParked reports whether documents are kept back for any crew.
func (s *Slots) AnySuspended() bool { return s.aside > 0 }

// Crews calls yield with the crew of each queue of a host that has documents to be sent.
func (s *Slots) eachPool(hostID uint32, yield func(crewNo uint32)) {
	for id := s.hosts.At(hostID).origins; id != 0; id = s.origins.At(id).next {
		if o := s.origins.At(id); o.queue != 0 {
			yield(o.crew)
		}
	}
}
