package hashindex

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// TestIndexAgainstMap compares an Index with a map, with good hashes and with several bad ones.
func TestIndexAgainstMap(t *testing.T) {
	seed := maphash.MakeSeed()
	for _, c := range []struct {
		name  string
		steps int
		hash  func(key uint32) uint32
	}{
		{"good hash", 50_000, func(key uint32) uint32 { return uint32(maphash.Comparable(seed, key)) }},
		{"one shard", 50_000, func(key uint32) uint32 { return uint32(maphash.Comparable(seed, key)) >> shardBits }},
		{"equal low bytes", 50_000, func(key uint32) uint32 { return uint32(maphash.Comparable(seed, key)) &^ 0xff }},
		{"fifty hashes", 8000, func(key uint32) uint32 { return key % 50 << 22 }},
		{"run wraps around", 8000, func(key uint32) uint32 { return 1<<24 - 1 - key%3 }},
		{"all the same", 8000, func(uint32) uint32 { return 0xFFFFFFFF }},
	} {
		t.Run(c.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(3, 4))
			var x Index
			model := map[uint32]uint32{} // record numbers by key
			keys := map[uint32]uint32{}  // and the other way round
			for id := uint32(1); id <= uint32(c.steps); id++ {
				key := rnd.Uint32N(5000)
				got := x.Find(c.hash(key), func(id uint32) bool { return keys[id] == key })
				want := model[key]
				if got != want {
					t.Fatalf("Find(%d) = %d; want %d", key, got, want)
				}
				if want == 0 {
					model[key], keys[id] = id, key
					x.Add(c.hash(key), id)
				} else {
					x.Remove(c.hash(key), want)
					delete(model, key)
					delete(keys, want)
				}
			}
			if x.Len() != len(model) {
				t.Errorf("Len() = %d; want %d", x.Len(), len(model))
			}
			checkOrder(t, &x)
		})
	}
}

// checkOrder checks that entries are ordered by hash and that no place between an entry's home and
// its place is free: Find depends on both.
func checkOrder(t *testing.T, x *Index) {
	t.Helper()
	for n := range x.shards {
		s := &x.shards[n]
		last, free := entry(0), -1 // the latest entry and the latest free place
		for i, e := range s.entries {
			if e == 0 {
				free = i
				continue
			}
			if home := s.home(e.hash()); home > i || free >= home || e.hash() < last.hash() {
				t.Fatalf("shard %d, place %d: hash %#x after %#x, home %d, free place %d", n, i, e.hash(),
					last.hash(), home, free)
			}
			last = e
		}
	}
}

// TestEntryBytes compares EntryBytes with what an Index takes.
func TestEntryBytes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var x Index
	for id := range uint32(200_000) {
		x.Add(rnd.Uint32(), id+1)
		if id < 10_000 || id%100 != 0 {
			continue
		}
		places := 0
		for i := range x.shards {
			places += len(x.shards[i].entries)
		}
		if per := places * 8 / x.Len(); per < EntryBytes-2 || per > EntryBytes+2 {
			t.Fatalf("%d bytes an entry at %d; want about %d", per, x.Len(), EntryBytes)
		}
	}
}

func TestRemovingAnAbsentRecordPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Remove of an absent record did not panic")
		}
	}()
	var x Index
	x.Add(1, 1)
	x.Remove(1, 2)
}

func BenchmarkFind(b *testing.B) {
	seed := maphash.MakeSeed()
	hash := func(id uint32) uint32 { return uint32(maphash.Comparable(seed, id)) }
	var x Index
	for id := range uint32(1_000_000) {
		x.Add(hash(id+1), id+1)
	}
	id := uint32(0)
	for b.Loop() {
		id = (id + 7919) % 1_000_000
		want := id + 1
		if x.Find(hash(want), func(got uint32) bool { return got == want }) != want {
			b.Fatal("not found")
		}
	}
}
