package disk

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// sortFrom is how many rows of a commit are worth sorting.
const sortFrom = 16

// row is one change of a batch; it aliases the batch.
type row struct {
	head       uint64 // the key's first bytes
	at         uint32 // in the batch
	kind       pebble.InternalKeyKind
	key, value []byte
}

// sortBatch returns a batch with the rows of b in the order of their keys, so that each finds its
// place in the memtable beside the one before. Rows of one key keep their order. A batch that
// deletes ranges stays as it is.
func (t *txn) sortBatch(db *pebble.DB, b *pebble.Batch) *pebble.Batch {
	if b.Count() < sortFrom || !t.readRows(b) {
		return b
	}
	slices.SortFunc(t.rows, func(x, y row) int { return x.compare(&y) })
	out := db.NewBatchWithSize(b.Len())
	for i := range t.rows {
		switch r := &t.rows[i]; r.kind { // none can fail on a Batch that belongs to no commit
		case pebble.InternalKeyKindSet:
			out.Set(r.key, r.value, nil)
		case pebble.InternalKeyKindDelete:
			out.Delete(r.key, nil)
		case pebble.InternalKeyKindSingleDelete:
			out.SingleDelete(r.key, nil)
		}
	}
	clear(t.rows)
	b.Close()
	return out
}

// readRows reads the rows of a batch. It returns false if a row is not of one key.
func (t *txn) readRows(b *pebble.Batch) bool {
	t.rows = t.rows[:0]
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
		t.rows = append(t.rows, row{head: headOf(key), at: uint32(len(t.rows)), kind: kind, key: key, value: value})
	}
}

// headOf returns a number that orders keys as their first eight bytes do.
func headOf(key []byte) uint64 {
	var head [8]byte
	copy(head[:], key)
	return binary.BigEndian.Uint64(head[:])
}

func (r *row) compare(o *row) int {
	switch {
	case r.head < o.head:
		return -1
	case r.head > o.head:
		return 1
	}
	if c := bytes.Compare(r.key, o.key); c != 0 {
		return c
	}
	return int(r.at) - int(o.at)
}
