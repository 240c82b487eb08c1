package disk

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

const (
	planKeyLen = 1 + 4 + placeLen
	longRun    = 16 // bodies that a range is deleted for; for fewer it costs more than it saves
)

// run is the keys of bodies that are deleted and have no others between them.
type run struct{ keys []byte }

func (r *run) add(key []byte) { r.keys = append(r.keys, key...) }

// end deletes them.
func (r *run) end(b *pebble.Batch) {
	if n := len(r.keys) / planKeyLen; n >= longRun {
		b.DeleteRange(r.keys[:planKeyLen], append(r.keys[(n-1)*planKeyLen:], 0), nil)
	} else {
		for key := range slices.Chunk(r.keys, planKeyLen) {
			b.SingleDelete(key, nil)
		}
	}
	r.keys = r.keys[:0]
}

// ends is rows of documents of a queue that have ended.
type ends struct {
	rows   []endRow
	values []byte
}

type endRow struct {
	name     name
	from, to int // of its value, in values
}

func (e *ends) add(n *name, d *doc) {
	from := len(e.values)
	e.values = d.append(e.values)
	e.rows = append(e.rows, endRow{*n, from, len(e.values)})
}

// write sets them, in the order of their keys: a memtable takes such for a fraction of what others cost it.
func (e *ends) write(b *pebble.Batch) {
	slices.SortFunc(e.rows, func(x, y endRow) int { return bytes.Compare(x.name.hash[:], y.name.hash[:]) })
	var key [1 + nameLen]byte
	for i := range e.rows {
		r := &e.rows[i]
		b.Set(r.name.docKey(key[:0]), e.values[r.from:r.to], nil)
	}
	e.rows, e.values = e.rows[:0], e.values[:0]
}
