package redis

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/addresses"
	"urlserver/internal/container/timeheap"
)

// clientPace keeps the pace of addresses for the clients of this daemon. It counts only what this
// daemon gives out: several daemons keep it together by [docindex.AddressUse].
type clientPace struct {
	mu     sync.Mutex // guards all below; held for memory work only
	of     docindex.Addresses
	table  *addresses.Table
	queues map[string]*pacedQueue // by nameOf
	ask    map[string]struct{}    // queues to ask Redis about: clients may have no URL of them any more
	later  map[string]struct{}    // queues that the next heartbeat adds to ask
	ends   timeheap.Heap          // queues by number in the table, by the end of their last lease; a Duration is ms
	names  map[uint32]string      // names of the queues in ends
	lent   map[lentQueue]int64    // queues whose address others use, and until when (ms) calls leave them out
}

// lentQueue is a queue whose address another daemon uses, or the spiders of this one.
type lentQueue struct {
	shard int
	id    string
}

// pacedQueue is a queue whose address is known.
type pacedQueue struct {
	no    uint32 // in the table
	host  []byte
	shard int
	id    string
	calls int // calls that are about to hand out URLs of it
	takes int // how often a call has taken it
}

// askedQueue is a queue that the store asks Redis about, and the queue's takes at that time.
type askedQueue struct {
	*pacedQueue
	takes int
}

const (
	movingRetry  = 250    // ms after which a call looks again at a queue whose host moves
	busyRetry    = 200    // ms until another look-up may begin
	lentRetry    = 20     // the same if others use its address: the least; at most twice that
	maxLent      = 256    // queues that this daemon leaves out; it puts off further ones for all daemons
	blockedRetry = 60_000 // ms after which a call looks again at a queue whose address a rule blocks
	maxPaced     = 1 << 20
	maxPutOff    = 20 // times that a call looks for queues after it had to put off all that it found
)

// SetAddresses is [docindex.Hooks.SetAddresses].
func (s *Store) SetAddresses(of docindex.Addresses) {
	p := &s.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	if of == nil {
		s.pace.resetLocked(nil)
		return
	}
	if p.of == nil {
		p.resetLocked(addresses.New(s.nowMS()))
	}
	p.of = of
	p.rebindLocked(s.nowMS())
}

// rebindLocked moves the queues that clients have URLs of to the addresses and sites that new rules
// give their hosts.
func (p *clientPace) rebindLocked(now int64) {
	for _, q := range p.queues {
		if q.no == 0 || !p.table.IsOpen(q.no) {
			continue
		}
		if a := p.of(q.host); a.State == docindex.AddressKnown {
			p.table.Bind(q.no, q.host, &a, now)
		}
	}
}

func (p *clientPace) resetLocked(table *addresses.Table) {
	p.of, p.table, p.queues = nil, table, map[string]*pacedQueue{}
	p.ask, p.later = map[string]struct{}{}, map[string]struct{}{}
	p.ends, p.names = timeheap.Heap{}, map[uint32]string{}
	p.lent = map[lentQueue]int64{}
}

// take opens a queue at its address, for a call that calls gave afterwards. If the address may not
// be used now, wait is after how many ms to look at the queue again; otherwise it is 0. If all is
// true, all daemons have to wait, and the caller puts the queue off. If another daemon may be using
// the address, take does not let the queue wait in the address's line: that daemon may give out the
// queues before it.
func (p *clientPace) take(e *entry, lease, now int64) (wait int64, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		return 0, false
	}
	host := []byte(hostName(e.key))
	a := p.of(host)
	switch {
	case a.State == docindex.AddressAwaited:
		return max(1, a.Retry), true
	case a.State == docindex.AddressBusy:
		return busyRetry, true
	case a.Blocked:
		return blockedRetry, true
	}
	name := nameOf(e.crawl, e.key)
	q := p.queueLocked(name, e, now)
	no, moving := p.table.Bind(q.no, host, &a, now)
	if q.no, q.host = no, host; moving {
		return movingRetry, true
	}
	if !p.table.IsUsable(no) {
		p.table.Withdraw(no)
		wait = lentRetry + rand.Int64N(lentRetry+1) // or the same daemon would be first each time
		return wait, !p.leaveOutLocked(lentQueue{e.shard, e.queue}, now+wait)
	}
	if at := p.table.MayFrom(no, now); at > now {
		return at - now, true
	}
	p.table.Take(no, now)
	p.table.Gave(no, now+1) // now is rounded down
	q.calls++
	q.takes++
	p.endsAtLocked(q, name, now+lease)
	return 0, false
}

// leaveOutLocked makes the calls of this daemon leave out a queue until the given moment. Putting
// the queue off would also keep it from the daemon that uses its address. leaveOutLocked returns
// false if calls leave out maxLent queues already.
func (p *clientPace) leaveOutLocked(q lentQueue, until int64) bool {
	if _, known := p.lent[q]; !known && len(p.lent) >= maxLent {
		return false
	}
	p.lent[q] = until
	return true
}

// leftOut returns the queues that calls leave out now, by shard.
func (p *clientPace) leftOut(now int64) (list [shards][]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for q, until := range p.lent {
		if until <= now {
			delete(p.lent, q)
		} else {
			list[q.shard] = append(list[q.shard], q.id)
		}
	}
	return list
}

// queueLocked returns a queue, and adds it if it is not known. If it knows maxPaced queues, it
// first forgets those that are not open.
func (p *clientPace) queueLocked(name string, e *entry, now int64) *pacedQueue {
	if len(p.queues) >= maxPaced {
		for name, q := range p.queues {
			if q.no == 0 || !p.table.IsOpen(q.no) {
				p.forgetLocked(name, now)
			}
		}
	}
	q := p.queues[name]
	if q == nil {
		q = &pacedQueue{}
		p.queues[name] = q
	}
	q.shard, q.id = e.shard, e.queue
	return q
}

func (p *clientPace) forgetLocked(name string, now int64) {
	if q := p.queues[name]; q.no != 0 {
		p.ends.Remove(q.no)
		delete(p.names, q.no)
		p.table.Forget(q.no, now)
	}
	delete(p.queues, name)
}

func (p *clientPace) endsAtLocked(q *pacedQueue, name string, end int64) {
	if p.ends.Has(q.no) {
		end = max(end, int64(p.ends.Due(q.no)))
	}
	p.ends.Set(q.no, time.Duration(end))
	p.names[q.no] = name
}

// gave counts the n URLs of a queue that a call has handed out in one portion, with leases of lease
// ms. The first portion ends the take of the call.
func (p *clientPace) gave(e *entry, n int, lease, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := nameOf(e.crawl, e.key)
	q := p.queues[name]
	if q == nil || q.no == 0 {
		return
	}
	if !e.begun && q.calls > 0 {
		q.calls--
		if n > 0 { // Redis may have taken long
			p.table.Left(q.no, now+1)
		}
		p.countLocked(q, n-1, now) // take counted the first one
	} else {
		p.countLocked(q, n, now)
	}
	if n > 0 {
		p.endsAtLocked(q, name, now+lease)
	} else {
		p.ask[name] = struct{}{}
	}
}

func (p *clientPace) countLocked(q *pacedQueue, n int, now int64) {
	for range n {
		p.table.Gave(q.no, now+1)
	}
}

// leftOutUntil returns until when (ms) calls leave out a queue; 0: they do not.
func (p *clientPace) leftOutUntil(crawl, key string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queues[nameOf(crawl, key)]; q != nil {
		return p.lent[lentQueue{q.shard, q.id}]
	}
	return 0
}

// mayLeave reports whether a call may still give a client the URLs of a queue that take opened: the
// address has not gone to others since. It returns false if the store has forgotten the queue,
// because the lease has ended then.
func (p *clientPace) mayLeave(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		return true
	}
	q := p.queues[nameOf(e.crawl, e.key)]
	return q != nil && (q.no == 0 || p.table.MayLeave(q.no))
}

// waitOf returns why a queue was put off.
func (p *clientPace) waitOf(name string, now int64) (why docindex.Wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	if q == nil || q.no == 0 {
		return docindex.Wait{Rule: docindex.WaitAddressUnknown}
	}
	_, _, why = p.table.Wait(q.no, now)
	return why
}

// answered records the status that a host answered to a client.
func (p *clientPace) answered(host string, status int, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fails := status == 429 || status == 503
	if p.of != nil && (fails || status >= 200 && status < 400) {
		p.table.Answered([]byte(host), fails, now)
	}
}

// reported records that a client reported a URL of a queue.
func (p *clientPace) reported(crawl, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		return
	}
	if name := nameOf(crawl, key); p.queues[name] != nil {
		p.ask[name] = struct{}{}
	}
}

// toAsk closes the queues whose leases have ended. It returns the queues to ask Redis about.
func (p *clientPace) toAsk(now int64) (list []askedQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		return nil
	}
	for id, end, ok := p.ends.Min(); ok && int64(end) <= now; id, end, ok = p.ends.Min() {
		p.forgetLocked(p.names[id], now)
	}
	for name := range p.ask {
		q := p.queues[name]
		if q != nil && q.calls > 0 {
			continue // the call will report through gave
		}
		if delete(p.ask, name); q != nil && q.no != 0 && p.table.IsOpen(q.no) {
			list = append(list, askedQueue{q, q.takes})
		}
	}
	return list
}

// close closes a queue of which clients have no URL, unless a call has taken it since Redis was
// asked.
func (p *clientPace) close(q askedQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nameLocked(q) != "" && q.takes == q.pacedQueue.takes {
		p.table.Return(q.no)
	}
}

// nameLocked returns the name of a queue; "": it was forgotten, and its number may be another's.
func (p *clientPace) nameLocked(q askedQueue) string {
	if name := p.names[q.no]; p.of != nil && q.no != 0 && p.queues[name] == q.pacedQueue {
		return name
	}
	return ""
}

// askLater makes the next heartbeat ask about a queue again. So the queue is closed once clients
// have no forgotten URL on its host, even if no client reports a URL of it any more.
func (p *clientPace) askLater(q askedQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name := p.nameLocked(q); name != "" {
		p.later[name] = struct{}{}
	}
}

// askAgain adds the queues of askLater to those that toAsk returns. The heartbeat calls it.
func (p *clientPace) askAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.later {
		p.ask[name] = struct{}{}
	}
	clear(p.later)
}

// closeQueues asks Redis which queues clients have no URL of any more. After an error the next
// heartbeat asks again.
func (s *Store) closeQueues(ctx context.Context) error {
	var args [shards][]string
	var at [shards][]askedQueue
	for _, q := range s.pace.toAsk(s.nowMS()) {
		args[q.shard] = append(args[q.shard], q.id, string(q.host))
		at[q.shard] = append(at[q.shard], q)
	}
	answers, err := s.unbroken(ctx, opsOf(outScript, args[:], nil))
	for _, a := range answers {
		for i, m := range list(a.value) {
			switch number(m) {
			case 0:
				s.pace.close(at[a.shard][i])
			case -1:
				s.pace.askLater(at[a.shard][i])
			}
		}
		if a.err == nil {
			at[a.shard] = nil
		}
	}
	for _, queues := range at {
		for _, q := range queues {
			s.pace.askLater(q)
		}
	}
	return err
}

// takeAddresses opens the first queues of a list at their addresses, as many as the call may still
// serve. It leaves out queues whose address may not be used now, and puts off those for which all
// daemons have to wait.
func (s *Store) takeAddresses(ctx context.Context, v *serving, queues []entry) ([]entry, error) {
	var args [shards][]string
	want, now := len(queues), s.nowMS()
	if v.r.MaxQueues > 0 {
		want = int(v.r.MaxQueues - v.served)
	}
	keep := queues[:0]
	for i, e := range queues {
		if want == 0 {
			keep = append(keep, queues[i:]...)
			break
		}
		if !e.begun && !e.taken && !e.multiHost {
			if wait, all := s.pace.take(&e, v.leaseMS(), now); wait > 0 {
				if all {
					args[e.shard] = append(args[e.shard], decimal(s.places(placesOfOne)), e.queue, decimal(wait))
				}
				v.passed[e.shard] = append(v.passed[e.shard], e.queue)
				continue
			}
			e.taken = true
		}
		if !e.begun {
			want--
		}
		keep = append(keep, e)
	}
	_, err := s.unbroken(ctx, opsOf(putOffScript, args[:], nil))
	return slices.Clip(keep), err
}

// leaseMS returns the lease of the URLs that the call hands out, in ms.
func (v *serving) leaseMS() int64 { return int64((v.r.Lease-1)/time.Millisecond) + 1 }

// untake ends the take of queues that a call has taken and not served.
func (s *Store) untake(v *serving, queues []entry) {
	for i := range queues {
		if e := &queues[i]; e.taken && !e.begun {
			s.pace.gave(e, 0, v.leaseMS(), s.nowMS())
		}
	}
}
