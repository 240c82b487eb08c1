package sim

import "time"

// eventQueue is a heap of functions, ordered by virtual time, and by order of addition at equal
// times. The zero value is empty.
type eventQueue struct {
	events []event
	seq    uint64
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.seq < f.seq
}

func (q *eventQueue) add(at time.Duration, do func()) {
	q.seq++
	q.events = append(q.events, event{at: at, seq: q.seq, do: do})
	i := len(q.events) - 1
	for i > 0 && q.events[i].before(&q.events[(i-1)/2]) {
		q.events[i], q.events[(i-1)/2] = q.events[(i-1)/2], q.events[i]
		i = (i - 1) / 2
	}
}

// next returns the time of the first event; ok is false if the queue is empty.
func (q *eventQueue) next() (at time.Duration, ok bool) {
	if len(q.events) == 0 {
		return 0, false
	}
	return q.events[0].at, true
}

// take removes the first event and returns its function. The queue must not be empty.
func (q *eventQueue) take() func() {
	do := q.events[0].do
	n := len(q.events) - 1
	q.events[0], q.events[n] = q.events[n], event{}
	q.events = q.events[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return do
		}
		if child+1 < n && q.events[child+1].before(&q.events[child]) {
			child++
		}
		if !q.events[child].before(&q.events[i]) {
			return do
		}
		q.events[i], q.events[child] = q.events[child], q.events[i]
		i = child
	}
}
