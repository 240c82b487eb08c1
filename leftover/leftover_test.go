package leftover

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// model is the naive queue: a list of groups in the order they came, searched
// from the front, and a map of counts.
type model struct {
	line []turn
	docs map[uint32]int
}

type turn struct {
	group uint32
	from  time.Duration
}

func (w *model) wait(group uint32, from time.Duration) {
	i := slices.IndexFunc(w.line, func(t turn) bool { return t.group == group })
	if i >= 0 && w.line[i].from == from {
		return
	}
	w.leave(group)
	w.line = append(w.line, turn{group: group, from: from})
}

func (w *model) leave(group uint32) {
	w.line = slices.DeleteFunc(w.line, func(t turn) bool { return t.group == group })
}

func (w *model) first() (turn, bool) {
	if len(w.line) == 0 {
		return turn{}, false
	}
	return slices.MinFunc(w.line, func(a, b turn) int { return int(a.from - b.from) }), true
}

func (w *model) sum() (n int) {
	for _, d := range w.docs {
		n += d
	}
	return n
}

func TestQueueAgainstModel(t *testing.T) {
	var q Queue
	w := &model{docs: map[uint32]int{}}
	rng := rand.New(rand.NewPCG(7, 8))
	for step := range 20_000 {
		group := uint32(1 + rng.IntN(300))
		switch rng.IntN(4) {
		case 0:
			q.Leave(group)
			w.leave(group)
		case 1:
			n := rng.IntN(100)
			q.Set(group, n)
			w.docs[group] = n
		default:
			from := time.Duration(rng.IntN(40))
			q.Wait(group, from)
			w.wait(group, from)
		}
		want, wantOK := w.first()
		got, from, ok := q.First()
		if ok != wantOK || got != want.group || from != want.from {
			t.Fatalf("step %d: First = %d at %v, %v; want %+v, %v", step, got, from, ok, want, wantOK)
		}
		if q.Len() != w.sum() || q.Waiting() != len(w.line) || q.Docs(group) != w.docs[group] {
			t.Fatalf("step %d: %d documents, %d waiting, %d of group %d; want %d, %d, %d",
				step, q.Len(), q.Waiting(), q.Docs(group), group, w.sum(), len(w.line), w.docs[group])
		}
	}
}

func TestEqualTimesKeepTheirOrder(t *testing.T) {
	var q Queue
	for _, g := range []uint32{5, 2, 9} {
		q.Wait(g, time.Second)
	}
	q.Wait(5, time.Second) // said again: keeps its place
	for _, want := range []uint32{5, 2, 9} {
		got, _, _ := q.First()
		if got != want {
			t.Fatalf("First = %d, want %d", got, want)
		}
		q.Leave(got)
		if q.Waits(got) {
			t.Fatalf("group %d still waits", got)
		}
	}
}
