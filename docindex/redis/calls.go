package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"math"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

const (
	portion   = 1000 // URLs that a Serve hands to give at once, about
	readyMost = 128  // queues of a crawl that a shard lists at once
)

// serving is the state of one Serve call.
type serving struct {
	r      docindex.Request
	token  string
	passed [shards][]string // queues that the call has visited or leaves out, by shard
	served uint32
	putOff int // times that all queues that were found had to be put off
	lease  string
	out    docindex.Served
}

// Serve is [docindex.Frontier.Serve]. A call that waits for a queue wakes at once if this daemon
// frees it. If another daemon does, the call sees that at the end of its wait.
func (s *Store) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	var p embedded.WaitBudget
	return s.serve(ctx, r, give, p.Wait)
}

// serve is Serve with a wait function, as [embedded.WaitBudget.Wait]: wait blocks until soon is
// closed or ctx ends, and returns false when the call should wait no longer.
func (s *Store) serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error,
	wait func(ctx context.Context, soon <-chan struct{}) bool) error {
	v := serving{r: r, token: rand.Text(), lease: leaseMS(r.Lease), passed: s.pace.leftOut(s.nowMS())}
	if r.PerQueue == 0 {
		v.r.PerQueue = math.MaxUint32
	}
	for patient := true; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		soon := s.soon()
		if err := s.closeQueues(ctx); err != nil {
			return err
		}
		list, held, err := s.ready(ctx, &v)
		if err == nil {
			_, err = s.setAside(ctx, list)
		}
		if err != nil {
			return err
		}
		some := len(list) > 0
		if list = s.unbarred(&v, list); some && len(list) == 0 {
			continue
		}
		if len(list) == 0 {
			if !held || !patient || v.served > 0 {
				return nil
			}
			patient = wait(ctx, soon)
			v.passed = s.pace.leftOut(s.nowMS())
		}
		found := len(list) > 0
		for len(list) > 0 && (list[0].begun || !v.done()) {
			s.budgets.sort(list)
			s.turns.sort(list)
			if list, err = s.takeAddresses(ctx, &v, list); err == nil && len(list) > 0 {
				list, err = s.servePortion(ctx, &v, list, give)
			}
			if err != nil {
				s.untake(&v, list)
				return errors.Join(err, s.abandon(context.WithoutCancel(ctx), &v, list))
			}
		}
		s.untake(&v, list)
		if found && v.served == 0 {
			if v.putOff++; v.putOff > maxPutOff {
				return nil
			}
		}
		if v.done() {
			return nil
		}
	}
}

// soon returns a channel that announce closes: a queue has become available to calls. It does not
// close for queues that other daemons free.
func (s *Store) soon() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return s.freed
}

func (s *Store) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// done reports whether the call has served as many queues as it asked for.
func (v *serving) done() bool { return v.r.MaxQueues > 0 && v.served >= v.r.MaxQueues }

// ready lists queues that may be served, in the order in which they are to be served. Those of one key
// are in one shard.
func (s *Store) ready(ctx context.Context, v *serving) (list []entry, held bool, err error) {
	most := int64(readyMost)
	if v.r.MaxQueues > 0 {
		most = min(most, perShard(int64(v.r.MaxQueues)))
	}
	ask := func(shard int) op {
		args := []string{
			decimal(most), decimal(int64(v.r.PerQueue)), flag(v.r.AnyCrawl), string(v.r.Crawl), string(v.r.Key),
			decimal(int64(len(v.passed[shard]))),
		}
		return op{shard, readyScript, append(args, v.passed[shard]...)}
	}
	shard := anyShard
	if len(v.r.Key) > 0 {
		shard = shardOf(string(v.r.Key))
	}
	answers, err := s.look(ctx, shard, ask)
	list, _ = merged(answers)
	return list, holding(answers), err
}

// servePortion gives out one portion of URLs from the first queues, and returns the queues that
// remain. After an error it still gives out the URLs that were leased: no other call gets them before
// their leases end.
func (s *Store) servePortion(ctx context.Context, v *serving, queues []entry,
	give func(*docindex.Served) error) ([]entry, error) {
	if err := ctx.Err(); err != nil {
		return queues, err
	}
	if queues[0].multiHost {
		return queues[1:], s.serveMultiHost(ctx, v, queues[0], give)
	}
	v.out.Reset()
	most := v.plan(queues[:s.budgets.portion(queues)])
	got, err := s.serveSome(ctx, v, queues, most)
	rest := queues[len(most):]
	for i, n := range got {
		q := &queues[i]
		if n == unanswered {
			continue // it may have leased some: its address stays open for the time of a lease
		}
		s.pace.gave(q, n, v.leaseMS(), s.nowMS())
		if n > 0 && !q.begun {
			v.served++
		}
		if i == len(got)-1 && n == most[i] && n < q.can { // the script keeps the queue reserved for this call
			q.begun, q.can = true, q.can-n
			rest = queues[i:]
		}
	}
	if v.out.Len() > 0 {
		err = errors.Join(err, give(&v.out))
	}
	return rest, err
}

// plan returns how many URLs each of the first queues contributes to a portion.
func (v *serving) plan(queues []entry) (most []int) {
	allowed := len(queues)
	if v.r.MaxQueues > 0 {
		allowed = min(allowed, int(v.r.MaxQueues-v.served))
		if queues[0].begun {
			allowed++
		}
	}
	for left := portion; len(most) < min(allowed, len(queues)) && left > 0 && !queues[len(most)].multiHost; {
		n := min(left, queues[len(most)].can)
		most = append(most, n)
		left -= n
	}
	return most
}

// unanswered is the result of serveSome for a queue whose shard has not answered.
const unanswered = -1

// serveSome serves the first queues. It returns how many URLs each gave.
func (s *Store) serveSome(ctx context.Context, v *serving, queues []entry, most []int) ([]int, error) {
	var args [shards][]string
	var at [shards][]int
	first := s.places(placesOfOne * len(most))
	for i, n := range most {
		q := &queues[i]
		args[q.shard] = append(args[q.shard], decimal(first+int64(placesOfOne*i)), q.queue,
			decimal(int64(n)), flag(n < q.can), decimal(s.ruleGap(q.key)), flag(q.taken))
		at[q.shard] = append(at[q.shard], i)
		if !q.begun {
			v.passed[q.shard] = append(v.passed[q.shard], q.queue)
		}
	}
	answers, err := s.unbroken(ctx, opsOf(serveScript, args[:], func(int) []string {
		return []string{v.lease, decimal(int64(v.r.PerQueue)), v.token}
	}))
	var pages []handed
	given := make([][]rueidis.RedisMessage, len(most))
	for _, a := range answers {
		for j, m := range list(a.value) {
			given[at[a.shard][j]] = list(m)
		}
	}
	got := make([]int, len(most))
	var late [shards][]string
	for i, parts := range given {
		if len(parts) == 0 {
			got[i] = unanswered
			continue
		}
		q, digits := &queues[i], text(parts[0])
		parts = parts[1:]
		if !s.pace.mayLeave(q) { // Redis was slow, or the process stood still
			late[q.shard] = append(late[q.shard], lateOf(first+int64(placesOfOne*i), q.queue, parts)...)
			continue
		}
		for ; len(parts) >= servedParts; parts = parts[servedParts:] {
			pages = append(pages, handed{q.crawl, q.domain, pagesIn(digits, got[i])})
			got[i]++
			v.out.Add([]byte(text(parts[1])), []byte(q.key), q.crawl, docindex.Packed(text(parts[2])))
		}
	}
	s.charge(ctx, callSide, pages)
	_, err2 := s.unbroken(context.WithoutCancel(ctx), opsOf(lateScript, late[:], func(int) []string {
		return []string{v.token}
	}))
	return got, errors.Join(err, err2)
}

// servedParts is how many values the script serve returns of a URL.
const servedParts = 3

// lateOf returns the arguments by which the script late schedules the URLs of a queue again.
func lateOf(place int64, queue string, parts []rueidis.RedisMessage) []string {
	args := []string{decimal(place), queue, decimal(int64(len(parts) / servedParts))}
	for ; len(parts) >= servedParts; parts = parts[servedParts:] {
		args = append(args, text(parts[0]))
	}
	return args
}

// serveMultiHost serves a queue whose URLs are on different hosts.
func (s *Store) serveMultiHost(ctx context.Context, v *serving, q entry, give func(*docindex.Served) error) error {
	v.passed[q.shard] = append(v.passed[q.shard], q.queue)
	can, err := s.stay(ctx, v, q, true, false)
	if err != nil || can == 0 {
		return err
	}
	gave := false
	for left := min(q.can, can); left > 0; {
		m := multiHostTake{entry: q, consumer: frontierConsumer, lease: v.lease, token: v.token}
		docs, err := s.takeMultiHost(ctx, &m, min(left, portion))
		v.out.Reset()
		var pages []handed
		for _, d := range docs {
			v.out.Add([]byte(d.url), []byte(q.key), q.crawl, d.packed)
			pages = append(pages, handed{q.crawl, q.domain, d.pages})
		}
		s.charge(ctx, callSide, pages)
		if len(docs) > 0 {
			gave = true
			err = errors.Join(err, give(&v.out))
		}
		if err != nil {
			_, err2 := s.stay(context.WithoutCancel(ctx), v, q, false, true)
			return errors.Join(err, err2)
		}
		if len(docs) == 0 {
			break
		}
		left -= len(docs)
	}
	if gave {
		v.served++
	}
	_, err = s.stay(ctx, v, q, false, gave)
	return err
}

// stay reserves a queue for this call, and returns how many URLs the call may give now. If begins
// is false, it ends the reservation.
func (s *Store) stay(ctx context.Context, v *serving, q entry, begins, gave bool) (can int, err error) {
	a, err := s.one(ctx, q.shard, stayScript, decimal(s.places(placesOfOne)), q.queue, v.token,
		flag(begins), flag(gave),
		decimal(int64(v.r.PerQueue)))
	if parts := list(a.value); len(parts) == 1 {
		can = int(number(parts[0]))
	}
	return can, err
}

// abandon ends the call's reservation of a queue that it was to continue with.
func (s *Store) abandon(ctx context.Context, v *serving, queues []entry) error {
	if len(queues) == 0 || !queues[0].begun {
		return nil
	}
	_, err := s.stay(ctx, v, queues[0], false, true)
	return err
}
