package shapes

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"urlserver/docindex"
)

// Tables has the tables of those queues that have branches, by the queues' numbers. The zero value
// is ready.
type Tables[T any] struct {
	of       map[uint32]*Table[T]
	branches int // of all tables
	sweepAt  int
	page     page
	last     struct { // the URL that Shape was last called with
		url   []byte
		shape Shape
	}
}

// page is the page whose links came last.
type page struct {
	url   []byte
	host  []byte // in url, with its port
	path  []byte // in url: what is behind the host, without a slash at the end
	shape Shape
	hash  uint64 // of url
}

func (p *page) set(url []byte) {
	if bytes.Equal(p.url, url) {
		return
	}
	h := hash(offset)
	h.text(url)
	p.url, p.shape, p.hash = append(p.url[:0], url...), Of(url), uint64(h)
	p.host, p.path = split(p.url)
	p.path = bytes.TrimSuffix(p.path, slash)
}

// teaches reports whether something is learned from a link on the page: the page is on the same
// host, and is not another spelling of it, as it is when an answer redirects to https.
func (p *page) teaches(url, host []byte) bool {
	if !bytes.HasPrefix(p.host, host) || len(p.host) > len(host) && p.host[len(host)] != ':' {
		return false
	}
	_, path := split(url)
	return !bytes.Equal(p.path, bytes.TrimSuffix(path, slash))
}

// Shape is [Of]. It remembers the last one: a store asks several times for each URL.
func (s *Tables[T]) Shape(url []byte) Shape {
	if last := &s.last; !bytes.Equal(last.url, url) {
		last.url, last.shape = append(last.url[:0], url...), Of(url)
	}
	return s.last.shape
}

// State tells how many documents of a queue are scheduled and in transit.
type State func(queue uint32) (scheduled, inTransit uint64)

// Of returns the table of a queue, or nil if the queue has no branches.
func (s *Tables[T]) Of(queue uint32) *Table[T] { return s.of[queue] }

// Drop removes the table of a queue.
func (s *Tables[T]) Drop(queue uint32) {
	if t := s.of[queue]; t != nil {
		s.branches -= t.counted
		delete(s.of, queue)
	}
}

// Bytes returns the memory in use, about.
func (s *Tables[T]) Bytes() int64 {
	const entry = 8 + 8  // of the map
	const number = 8 + 2 // in Table.turns and Table.byHash
	return int64(len(s.of))*int64(unsafe.Sizeof(Table[T]{})+entry) +
		int64(s.branches)*int64(unsafe.Sizeof(branch[T]{})+number)
}

// Enter returns the number of the branch in which a new document of a queue waits; 0: it waits in
// none. In branches are links on pages that say neither a due time nor a priority nor a key: the
// order of all others is known. costlier reports that the cost of the page's
// shape has grown.
func (s *Tables[T]) Enter(queue uint32, p *docindex.Put, host []byte, of State) (no uint32, costlier bool) {
	if !isLink(p) {
		return 0, false
	}
	t := s.open(queue, of)
	if t == nil {
		return 0, false
	}
	before := len(t.branches)
	no = t.Branch(s.Shape(p.URL))
	t.counted += len(t.branches) - before
	s.branches += len(t.branches) - before
	s.page.set(p.Page)
	if s.page.teaches(p.URL, host) {
		costlier = t.learn(s.page.hash, s.page.shape, no)
	}
	return no, costlier
}

// isLink reports whether a new document waits in a branch.
func isLink(p *docindex.Put) bool {
	return len(p.Page) > 0 && p.Due == 0 && p.Priority == 0 && len(p.Key) == 0
}

// Links gives stores that keep the tables elsewhere the values by which Enter decides. The zero value is ready.
type Links struct{ page page }

// Text returns, in bytes: hash 8, path 8, kind 4 and patterns of traps 1 of the shape of a new
// document; whether something is learned from the link 1; hash 8 and shape's hash 8 of its page.
// "": it waits in no branch.
func (l *Links) Text(p *docindex.Put, host []byte) string {
	if !isLink(p) {
		return ""
	}
	l.page.set(p.Page)
	of, teach := Of(p.URL), byte(0)
	if l.page.teaches(p.URL, host) {
		teach = 1
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 38), of.hash)
	b = binary.BigEndian.AppendUint64(b, of.path)
	b = append(binary.BigEndian.AppendUint32(b, of.kind), of.traps, teach)
	b = binary.BigEndian.AppendUint64(b, l.page.hash)
	return string(binary.BigEndian.AppendUint64(b, l.page.shape.hash))
}

var slash = []byte("/")

// open returns the table of a queue. It makes one if enough of the queue is scheduled.
func (s *Tables[T]) open(queue uint32, of State) *Table[T] {
	scheduled, out := of(queue)
	if t := s.of[queue]; t != nil && scheduled+out > 0 {
		return t
	}
	s.Drop(queue)
	if scheduled < enough {
		return nil
	}
	if len(s.of) >= s.sweepAt {
		for id := range s.of {
			if scheduled, out := of(id); scheduled+out == 0 {
				s.Drop(id)
			}
		}
		s.sweepAt = max(64, 2*len(s.of))
	}
	return s.Make(queue)
}

// Make returns a new table of a queue.
func (s *Tables[T]) Make(queue uint32) *Table[T] {
	if s.of == nil {
		s.of = map[uint32]*Table[T]{}
	}
	t := &Table[T]{}
	s.of[queue] = t
	return t
}

// Rank compares a document outside the branches, by its due time and priority, with those in
// branches, which are due at any time and have no priority: negative, it goes before them;
// positive, after them; 0: the older one goes first.
func Rank(due int64, priority int32) int {
	switch {
	case due < 0 || due == 0 && priority > 0:
		return -1
	case due > 0 || priority < 0:
		return 1
	}
	return 0
}
