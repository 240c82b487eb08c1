package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/protocol"
)

// A row's key begins with a letter for its kind. Numbers in keys are big-endian, so that Pebble
// keeps the rows in the order of their numbers. The comments say "rest of the key: value".
const (
	crawlRow = 'c' // crawl number: the crawl without its documents
	idRow    = 'd' // DOC_ID that a client gave, or docNamer.uniqueKey: the document's name
	// partition number: what it is, and how many of its documents are completed; with priorities:
	// how many are not
	partitionRow = 'e'
	// partition number: the scheduled documents were purged; see partition.purgedDocs and clearing
	purgedRow       = 'f'
	pauseRow        = 'h' // host: what was learned of it, see readPause
	journalRow      = 'j' // commit number: the changes of queues
	leaseBatchRow   = 'l' // lease batch number: the end of the leases, below 0 for other daemons, and the documents
	metaRow         = 'm' // word: a value of the whole store
	noteRow         = 'n' // generation, name: a note; without a name: the bytes of the generation
	hostOverrideRow = 'o' // host: the operator's settings
	presetRow       = 'p' // crawl and key of a queue that does not exist yet: its settings
	queueRow        = 'q' // queue number: the queue without its documents
	setRow          = 'y' // queue number: exists while the queue has settings
	totalRow        = 'x' // crawl number of the scheduler: the crawl ID and the counts of its queues
	// crawl number of the scheduler, queue number: a queue that waits since its first document was put;
	// it has neither a queueRow nor a wakeRow
	freshRow         = 'v'
	wakeRow          = 'w' // crawl number of the scheduler, moment, queue number: see coldQueues.setWake
	planRow          = 's' // queue number, place: the body of a scheduled document
	crawlSettingsRow = 't' // crawl ID: its settings
	// queue number, hash: the document without its body; with 0 as queue number and docNamer.keyName:
	// the number of the queue with a key
	docRow = 'u'
)

const (
	hashLen  = 16
	placeLen = 8 + 4 + 8

	planKeyLen = 1 + 4 + placeLen
	nameLen    = 4 + hashLen
	urlLen     = 10 // bytes of a name's hash that depend on the URL alone; the rest may depend on the owner
	shortLen   = 4 + urlLen
)

var errRow = errors.New("a row is not as it was written")

// place is the position of a scheduled document in its queue: earlier due times first, then higher
// priorities, then lower sequence numbers. Compared as bytes, places have this order. Before them
// are the places in the branches of the queue, one branch after the other. A place in a branch has
// the branch's number where others have the due time, as a due time that no document has. Documents
// in branches are due at 0.
type place [placeLen]byte

func newPlace(due int64, priority int32, seq uint64) place {
	return rawPlace(max(due, math.MinInt64+maxBranch+1), priority, seq)
}

func rawPlace(due int64, priority int32, seq uint64) (p place) {
	binary.BigEndian.PutUint64(p[:], uint64(due)^1<<63)
	binary.BigEndian.PutUint32(p[8:], ^(uint32(priority) ^ 1<<31))
	binary.BigEndian.PutUint64(p[12:], seq)
	return p
}

const maxBranch = 1<<16 - 1

// newBranchPlace returns a place in a branch, from 1 on.
func newBranchPlace(branch uint32, seq uint64) place {
	return rawPlace(math.MinInt64+int64(branch), 0, seq)
}

var (
	// lastPlace is behind all other places.
	lastPlace = newPlace(math.MaxInt64, math.MinInt32, math.MaxUint64)
	// plainPlace is behind those in branches, and before all others.
	plainPlace = rawPlace(math.MinInt64+maxBranch, math.MinInt32, math.MaxUint64)
)

// branch returns the number of the branch that a place is in; 0: it is in none.
func (p *place) branch() uint32 {
	if no := binary.BigEndian.Uint64(p[:]); no <= maxBranch {
		return uint32(no)
	}
	return 0
}

// previous returns a place directly before one in a branch.
func (p *place) previous() place {
	return newBranchPlace(p.branch(), p.seq()-1)
}

func (p *place) due() int64 {
	if p.branch() != 0 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p[:]) ^ 1<<63)
}

func (p *place) seq() uint64     { return binary.BigEndian.Uint64(p[12:]) }
func (p *place) priority() int32 { return int32(^binary.BigEndian.Uint32(p[8:]) ^ 1<<31) }
func (p *place) before(q *place) bool {
	return bytes.Compare(p[:], q[:]) < 0
}

// name identifies a document permanently: by the number of its queue, which is never reused, and a
// hash of its URL and owner.
type name struct {
	queue uint32
	hash  [hashLen]byte // the bytes behind urlLen are 0 where docNamer.short leaves them out
}

// isOf reports whether two names are of the same URL.
func (n *name) isOf(o *name) bool {
	return n.queue == o.queue && bytes.Equal(n.hash[:urlLen], o.hash[:urlLen])
}

func (n *name) append(dst []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, n.queue), n.hash[:]...)
}

// readName reads a name of nameLen or shortLen bytes.
func readName(b []byte) (n name, err error) {
	if len(b) != nameLen && len(b) != shortLen {
		return n, errRow
	}
	n.queue = binary.BigEndian.Uint32(b)
	copy(n.hash[:], b[4:])
	return n, nil
}

// docKey appends the key of a document's row. The key of a short name has only the short hash.
func (n *name) docKey(dst []byte) []byte {
	dst = n.append(append(dst, docRow))
	if n.isShort() {
		dst = dst[:len(dst)-nameLen+shortLen]
	}
	return dst
}

func (n *name) isShort() bool {
	return [hashLen - urlLen]byte(n.hash[urlLen:]) == [hashLen - urlLen]byte{}
}

func planKey(dst []byte, queue uint32, p *place) []byte {
	return append(binary.BigEndian.AppendUint32(append(dst, planRow), queue), p[:]...)
}

// numberKey returns the kind and the number of a queue: the key of a row, or the prefix of keys.
func numberKey(kind byte, queue uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, queue)
}

// numberEnd returns the first key behind all keys that begin with numberKey(kind, queue).
func numberEnd(kind byte, queue uint32) []byte {
	if queue == math.MaxUint32 {
		return []byte{kind + 1}
	}
	return numberKey(kind, queue+1)
}

func countKey(kind byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{kind}, n) }

// doc is the record of a document without its body.
type doc struct {
	completed bool
	// completed by a purge of its partition: its row still says scheduled, and its body is still in
	// the order
	purged  bool
	created uint32
	last    embedded.Last // its last outcome
	member  uint32        // its partition; 0: it is of no crawl
	at      place         // set if it is scheduled or purged
	id      []byte        // its DOC_ID if a client gave it
	url     []byte        // set if it is completed and not purged
	owner   []byte        // set if it is completed and of no crawl: see docindex.OwnerOf
	anyone  bool          // completed before version 4, and of no crawl: its spiderid, if it had one, is lost
	// scheduled: its body has more than metadata (see docindex.Packed)
	packed bool
	// completed or in transit: the part of the body that a completed document keeps, see lastingOf;
	// in transit it is not nil
	lasting *docindex.Packed
}

const (
	noKind = 0xff // in a completed document's row: how it ended is not known

	flagCompleted = 1
	flagID        = 2
	flagMember    = 4
	flagOwner     = 8
	flagNoOwner   = 16 // completed, of no crawl, and without an owner; never set in rows from before version 4
	flagLast      = 32 // it has a last outcome; never set in rows from before version 5
	flagPacked    = 64 // see doc.packed and doc.lasting; never set in rows from before version 6
	ownerLen      = 2  // bytes of the owner's length, and of lasting's
	docHead       = 1 + 4
	memberLen     = 4
	lastLen       = 2 + 4
)

// kind returns how a completed document ended, or noKind.
func (d *doc) kind() uint8 {
	if kind, ok := d.last.Kind(); ok {
		return uint8(kind)
	}
	return noKind
}

func (d *doc) append(dst []byte) []byte {
	flags := byte(0)
	if d.completed {
		flags |= flagCompleted
	}
	if len(d.id) > 0 {
		flags |= flagID
	}
	if d.member != 0 {
		flags |= flagMember
	}
	owned := d.completed && d.member == 0 && len(d.owner) > 0
	switch {
	case owned:
		flags |= flagOwner
	case d.completed && d.member == 0 && !d.anyone:
		flags |= flagNoOwner
	}
	if d.last != (embedded.Last{}) {
		flags |= flagLast
	}
	lasts := d.completed && d.lasting != nil && len(*d.lasting) > 0
	if lasts || !d.completed && d.packed {
		flags |= flagPacked
	}
	dst = binary.BigEndian.AppendUint32(append(dst, flags), d.created)
	if d.completed {
		dst = append(dst, d.kind())
	} else {
		dst = append(dst, d.at[:]...)
	}
	if flags&flagLast != 0 {
		dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(dst, d.last.What), d.last.At)
	}
	if d.member != 0 {
		dst = binary.BigEndian.AppendUint32(dst, d.member)
	}
	if owned {
		dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(d.owner))), d.owner...)
	}
	if lasts {
		dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(*d.lasting))), *d.lasting...)
	}
	if len(d.id) > 0 {
		dst = append(append(dst, byte(len(d.id))), d.id...)
	}
	return append(dst, d.url...)
}

// cutText cuts a text and its length of 16 bits off a row.
func cutText(b []byte) (text, rest []byte, err error) {
	if len(b) < ownerLen || len(b) < ownerLen+int(binary.BigEndian.Uint16(b)) {
		return nil, nil, errRow
	}
	end := ownerLen + int(binary.BigEndian.Uint16(b))
	return b[ownerLen:end:end], b[end:], nil
}

// readDoc decodes a document's row. The record aliases b.
func readDoc(b []byte) (d doc, err error) {
	if len(b) < docHead {
		return d, errRow
	}
	flags := b[0]
	d.completed = flags&flagCompleted != 0
	d.created = binary.BigEndian.Uint32(b[1:])
	b = b[docHead:]
	n := placeLen
	if d.completed {
		n = 1
	}
	if len(b) < n {
		return d, errRow
	}
	if d.completed {
		d.last = embedded.LastBefore(b[0])
	} else {
		copy(d.at[:], b)
	}
	b = b[n:]
	if flags&flagLast != 0 {
		if len(b) < lastLen {
			return d, errRow
		}
		d.last = embedded.Last{What: binary.BigEndian.Uint16(b), At: binary.BigEndian.Uint32(b[2:])}
		b = b[lastLen:]
	}
	if flags&flagMember != 0 {
		if len(b) < memberLen {
			return d, errRow
		}
		d.member, b = binary.BigEndian.Uint32(b), b[memberLen:]
	}
	d.anyone = d.completed && d.member == 0 && flags&(flagOwner|flagNoOwner) == 0
	if flags&flagOwner != 0 {
		if d.owner, b, err = cutText(b); err != nil {
			return d, err
		}
	}
	d.packed = flags&flagPacked != 0 && !d.completed
	if flags&flagPacked != 0 && d.completed {
		var lasting []byte
		if lasting, b, err = cutText(b); err != nil {
			return d, err
		}
		d.lasting = keep(lasting)
	}
	if flags&flagID != 0 {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return d, errRow
		}
		d.id, b = b[1:1+b[0]:1+b[0]], b[1+b[0]:]
	}
	d.url = b
	return d, nil
}

// plan is the body of a scheduled document.
type plan struct {
	created uint32
	member  uint32 // its partition; 0: it is of no crawl
	tagged  bool   // its name comes from docNamer.tagged
	id, url []byte
	packed  docindex.Packed
}

const (
	planHead   = 4 + 1 + 2
	planMember = 1 << 15 // a bit in the URL's length: the document has a partition
	planTagged = 1 << 14 // a bit in the URL's length: see plan.tagged
)

const _ = uint(planTagged - 1 - protocol.MaxURL)

func (p *plan) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, p.created)
	size := uint16(len(p.url))
	if p.member != 0 {
		size |= planMember
	}
	if p.tagged {
		size |= planTagged
	}
	dst = binary.BigEndian.AppendUint16(append(dst, byte(len(p.id))), size)
	if p.member != 0 {
		dst = binary.BigEndian.AppendUint32(dst, p.member)
	}
	return append(append(append(dst, p.id...), p.url...), p.packed...)
}

// readPlan decodes the body of a scheduled document. The result aliases b.
func readPlan(b []byte) (p plan, err error) {
	if len(b) < planHead {
		return p, errRow
	}
	p.created = binary.BigEndian.Uint32(b)
	id, url := int(b[4]), int(binary.BigEndian.Uint16(b[5:]))
	b = b[planHead:]
	if url&planMember != 0 {
		if len(b) < memberLen {
			return p, errRow
		}
		p.member, b = binary.BigEndian.Uint32(b), b[memberLen:]
		url &^= planMember
	}
	p.tagged = url&planTagged != 0
	url &^= planTagged
	if len(b) < id+url {
		return p, errRow
	}
	p.id, p.url, p.packed = b[:id:id], b[id:id+url:id+url], b[id+url:]
	return p, nil
}
