package finder

import (
	"math/rand/v2"
	"testing"
)

// TestFinderTwin compares with a map, with hashes that collide often, seldom, and by a bad hash.
func TestFinderTwin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		name string
		hash func(key uint32) uint32
	}{
		{name: "good", hash: func(key uint32) uint32 { return key * 0x9E3779B1 }},
		{name: "collisions", hash: func(key uint32) uint32 { return key % 50 << 22 }},
		{name: "all the same", hash: func(uint32) uint32 { return 0xFFFFFFFF }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f Finder
			twin := map[uint32]uint32{}
			var keys []uint32 // by number, less one
			for range 3000 {
				key := rnd.Uint32N(2000)
				same := func(id uint32) bool { return keys[id-1] == key }
				if got, want := f.Find(c.hash(key), same), twin[key]; got != want {
					t.Fatalf("find(%d) = %d; want %d", key, got, want)
				}
				if twin[key] == 0 {
					keys = append(keys, key)
					twin[key] = uint32(len(keys))
					f.Add(c.hash(key), twin[key])
				} else if rnd.IntN(2) == 0 {
					f.Remove(c.hash(key), twin[key])
					delete(twin, key)
				}
			}
			if f.live != len(twin) {
				t.Errorf("%d are in it; want %d", f.live, len(twin))
			}
		})
	}
}

// TestFinderSize holds the memory an entry takes to what Stats says.
func TestFinderSize(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var f Finder
	for id := range uint32(200_000) {
		f.Add(rnd.Uint32(), id+1)
		if id < 10_000 || id%100 != 0 {
			continue
		}
		places := 0
		for i := range f.shards {
			places += len(f.shards[i].entries)
		}
		if per := places * 8 / f.live; per < 10 || per > 17 {
			t.Fatalf("%d bytes an entry at %d; want about %d", per, f.live, EntryBytes)
		}
	}
}
