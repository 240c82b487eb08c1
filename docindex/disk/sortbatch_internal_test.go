package disk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSorted applies batches as they are to one database, and sorted to another. Both must contain
// the same rows.
func TestSorted(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 11))
			plain, other := inMemory(t), inMemory(t)
			once := uint32(0) // keys that are set once, then deleted singly
			var x txn
			for step := range 50 {
				b, c := plain.NewBatch(), other.NewBatch()
				for range rnd.IntN(300) {
					each := []*pebble.Batch{b, c}
					alter(rnd, &once, each)
				}
				isRange := rnd.IntN(5) == 0
				if isRange {
					from, to := numberKey(docRow, rnd.Uint32N(20)), numberKey(docRow, rnd.Uint32N(20))
					b.DeleteRange(from, to, nil)
					c.DeleteRange(from, to, nil)
				}
				count := c.Count()
				s := x.sortBatch(other, c)
				if s.Count() != count {
					t.Fatalf("step %d: %d rows are %d when they are sorted", step, count, s.Count())
				}
				if keys := keysOf(s); !isRange && count >= sortFrom && !slices.IsSortedFunc(keys, bytes.Compare) {
					t.Fatalf("step %d: the keys are %q; want them sorted", step, keys)
				}
				apply(t, plain, b)
				apply(t, other, s)
				if got, want := all(t, other), all(t, plain); got != want {
					t.Fatalf("step %d: sorted, a batch leaves\n%s; want\n%s", step, got, want)
				}
			}
		})
	}
}

func inMemory(t *testing.T) *pebble.DB {
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Logger: &logger{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// alter adds the same operation to all batches: set, delete, or set and single-delete a key.
func alter(rnd *rand.Rand, once *uint32, each []*pebble.Batch) {
	key := numberKey(docRow, rnd.Uint32N(20))
	if rnd.IntN(3) == 0 {
		key = append(key, "behind the first eight bytes"[:rnd.IntN(28)]...)
	}
	value := fmt.Append(nil, rnd.Uint32())
	kind := rnd.IntN(4)
	for _, b := range each {
		switch kind {
		case 0:
			b.Delete(key, nil)
		case 1:
			b.Set(numberKey(planRow, *once), value, nil)
			b.SingleDelete(numberKey(planRow, *once), nil)
		default:
			b.Set(key, value, nil)
		}
	}
	*once++
}

func keysOf(b *pebble.Batch) (keys [][]byte) {
	for r := b.Reader(); ; {
		_, key, _, ok, _ := r.Next()
		if !ok {
			return keys
		}
		keys = append(keys, key)
	}
}

func apply(t *testing.T, db *pebble.DB, b *pebble.Batch) {
	t.Helper()
	if err := db.Apply(b, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, db *pebble.DB) (text string) {
	t.Helper()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		text += fmt.Sprintf("%q %q\n", it.Key(), it.Value())
	}
	return text
}
