package resolver

// maxSpare is the capacity that an empty queue keeps.
const maxSpare = 4096

// fifo is a first in, first out queue of pointers. The zero value is empty.
type fifo[T any] struct {
	items []*T
	head  int // number of items popped from the front
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(v *T) {
	if q.head > len(q.items)/2 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// pop removes the first element. It returns nil if q is empty.
func (q *fifo[T]) pop() *T {
	if q.len() == 0 {
		return nil
	}
	v := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.len() == 0 {
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > maxSpare {
			q.items = nil
		}
	}
	return v
}
