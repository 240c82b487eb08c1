package sim

import "time"

// agenda is what is going to happen, by virtual time; of equal times what was
// added first. The zero value is empty.
type agenda struct {
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

func (a *agenda) add(at time.Duration, do func()) {
	a.seq++
	a.events = append(a.events, event{at: at, seq: a.seq, do: do})
	i := len(a.events) - 1
	for i > 0 && a.events[i].before(&a.events[(i-1)/2]) {
		a.events[i], a.events[(i-1)/2] = a.events[(i-1)/2], a.events[i]
		i = (i - 1) / 2
	}
}

// next is when the first event is; ok is false where there is none.
func (a *agenda) next() (at time.Duration, ok bool) {
	if len(a.events) == 0 {
		return 0, false
	}
	return a.events[0].at, true
}

// take removes the first event, of which there is one.
func (a *agenda) take() func() {
	do := a.events[0].do
	n := len(a.events) - 1
	a.events[0], a.events[n] = a.events[n], event{}
	a.events = a.events[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return do
		}
		if child+1 < n && a.events[child+1].before(&a.events[child]) {
			child++
		}
		if !a.events[child].before(&a.events[i]) {
			return do
		}
		a.events[i], a.events[child] = a.events[child], a.events[i]
		i = child
	}
}
