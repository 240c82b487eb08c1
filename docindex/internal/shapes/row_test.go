package shapes

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"urlserver/docindex"
)

// TestRow does the same with two tables. One of them is read from its row again and again.
func TestRow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	var a, b Tables[uint64]
	const queue = 7
	keep := func(of *uint64) uint64 { return *of }
	open := func(uint32) (scheduled, inTransit uint64) { return enough, 0 }
	link := func() *docindex.Put {
		page := fmt.Appendf(nil, "http://a.test/%s%d", []string{"x/", "y/", "x?p="}[r.IntN(3)], r.IntN(3))
		path := []string{"x/1", "y/1", "z", "s;sid=1"}[r.IntN(4)]
		return &docindex.Put{Page: page, URL: fmt.Appendf(nil, "http://a.test/%s?k%d=%d", path, r.IntN(9), r.IntN(99))}
	}
	for step := range 3000 {
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
		if r.IntN(3) == 0 {
			p := link()
			no, costlier := a.Enter(queue, p, []byte("a.test"), open)
			other, costlier2 := b.Enter(queue, p, []byte("a.test"), open)
			if no != other || costlier != costlier2 {
				t.Errorf("the branch of %s is %d, costlier %v; in a table read from its row %d, %v", p.URL, no,
					costlier, other, costlier2)
			}
			for _, table := range []*Table[uint64]{a.Of(queue), b.Of(queue)} {
				table.Mark(no, true)
				*table.Of(no) += 5
			}
			continue
		}
		x, y := a.Of(queue), b.Of(queue)
		if x == nil {
			continue
		}
		turn, other := x.Next(Turn{}).Branch, y.Next(Turn{}).Branch
		if turn != other {
			t.Errorf("it is the turn of branch %d; in a table read from its row that of %d", turn, other)
		} else if turn != 0 {
			if *x.Of(turn) != *y.Of(turn) || x.Pages(turn) != y.Pages(turn) {
				t.Errorf("of branch %d it has %d, %d pages; a table read from its row %d, %d", turn, *x.Of(turn),
					x.Pages(turn), *y.Of(turn), y.Pages(turn))
			}
			some := r.IntN(3) > 0
			for _, table := range []*Table[uint64]{x, y} {
				table.Took(turn)
				table.Mark(turn, some)
			}
		}
		row := y.Append(nil, keep)
		b.Drop(queue)
		if !b.Read(queue, row, func(_ uint32, kept uint64) uint64 { return kept }) {
			t.Error("the row cannot be read")
		}
		if x, y := a.Bytes(), b.Bytes(); x != y {
			t.Errorf("it takes %d bytes; read from its row %d", x, y)
		}
	}
	row := a.Of(queue).Append(nil, keep)
	for n := range row { // none of them may panic
		b.Drop(queue)
		b.Read(queue, row[:n], func(uint32, uint64) uint64 { return 0 })
	}
}
