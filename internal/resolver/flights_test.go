package resolver

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate is a server that delays its answers until it is opened, and reports each query.
type gate struct {
	*fakeServer
	asked chan string
	pass  chan struct{}
	most  atomic.Int64 // most concurrent queries
	now   atomic.Int64
}

func gated(t *testing.T) *gate {
	g := &gate{asked: make(chan string, 1<<12), pass: make(chan struct{})}
	g.fakeServer = serve(t, func(q *request) {
		n := g.now.Add(1)
		for old := g.most.Load(); n > old && !g.most.CompareAndSwap(old, n); old = g.most.Load() {
		}
		g.asked <- q.name()
		<-g.pass
		g.now.Add(-1)
		q.answer(q.truth())
	})
	return g
}

func TestOneQueryHoweverManyWait(t *testing.T) {
	g := gated(t)
	r := start(t, patient(g.fakeServer))
	var answered sync.WaitGroup
	ask := func(host string) {
		answered.Add(1)
		r.Resolve(host, func(a netip.Addr, err error) {
			if err != nil || a.String() != truth {
				t.Errorf("%v, %v", a, err)
			}
			answered.Done()
		})
	}
	ask("a.example")
	<-g.asked
	for range 500 {
		ask("A.example.")
	}
	if s := r.Stats(); s.Waiting != 1 || s.Working != 1 {
		t.Errorf("waiting %d, working %d; want 1, 1", s.Waiting, s.Working)
	}
	close(g.pass)
	answered.Wait()
	ask("a.example") // from the cache
	answered.Wait()
	if n := len(g.requests()); n != 1 {
		t.Errorf("%d queries, want 1", n)
	}
	if a, err, ok := r.Cached([]byte("a.EXAMPLE")); !ok || err != nil || a.String() != truth {
		t.Errorf("Cached = %v, %v, %v", a, err, ok)
	}
	if s := r.Stats(); s.Found != 2 || s.Remembered != 1 || s.Entries != 1 || s.Waiting != 0 ||
		s.Asked != 1 || s.Took <= 0 {
		t.Errorf("%+v", s)
	}
}

func TestBoundedConcurrency(t *testing.T) {
	g := gated(t)
	cfg := patient(g.fakeServer)
	cfg.Concurrency = 4
	r := start(t, cfg)
	var answered sync.WaitGroup
	for i := range 100 {
		answered.Add(1)
		r.Resolve(strconv.Itoa(i)+".example", func(netip.Addr, error) { answered.Done() })
	}
	for range 4 {
		<-g.asked
	}
	if s := r.Stats(); s.Working != 4 || s.Window != 4 {
		t.Errorf("working %d, window %d; want 4, 4", s.Working, s.Window)
	}
	close(g.pass)
	answered.Wait()
	if n := g.most.Load(); n > 4 {
		t.Errorf("%d queries at once, want at most 4", n)
	}
}

func TestSlowStart(t *testing.T) {
	g := gated(t)
	cfg := patient(g.fakeServer)
	cfg.Concurrency = 40
	r := start(t, cfg)
	var answered sync.WaitGroup
	for i := range 200 {
		answered.Add(1)
		r.Resolve(strconv.Itoa(i)+".example", func(netip.Addr, error) { answered.Done() })
	}
	for range firstWindow {
		<-g.asked
	}
	if s := r.Stats(); s.Working != firstWindow {
		t.Errorf("%d names asked at first, want %d", s.Working, firstWindow)
	}
	for range 10 { // each answer widens the window by one
		g.pass <- struct{}{}
		<-g.asked
		<-g.asked
	}
	if s := r.Stats(); s.Working != firstWindow+10 || s.Window != firstWindow+10 {
		t.Errorf("working %d, window %d after 10 answers, want %d", s.Working, s.Window, firstWindow+10)
	}
	close(g.pass)
	answered.Wait()
	if s := r.Stats(); s.Window != 40 {
		t.Errorf("window %d in the end, want 40", s.Window)
	}
	if n := g.most.Load(); n > 40 {
		t.Errorf("%d queries at once, want at most 40", n)
	}
}

// Names wait in memory, not in goroutines. Close answers all of them, each once.
func TestManyNamesFewGoroutines(t *testing.T) {
	g := gated(t)
	defer close(g.pass)
	cfg := patient(g.fakeServer)
	cfg.Timeout = time.Hour
	r := start(t, cfg)
	before := runtime.NumGoroutine()
	const n = 200_000
	calls := make([]atomic.Int32, n)
	var wrong atomic.Int64
	for i := range n {
		r.Resolve("host"+strconv.Itoa(i)+".example", func(_ netip.Addr, err error) {
			calls[i].Add(1)
			if !errors.Is(err, ErrClosed) {
				wrong.Add(1)
			}
		})
	}
	for range firstWindow {
		<-g.asked
	}
	if more := runtime.NumGoroutine() - before; more > 100 {
		t.Errorf("%d goroutines for %d names", more, n)
	}
	if s := r.Stats(); s.Waiting != n {
		t.Errorf("%d names wait, want %d", s.Waiting, n)
	}
	r.Close()
	for i := range calls {
		if c := calls[i].Load(); c != 1 {
			t.Fatalf("deliver for name %d was called %d times when Close had returned", i, c)
		}
	}
	if wrong.Load() != 0 {
		t.Errorf("%d names got another error than ErrClosed", wrong.Load())
	}
	if s := r.Stats(); s.Waiting != 0 || s.Working != 0 || s.Closed != n {
		t.Errorf("after Close: waiting %d, working %d, closed %d", s.Waiting, s.Working, s.Closed)
	}
}

// deliver runs in another goroutine: a deliver that locks its caller's lock does not deadlock.
func TestDeliverElsewhere(t *testing.T) {
	r := start(t, patient(serve(t, zone())))
	var mu sync.Mutex
	for _, host := range []string{"bad name", "8.8.8.8", "10.0.0.1", "a.example", "a.example"} {
		done := make(chan struct{})
		mu.Lock()
		r.Resolve(host, func(netip.Addr, error) {
			mu.Lock() // in the caller's own goroutine this would deadlock
			defer mu.Unlock()
			close(done)
		})
		mu.Unlock()
		<-done
	}
}

// deliver may call Resolve.
func TestResolveInDeliver(t *testing.T) {
	r := start(t, patient(serve(t, func(q *request) { q.answer(q.truth()) })))
	done := make(chan error)
	r.Resolve("a.example", func(netip.Addr, error) {
		r.Resolve("a.example", func(netip.Addr, error) {
			r.Resolve("b.example", func(_ netip.Addr, err error) { done <- err })
		})
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLookupCancelled(t *testing.T) {
	g := gated(t)
	r := start(t, patient(g.fakeServer))
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() {
		_, err := r.Lookup(ctx, "a.example")
		errs <- err
	}()
	<-g.asked
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if _, err := r.Lookup(ctx, "b.example"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, want context.Canceled", err)
	}
	close(g.pass)
	wantAddr(t, r, "a.example", truth)
	if n := len(g.requests()); n != 1 {
		t.Errorf("%d queries, want the first to go on for others", n)
	}
}

// Close interrupts look-ups that wait for a server, over UDP and TCP, long before their timeout.
func TestCloseInterrupts(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		t.Run("tcp "+strconv.FormatBool(tcp), func(t *testing.T) {
			asked, end := make(chan struct{}), make(chan struct{})
			defer close(end)
			s := serve(t, func(q *request) {
				if tcp && !q.tcp {
					m := q.reply()
					m.Truncated = true
					q.answer(m)
					return
				}
				close(asked)
				<-end
			})
			cfg := patient(s)
			cfg.Timeout = time.Hour
			r := start(t, cfg)
			errs := make(chan error, 1)
			r.Resolve("a.example", func(_ netip.Addr, err error) { errs <- err })
			<-asked
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("error %v, want ErrClosed", err)
			}
		})
	}
}

func TestAfterClose(t *testing.T) {
	r := start(t, patient(serve(t, zone())))
	r.Close()
	r.Close()
	for _, host := range []string{"a.example", "8.8.8.8", "bad name"} {
		if _, err := lookUp(t, r, host); !errors.Is(err, ErrClosed) {
			t.Errorf("Lookup(%q) after Close: %v, want ErrClosed", host, err)
		}
	}
}

// Many goroutines resolve, and one closes: each deliver is called once.
func TestConcurrentUse(t *testing.T) {
	r := start(t, patient(serve(t, func(q *request) { q.answer(q.truth()) })))
	var calls atomic.Int64
	var users sync.WaitGroup
	for u := range 8 {
		users.Go(func() {
			for i := range 200 {
				host := strconv.Itoa(i%50) + ".example"
				r.Cached([]byte(host))
				r.Resolve(host, func(_ netip.Addr, err error) {
					calls.Add(1)
					if err != nil && !errors.Is(err, ErrClosed) {
						t.Errorf("%s: %v", host, err)
					}
				})
				if u == 0 && i == 150 {
					r.Close()
				}
				r.Stats()
			}
		})
	}
	users.Wait()
	r.Close()
	if calls.Load() != 8*200 {
		t.Errorf("%d calls of deliver, want %d", calls.Load(), 8*200)
	}
}

// A worker that is about to end does not see a name queued then. It starts another worker for it.
func TestLeavingWorkerLeavesNothing(t *testing.T) {
	cfg := patient(serve(t, func(q *request) { q.answer(q.truth()) }))
	cfg.Concurrency = 1
	r := start(t, cfg)
	done := make(chan error, 1)
	f := &flight{name: "a.example",
		waiters: []func(netip.Addr, error){func(_ netip.Addr, err error) { done <- err }}}
	r.mu.Lock()
	r.workers = 1 // next has returned nil to it
	r.flights[f.name] = f
	r.mu.Unlock()
	r.enqueue([]*flight{f})
	r.leave()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// When the window shrinks, surplus workers end although names wait.
func TestWorkersLeaveSmallerWindow(t *testing.T) {
	r := start(t, patient(serve(t, zone())))
	r.mu.Lock()
	r.window.limit, r.workers = 1, 2
	r.queue.push(&flight{name: "a.example"})
	r.mu.Unlock()
	if f := r.next(); f != nil {
		t.Error("the second of two workers got a name with a window of one")
	}
	r.mu.Lock()
	r.workers = 1
	r.mu.Unlock()
	if f := r.next(); f == nil || f.name != "a.example" {
		t.Error("the only worker got no name")
	}
	r.leave()
}

func TestFIFO(t *testing.T) {
	var q fifo[int]
	rng := testRNG(3)
	next, want := 0, 0
	for range 100_000 {
		if rng.Uint64()%100 < 51 {
			v := next
			q.push(&v)
			next++
		} else if v := q.pop(); v != nil {
			if *v != want {
				t.Fatalf("popped %d, want %d", *v, want)
			}
			want++
		} else if want != next {
			t.Fatalf("empty with %d of %d popped", want, next)
		}
		if q.len() != next-want {
			t.Fatalf("len %d, want %d", q.len(), next-want)
		}
	}
}

func TestFIFOKeepsNoMemory(t *testing.T) {
	var q fifo[int]
	for range 2 * maxSpare {
		q.push(new(int))
	}
	for range 2 * maxSpare {
		q.pop()
	}
	if q.pop() != nil || cap(q.items) > maxSpare {
		t.Errorf("an empty queue holds memory for %d", cap(q.items))
	}
	for range 10_000 { // the queue is never empty and never long
		q.push(new(int))
		if q.len() > 10 {
			q.pop()
		}
	}
	if cap(q.items) > 64 {
		t.Errorf("a queue of ten holds memory for %d", cap(q.items))
	}
}
