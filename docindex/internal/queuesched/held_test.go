package queuesched_test

import (
	"testing"

	"urlserver/docindex/internal/queuesched"
)

// waiting is a call that looks again whenever it is told of news, and found nothing so far.
type waiting struct {
	d    *queuesched.Scheduler
	max  uint32
	key  uint32 // the queue that it wants alone; 0: any
	rung int
	got  uint32
}

func (w *waiting) look() {
	c := w.d.BeginCall(nil, true, w.max)
	if w.key == 0 {
		w.got = w.d.NextForCall(&c, 1000)
	} else if w.d.ServeQueue(&c, w.key, 1000) {
		w.got = w.key
	}
}

// lookAfter looks as often as there is news, rung times so far.
func (w *waiting) lookAfter(rung *int) {
	for w.rung < *rung && w.got == 0 {
		w.rung = *rung
		w.look()
	}
}

// served is a queue without delay of which a call, which goes on, has taken so many URLs; it has
// more.
func served(t *testing.T, rung *int, took int) (d *queuesched.Scheduler, id uint32, goesOn queuesched.Call) {
	t.Helper()
	d = queuesched.New(func() { *rung++ })
	d.SetDefaultDelay(0)
	id = d.Open(nil, []byte("a.test"), []byte("a.test"), 1000)
	for range took + 1 {
		d.Count(id, queuesched.Scheduled)
	}
	d.SetDue(id, 0, 1000)
	goesOn = d.BeginCall(nil, true, 10)
	if got := d.NextForCall(&goesOn, 1000); got != id {
		t.Fatalf("Next = %d; want %d", got, id)
	}
	for range took {
		d.Move(id, queuesched.Scheduled, queuesched.InTransit)
		d.CountOut(id, nil, queuesched.FrontierConsumer, 1, 1000)
	}
	d.EndServing(&goesOn, id, true, 1000)
	return d, id, goesOn
}

func complete(d *queuesched.Scheduler, id uint32, urls int) {
	for range urls {
		d.Move(id, queuesched.InTransit, queuesched.Completed)
		d.CountBack(id, nil, queuesched.FrontierConsumer, 1000)
	}
}

func TestWaitingBesideACallThatHasHadTheQueue(t *testing.T) {
	rung := 0
	d, id, goesOn := served(t, &rung, 7)
	w := waiting{d: d, max: 3, rung: rung}
	if w.look(); w.got != 0 {
		t.Fatal("a call of at most 3 is served a queue that has 7 in transit")
	}
	if got := d.NextForCall(&goesOn, 1000); got != 0 {
		t.Fatalf("the call that has had the queue is served %d; want none", got)
	}
	w.lookAfter(&rung)
	complete(d, id, 4)
	if w.lookAfter(&rung); w.got != 0 {
		t.Error("a call of at most 3 is served a queue that has 3 in transit")
	}
	complete(d, id, 1)
	if w.lookAfter(&rung); w.got != id {
		t.Error("a call of at most 3 is not told of a queue that has 2 in transit")
	}
}

func TestWaitingBesideACallByKeyForLess(t *testing.T) {
	rung := 0
	d, id, _ := served(t, &rung, 7)
	more := waiting{d: d, max: 5, rung: rung}
	less := waiting{d: d, max: 3, rung: rung, key: id}
	more.look()
	less.look()
	complete(d, id, 3)
	if less.lookAfter(&rung); less.got != 0 {
		t.Error("a call of at most 3 is served a queue that has 4 in transit")
	}
	if more.lookAfter(&rung); more.got != id {
		t.Error("a call of at most 5 is not told of a queue that has 4 in transit")
	}
}
