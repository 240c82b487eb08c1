package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"urlserver/hostslots"
)

const (
	slotPart   = 100_000 // documents timed at once
	slotParts  = 20      // the median of them counts, since other processes may use the machine
	slotTime   = 5 * time.Second
	slotWarmUp = 500_000 // documents, or one per slot if that is more; then all tables have grown
)

// takeSlots measures the CPU time that one document takes through the slots alone.
func takeSlots(_ context.Context, b *bench) (rows []row, err error) {
	for _, c := range []struct {
		slots  int
		target time.Duration
	}{{slots: 10_000, target: 500 * time.Nanosecond}, {slots: 1_000_000, target: time.Microsecond}} {
		for _, shuffled := range []bool{false, true} {
			each, best, allocs, err := timeSlots(b, c.slots, shuffled)
			if err != nil {
				return rows, err
			}
			r := row{
				what:     fmt.Sprintf("offer → next → done, %s slots", count(c.slots)),
				target:   fmt.Sprintf("≤ %v, no allocation", c.target),
				measured: fmt.Sprintf("%v (best part %v), %.3f allocations", each, best, allocs),
				met:      judge(each <= c.target && allocs < 0.001),
				how: "one document in each slot; Next, Send, Done, End, Offer to the same host; CPU time, " +
					"median of up to 20 parts of 100,000 documents;" +
					" hosts are due in the order in which they were made",
			}
			if shuffled {
				r.what, r.how = r.what+", shuffled",
					"the same, due in an order that has nothing to do with where they lie in memory"
			}
			rows = append(rows, r)
			debug.FreeOSMemory()
		}
	}
	return rows, nil
}

var errNothingDue = errors.New("nothing is due in the slots")

func timeSlots(b *bench, n int, shuffled bool) (each, best time.Duration, allocs float64, err error) {
	r := newRound(n, shuffled)
	if err := r.run(max(n, slotWarmUp)); err != nil {
		return 0, 0, 0, err
	}
	stop, err := b.profile(fmt.Sprintf("slots-%d-%v.prof", n, shuffled))
	if err != nil {
		return 0, 0, 0, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parts, err := r.timeParts()
	runtime.ReadMemStats(&after)
	allocs = float64(after.Mallocs-before.Mallocs) / float64(len(parts)*slotPart)
	return spreadOf(parts).P50, parts[0], allocs, errors.Join(err, stop())
}

// timeParts returns the CPU time per document of slotParts parts, or of as many as slotTime allows.
func (r *round) timeParts() ([]time.Duration, error) {
	parts := make([]time.Duration, 0, slotParts)
	for begin := time.Now(); len(parts) < slotParts && time.Since(begin) < slotTime; {
		before, err := readUsage()
		if err != nil {
			return []time.Duration{0}, err
		}
		if err := r.run(slotPart); err != nil {
			return []time.Duration{0}, err
		}
		after, err := readUsage()
		if err != nil {
			return []time.Duration{0}, err
		}
		parts = append(parts, (after.CPU-before.CPU)/slotPart)
	}
	return parts, nil
}

// profile writes a CPU profile of this process until stop is called, if profiles are wanted.
func (b *bench) profile(name string) (stop func() error, err error) {
	if b.profiles == "" {
		return func() error { return nil }, nil
	}
	return startProfile(filepath.Join(b.profiles, name))
}

// startProfile writes a CPU profile of this process into a file until stop is called.
func startProfile(file string) (stop func() error, err error) {
	stop = func() error { return nil }
	f, err := os.Create(file)
	if err != nil {
		return stop, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return stop, errors.Join(err, f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

// round drives slots that have a document of one host each.
type round struct {
	slots *hostslots.Slots
	now   time.Duration
	next  int // next document
	id    []byte
	url   []byte
}

func newRound(n int, shuffled bool) *round {
	r := &round{now: time.Second, url: []byte("http://host-0000000.example/some/path/of/usual/length/page-000000.html")}
	r.slots = hostslots.New(hostslots.Config{
		Count: n, Len: 64, Concurrent: 1, Gap: time.Microsecond, StatusTimeout: 2 * time.Minute,
		MaxAttempts: 3, Patience: time.Minute, RejectOver: 256, Remember: n,
	})
	origins := make([]uint32, n)
	for i := range origins {
		name := fmt.Sprintf("host-%07d.example", i)
		origins[i] = r.slots.EnsureOrigin([]byte("http://"+name), []byte(name))
		r.slots.Host(r.slots.HostOf(origins[i])).Bind(0, hostslots.Place{Addr: addrOf(i)})
	}
	if shuffled {
		rand.New(rand.NewPCG(1, 2)).Shuffle(n,
			func(i, k int) { origins[i], origins[k] = origins[k], origins[i] })
	}
	for _, o := range origins {
		r.offer(o)
	}
	return r
}

func (r *round) offer(origin uint32) {
	r.next++
	r.id = appendPadded(r.id[:0], r.next, 10)
	r.slots.Offer(r.now, hostslots.Candidate{Origin: origin, ID: r.id, URL: r.url, Priority: 0})
}

// run sends n documents and ends them.
func (r *round) run(n int) error {
	for range n {
		r.now += 10 * time.Microsecond
		t, _, ok := r.slots.Next(r.now)
		if !ok {
			return errNothingDue
		}
		trans := r.slots.Send(r.now, t, 1)
		r.slots.End(r.now, r.slots.Done(r.now, trans, 200, 0))
		r.offer(t.Origin)
	}
	return nil
}
