package hostslots

import (
	"bytes"
	"encoding/binary"
	"time"

	"urlserver/internal/container/arena"
)

// A document's text in the arena: length of the ID (1 byte), of the URL
// (2 bytes), with ofCrawl the number of its crawl (2 bytes), ID, URL.
const (
	textHeader = 3
	crawlLen   = 2
)

// Doc is a held document as the caller sees it; ID and URL alias memory that is
// good until the document ends.
type Doc struct {
	ID, URL  []byte
	Priority int32
	Attempts int    // sends so far that count
	Resent   bool   // it has come back from a spider
	Pool     uint32 // the spider pool that it is for; 0: any spider
}

// Document is the number of the document with this ID; 0: none is held.
func (s *Slots) FindDoc(id []byte) uint32 { return s.findDoc(s.hash(id), id) }

// Seat is the group of a document, 0 where its host has none, and when that got the slot that it has; ok is false where
// it has none.
func (s *Slots) SlotOf(doc uint32) (groupID uint32, since time.Duration, ok bool) {
	groupID = s.groupOf(doc)
	if groupID == 0 || s.groups.At(groupID).slot == 0 {
		return groupID, 0, false
	}
	return groupID, s.slots[s.groups.At(groupID).slot-1].since, true
}

// AtSpiders calls yield with the documents that are at spiders and were sent by the given moment, looking at most transactions from
// a number on, 0 at first. next is where to go on; 0: these were the last. What is sent and ends between calls leaves a document
// out or not, but none comes twice: one that is sent again is sent after the moment of the first call.
func (s *Slots) InFlight(from, most uint32, sent time.Duration, yield func(doc uint32)) (next uint32) {
	end := uint32(s.txs.Cap())
	until := min(max(from, 1)+most, end)
	for id := max(from, 1); id < until; id++ {
		if tx := s.txs.At(id); tx.doc != 0 && tx.sent <= sent {
			yield(tx.doc)
		}
	}
	if until >= end {
		return 0
	}
	return until
}

func (s *Slots) findDoc(hash uint32, id []byte) uint32 {
	return s.docByID.Find(hash, func(n uint32) bool {
		got, _, _ := s.textOf(s.docs.At(n))
		return bytes.Equal(got, id)
	})
}

// Candidate is a document that is offered to the slots.
type Candidate struct {
	Origin   uint32 // from EnsureOrigin
	Pool     uint32 // the spider pool that it is for, a small number of the caller's; 0: any spider
	Crawl    []byte // the crawl that it is of; empty: none
	ID, URL  []byte // copied; the ID has at most 255 bytes, both together at most arena.MaxLen less 5
	Priority int32
}

// Offer adds a document to the queue of its origin. It returns false, and does nothing, if a
// document with this ID is held already.
func (s *Slots) Offer(now time.Duration, c Candidate) bool {
	hash := s.hash(c.ID)
	if s.findDoc(hash, c.ID) != 0 && !faulty(faultHeld) {
		return false
	}
	o := s.laneFor(c.Origin, c.Pool)
	n := s.docs.New()
	no := s.crawlFor(c.Crawl)
	s.arrivals++
	*s.docs.At(n) = document{text: s.addText(c.ID, c.URL, no), origin: o, priority: c.Priority, order: s.arrivals << 17}
	s.docByID.Add(hash, n)
	s.count(o, no, 1)
	s.push(n)
	s.placeOrigin(now, o)
	return true
}

func textLen(id, url []byte, crawl uint16) int {
	n := textHeader + len(id) + len(url)
	if crawl != 0 {
		n += crawlLen
	}
	return n
}

func (s *Slots) addText(id, url []byte, crawl uint16) arena.Ref {
	ref, b := s.text.New(textLen(id, url, crawl))
	size, head := uint16(len(url)), textHeader
	if crawl != 0 {
		binary.LittleEndian.PutUint16(b[head:], crawl)
		size, head = size|ofCrawl, head+crawlLen
	}
	b[0] = byte(len(id))
	binary.LittleEndian.PutUint16(b[1:], size)
	copy(b[head:], id)
	copy(b[head+len(id):], url)
	return ref
}

func (s *Slots) textOf(d *document) (id, url []byte, crawl uint16) {
	head := s.text.Bytes(d.text, textHeader)
	idLen, size, from := int(head[0]), binary.LittleEndian.Uint16(head[1:]), textHeader
	if size&ofCrawl != 0 {
		crawl = binary.LittleEndian.Uint16(s.text.Bytes(d.text, from+crawlLen)[from:])
		size, from = size&^ofCrawl, from+crawlLen
	}
	b := s.text.Bytes(d.text, from+idLen+int(size))[from:]
	return b[:idLen], b[idLen:], crawl
}

// Doc returns document n.
func (s *Slots) Doc(n uint32) Doc {
	d := s.docs.At(n)
	id, url, _ := s.textOf(d)
	return Doc{ID: id, URL: url, Priority: d.priority, Attempts: d.attempts(), Resent: d.order&resent != 0, Pool: s.origins.At(d.origin).crew}
}

// End lets go of document n, which is neither queued nor at a spider: one that
// Refuse, Done, Lost or Failed has just given out.
func (s *Slots) End(now time.Duration, n uint32) {
	d := s.docs.At(n)
	o := d.origin
	host := s.HostOf(o)
	id, url, crawl := s.textOf(d)
	s.docByID.Remove(s.hash(id), n)
	s.text.Free(d.text, textLen(id, url, crawl))
	s.docs.Free(n)
	s.count(o, crawl, -1)
	s.dropLane(o)
	s.placeHost(now, host)
}

// count adds n, 1 or -1, to the documents of an origin, its host and its group, and to those of a crawl.
func (s *Slots) count(originID uint32, crawl uint16, n int) {
	o := s.origins.At(originID)
	o.docs += uint32(n)
	s.countCrawl(o.host, crawl, n)
	h := s.hosts.At(o.host)
	h.docs += uint32(n)
	s.idleChanged(o.host)
	if h.limits.Blocked {
		s.bar(o.host)
	}
	if h.group == 0 {
		s.homeless += n
		if h.failing {
			s.failingDocs += n
		}
		return
	}
	s.groups.At(h.group).docs += uint32(n)
	s.recount(h.group)
}

// recount keeps what follows from a group's number of documents: its share of
// the leftover, and whether its hosts are rejected.
func (s *Slots) recount(id uint32) {
	g := s.groups.At(id)
	if s.cfg.CountDocs && !g.recounted {
		g.recounted = true
		s.recounted = append(s.recounted, id)
	}
	docs, room := int(g.docs), 0
	if g.slot != 0 {
		room = max(s.cfg.Len, int(g.sent))
	}
	s.left.Set(id, max(0, docs-room))
	if full := g.slot != 0 && docs >= room; full != g.full {
		g.full = full
		if full {
			s.full++
		} else {
			s.full--
		}
	}
	reject := (g.full || docs > s.cfg.RejectOver || g.claim == refused) && !faulty(faultReject)
	if !reject && s.byReject.has(&s.rejects, id) {
		s.readmitted++
	}
	s.byReject.set(&s.rejects, id, reject)
}
