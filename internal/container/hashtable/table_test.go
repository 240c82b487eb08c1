package hashtable

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// twin is a table next to a map; keys[id] is the key of record id.
type twin struct {
	table *Table
	keys  map[uint32]uint64
	ids   map[uint64]uint32
	hash  func(key uint64) uint32
}

func newTwin(hash func(uint64) uint32) *twin {
	w := &twin{keys: map[uint32]uint64{}, ids: map[uint64]uint32{}, hash: hash}
	w.table = New(func(id uint32) uint32 { return hash(w.keys[id]) })
	return w
}

func (w *twin) find(key uint64) uint32 {
	return w.table.Find(w.hash(key), func(id uint32) bool { return w.keys[id] == key })
}

func (w *twin) step(t *testing.T, rng *rand.Rand, id uint32) {
	key := rng.Uint64N(5000)
	got, want := w.find(key), w.ids[key]
	if got != want {
		t.Fatalf("Find(%d) = %d, want %d", key, got, want)
	}
	if want == 0 {
		w.keys[id], w.ids[key] = key, id
		w.table.Add(w.hash(key), id)
		return
	}
	w.table.Remove(w.hash(key), want)
	delete(w.ids, key)
	delete(w.keys, want)
}

func TestTableAgainstMap(t *testing.T) {
	seed := maphash.MakeSeed()
	hashes := map[string]func(uint64) uint32{
		"good hash":        func(k uint64) uint32 { return uint32(maphash.Comparable(seed, k)) },
		"one shard":        func(k uint64) uint32 { return uint32(maphash.Comparable(seed, k)) >> shardBits },
		"all collide":      func(uint64) uint32 { return 42 },
		"equal low bytes":  func(k uint64) uint32 { return uint32(maphash.Comparable(seed, k)) &^ 0xff },
		"run wraps around": func(k uint64) uint32 { return 1<<22 - 1 - uint32(k%3) },
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			steps := 50_000
			if name == "all collide" || name == "run wraps around" {
				steps = 8000
			}
			w := newTwin(hash)
			rng := rand.New(rand.NewPCG(5, 6))
			for id := range steps {
				w.step(t, rng, uint32(id+1))
			}
			if w.table.Len() != len(w.ids) {
				t.Errorf("Len = %d, want %d", w.table.Len(), len(w.ids))
			}
			w.checkMarks(t)
		})
	}
}

// checkMarks sees that marks tell the truth, and that nobody stands before one who is further
// from home and wanted the same place: what Find ends its search by.
func (w *twin) checkMarks(t *testing.T) {
	t.Helper()
	for n := range w.table.shards {
		s := &w.table.shards[n]
		for i, m := range s.marks {
			if m == 0 {
				continue
			}
			hash := w.hash(w.keys[s.ids[i]])
			want := firstMark(hash)
			for range s.steps(hash, i) {
				want = want.further()
			}
			if m != want {
				t.Fatalf("shard %d, place %d: mark = %#x, want %#x", n, i, m, want)
			}
			if next := s.after(i); w.table.steps(s, next) > w.table.steps(s, i)+1 {
				t.Fatalf("shard %d: the entry of place %d had a right to place %d", n, next, i)
			}
		}
	}
}

func TestRemovingAStrangerIsOurOwnMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Remove of an absent record did not panic")
		}
	}()
	tb := New(func(uint32) uint32 { return 1 })
	tb.Add(1, 1)
	tb.Remove(1, 2)
}

func BenchmarkFind(b *testing.B) {
	seed := maphash.MakeSeed()
	hash := func(id uint32) uint32 { return uint32(maphash.Comparable(seed, id)) }
	tb := New(hash)
	for id := range uint32(1_000_000) {
		tb.Add(hash(id+1), id+1)
	}
	id := uint32(0)
	for b.Loop() {
		id = (id + 7919) % 1_000_000
		want := id + 1
		if tb.Find(hash(want), func(got uint32) bool { return got == want }) != want {
			b.Fatal("not found")
		}
	}
}
