package disk

import (
	"encoding/binary"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// reader reads numbers and texts from a row. The first fault sets bad; all later reads return zero
// values.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	part := r.b[:n:n]
	r.b = r.b[n:]
	return part
}

func (r *reader) text() []byte { return r.bytes(r.uint()) }

func appendText(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// queueRecord is a queue's row.
type queueRecord struct {
	queuesched.Persisted
	crawl, key []byte
	hasIDs     bool              // some of its documents have a DOC_ID that a client gave
	ownerless  bool              // none of its documents has an owner; never set in rows from before version 4
	asOf       uint64            // the last commit whose changes it contains
	wake       queuesched.Moment // of its wake row; of its freshRow: since when it waits; NoMoment: neither
	fresh      bool              // its row is a freshRow
	// The row of an evicted queue has the next fields. They are zero in others, and if the journal
	// has a later change.
	due      int64
	cursor   place
	branches []byte // see shapes.Table.Append; nil: it has none
}

// isSet reports whether a queue has a delay, a limit or a block that has not ended.
func (q *queueRecord) isSet(now int64) bool { return q.Delay >= 0 || q.Limit > 0 || q.Blocked > now }

const (
	flagAnyHost   = 1
	flagHasIDs    = 2
	flagOwnerless = 4
	flagWake      = 8   // it has a wake row; never set in rows from before version 7, nor are the next
	flagDue       = 16  // it has the due time, which is not that of the wake row
	flagWakeIsDue = 32  // its due time is that of the wake row
	flagCursor    = 64  // it has a cursor
	flagPlain     = 128 // its cursor is plainPlace
	flagBranches  = 256 // it has branches; never set in rows from before version 8
)

func (q *queueRecord) append(dst []byte) []byte {
	flags := uint64(0)
	if q.AnyHost {
		flags |= flagAnyHost
	}
	if q.hasIDs {
		flags |= flagHasIDs
	}
	if q.ownerless {
		flags |= flagOwnerless
	}
	if q.wake != queuesched.NoMoment {
		flags |= flagWake
	}
	switch {
	case q.due == 0 || q.due == queuesched.Never:
	case queuesched.MomentOf(q.due) == q.wake:
		flags |= flagWakeIsDue
	default:
		flags |= flagDue
	}
	switch q.cursor {
	case place{}:
	case plainPlace:
		flags |= flagPlain
	default:
		flags |= flagCursor
	}
	if q.branches != nil {
		flags |= flagBranches
	}
	dst = appendText(appendText(binary.AppendUvarint(dst, flags), q.crawl), q.key)
	for _, v := range []uint64{q.asOf, uint64(q.Scheduled), uint64(q.Completed), uint64(q.Limit)} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, v := range []int64{q.Served[queuesched.SlotConsumer], q.Served[queuesched.FrontierConsumer],
		q.Delay, q.Blocked} {
		dst = binary.AppendVarint(dst, v)
	}
	if flags&flagWake != 0 {
		dst = binary.AppendVarint(dst, int64(q.wake))
	}
	if flags&flagDue != 0 {
		dst = binary.AppendVarint(dst, q.due)
	}
	if flags&flagCursor != 0 {
		dst = append(dst, q.cursor[:]...)
	}
	if flags&flagBranches != 0 {
		dst = appendText(dst, q.branches)
	}
	return dst
}

func readQueue(b []byte) (q queueRecord, err error) {
	r := reader{b: b}
	flags := r.uint()
	q.AnyHost, q.hasIDs = flags&flagAnyHost != 0, flags&flagHasIDs != 0
	q.ownerless = flags&flagOwnerless != 0
	q.crawl, q.key = r.text(), r.text()
	q.asOf = r.uint()
	q.Scheduled, q.Completed, q.Limit = uint32(r.uint()), uint32(r.uint()), uint32(r.uint())
	q.Served[queuesched.SlotConsumer], q.Served[queuesched.FrontierConsumer], q.Delay, q.Blocked = r.int(),
		r.int(), r.int(), r.int()
	if q.wake = queuesched.NoMoment; flags&flagWake != 0 {
		q.wake = queuesched.Moment(r.int())
	}
	if flags&flagWakeIsDue != 0 {
		q.due = q.wake.MS()
	}
	if flags&flagDue != 0 {
		q.due = r.int()
	}
	if flags&flagPlain != 0 {
		q.cursor = plainPlace
	}
	if flags&flagCursor != 0 {
		copy(q.cursor[:], r.bytes(placeLen))
	}
	if flags&flagBranches != 0 {
		q.branches = r.text()
	}
	if r.bad || len(q.key) == 0 {
		return q, errRow
	}
	return q, nil
}

// globals are numbers of the whole store. Each journal row contains them as they are after its
// commit.
type globals struct {
	seq      uint64 // the last sequence number given to a scheduled document
	queueNo  uint32 // the last number given to a queue
	outcomes [docindex.Kinds]int
}

// journalKinds is how many kinds of outcomes a journal row counts: those before OutOfScope, whose
// count has a row of its own.
const journalKinds = int(docindex.OutOfScope)

func (g *globals) append(dst []byte) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, g.seq), uint64(g.queueNo))
	for _, n := range g.outcomes[:journalKinds] {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

func (r *reader) globals() (g globals) {
	g.seq, g.queueNo = r.uint(), uint32(r.uint())
	for i := range journalKinds {
		g.outcomes[i] = int(r.uint())
	}
	return g
}

// change is a commit's change of one queue.
type change struct {
	queue                uint32
	scheduled, completed int64   // added to the queue's counts; may be negative
	served               [2]bool // by consumer: the commit's time is the last time it was served
	fresh                bool    // the queue's row is a freshRow; crawl has its crawl then
	crawl                uint32
}

const flagFresh = 1 << (2 + 32) // above the queue's number; never set in rows from before version 8

func (c *change) append(dst []byte) []byte {
	flags := uint64(0)
	for consumer, is := range c.served {
		if is {
			flags |= 1 << consumer
		}
	}
	if c.fresh {
		flags |= flagFresh
	}
	dst = binary.AppendUvarint(dst, uint64(c.queue)<<2|flags)
	if c.fresh {
		dst = binary.AppendUvarint(dst, uint64(c.crawl))
	}
	return binary.AppendVarint(binary.AppendVarint(dst, c.scheduled), c.completed)
}

func (r *reader) change() (c change) {
	head := r.uint()
	c.queue = uint32(head >> 2)
	c.served = [2]bool{head&1 != 0, head&2 != 0}
	if c.fresh = head&flagFresh != 0; c.fresh {
		c.crawl = uint32(r.uint())
	}
	c.scheduled, c.completed = r.int(), r.int()
	return c
}

// leasedLen is the length of a document in a lease batch's row: the queue's number and the place.
// The row begins with the end of the leases.
const leasedLen = 4 + placeLen

// presetKey is the key of a preset row.
func presetKey(crawl, key []byte) []byte {
	return append(appendText([]byte{presetRow}, crawl), key...)
}

func readPresetKey(b []byte) (crawl, key []byte, err error) {
	r := reader{b: b[1:]}
	crawl = r.text()
	if r.bad || len(r.b) == 0 {
		return nil, nil, errRow
	}
	return crawl, r.b, nil
}

// appendSettings writes each setting that is not nil as its kind and its value. readSettings reads
// them.
func appendSettings(dst []byte, s queuesched.Settings) []byte {
	if s.Delay != nil {
		dst = binary.AppendVarint(append(dst, byte(docindex.SetDelay)), *s.Delay)
	}
	if s.Blocked != nil {
		dst = binary.AppendVarint(append(dst, byte(docindex.SetBlock)), *s.Blocked)
	}
	if s.Limit != nil {
		dst = binary.AppendVarint(append(dst, byte(docindex.SetLimit)), int64(*s.Limit))
	}
	return dst
}

func readSettings(b []byte) (s queuesched.Settings, err error) {
	for r := (reader{b: b}); len(r.b) > 0 || r.bad; {
		which := docindex.SettingKind(r.uint())
		value := r.int()
		limit := uint32(value)
		switch {
		case r.bad || which > docindex.SetLimit:
			return s, errRow
		case which == docindex.SetDelay:
			s.Delay = &value
		case which == docindex.SetBlock:
			s.Blocked = &value
		default:
			s.Limit = &limit
		}
	}
	return s, nil
}
