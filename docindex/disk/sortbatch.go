package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// sortFrom is the least number of rows for which it pays to sort a commit.
const sortFrom = 16

// row is one change of a batch; it aliases the batch.
type row struct {
	kind       pebble.InternalKeyKind
	key, value []byte
}

// sortKey orders a row. It has no pointers, so that moving it costs little.
type sortKey struct {
	head, next uint64 // the key's first 16 bytes
	at         uint32 // in the batch
}

// sortBatch returns a batch with the rows of b in the order of their keys, so that each finds its
// place in the memtable beside the one before. Rows of one key keep their order. A batch that
// deletes ranges stays as it is.
func (t *txn) sortBatch(db *pebble.DB, b *pebble.Batch) *pebble.Batch {
	if b.Count() < sortFrom || !t.readRows(b) {
		return b
	}
	out := db.NewBatchWithSize(b.Len())
	for _, keys := range &t.byKind {
		t.sortRows(keys)
		for i := range keys {
			switch r := &t.rows[keys[i].at]; r.kind { // none can fail on a Batch that belongs to no commit
			case pebble.InternalKeyKindSet:
				out.Set(r.key, r.value, nil)
			case pebble.InternalKeyKindDelete:
				out.Delete(r.key, nil)
			case pebble.InternalKeyKindSingleDelete:
				out.SingleDelete(r.key, nil)
			}
		}
	}
	clear(t.rows)
	b.Close()
	return out
}

// readRows reads the rows of a batch. It returns false if a change is not of a single key.
func (t *txn) readRows(b *pebble.Batch) bool {
	t.rows = t.rows[:0]
	for kind := range t.byKind {
		t.byKind[kind] = t.byKind[kind][:0]
	}
	for r := b.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if !ok {
			return err == nil
		}
		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete:
		default:
			return false
		}
		one := sortKey{at: uint32(len(t.rows))}
		one.head, one.next = headOf(key)
		t.byKind[key[0]] = append(t.byKind[key[0]], one)
		t.rows = append(t.rows, row{kind: kind, key: key, value: value})
	}
}

// headOf returns two numbers that order keys as their first 16 bytes do.
func headOf(key []byte) (head, next uint64) {
	if len(key) < 16 {
		var long [16]byte
		copy(long[:], key)
		key = long[:]
	}
	return binary.BigEndian.Uint64(key), binary.BigEndian.Uint64(key[8:])
}

const maxMoves = 8 // moves for each row in sortRows before it sorts in another way

// sortRows sorts rows. Most rows of one kind come nearly in order, as a call has some URLs of one
// queue and then of the next: each row is moved to its place among those before it. Where that
// takes too many moves, the rows are in no such order.
func (t *txn) sortRows(keys []sortKey) {
	left := maxMoves * len(keys)
	for i := 1; i < len(keys); i++ {
		one, to := keys[i], i
		for ; to > 0 && t.compareRows(keys[to-1], one) > 0; to-- {
			keys[to] = keys[to-1]
		}
		keys[to] = one
		if left -= i - to; left < 0 {
			slices.SortFunc(keys, t.compareRows)
			return
		}
	}
}

func (t *txn) compareRows(x, y sortKey) int {
	switch {
	case x.head != y.head:
		return cmp.Compare(x.head, y.head)
	case x.next != y.next:
		return cmp.Compare(x.next, y.next)
	}
	if c := bytes.Compare(t.rows[x.at].key, t.rows[y.at].key); c != 0 {
		return c
	}
	return cmp.Compare(x.at, y.at)
}
