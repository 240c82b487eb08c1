package arena

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

type piece struct {
	ref  Ref
	want []byte
}

func randomPiece(a *Arena, rng *rand.Rand) piece {
	n := 1 + rng.IntN(100)
	if rng.IntN(50) == 0 {
		n = 1 + rng.IntN(MaxLen-1)
	}
	ref, b := a.New(n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return piece{ref: ref, want: bytes.Clone(b)}
}

func TestStringsKeepTheirBytes(t *testing.T) {
	var a Arena
	rng := rand.New(rand.NewPCG(3, 4))
	var held []piece
	for step := range 60_000 {
		if len(held) < 2000 || rng.IntN(2) == 0 {
			held = append(held, randomPiece(&a, rng))
			continue
		}
		i := rng.IntN(len(held))
		p := held[i]
		if got := a.Bytes(p.ref, len(p.want)); !bytes.Equal(got, p.want) {
			t.Fatalf("step %d: %d bytes at %d changed", step, len(p.want), p.ref)
		}
		a.Free(p.ref, len(p.want))
		held[i] = held[len(held)-1]
		held = held[:len(held)-1]
	}
	sum := 0
	for _, p := range held {
		sum += (len(p.want) + unit - 1) / unit * unit
	}
	if a.Live() != sum {
		t.Errorf("Live = %d, want %d", a.Live(), sum)
	}
}

func TestSpaceIsUsedAgain(t *testing.T) {
	var a Arena
	for range 1000 {
		var refs []Ref
		for range 1000 {
			ref, _ := a.New(70)
			refs = append(refs, ref)
		}
		for _, ref := range refs {
			a.Free(ref, 70)
		}
	}
	if a.Size() > chunkBytes {
		t.Errorf("Size = %d after a million strings of 70 bytes, 1000 at a time; want one chunk", a.Size())
	}
}

func TestTooLongIsOurOwnMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(MaxLen+1) did not panic")
		}
	}()
	new(Arena).New(MaxLen + 1)
}
