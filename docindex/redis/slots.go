package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

const (
	takeBatch = 1000  // documents of one round trip
	maxCatch  = 10000 // scripts that one call runs to process what has become due
)

// Candidates is [docindex.Source.Candidates]. A document that it hands out belongs to this daemon
// until its outcome. It is due again if the daemon has sent no heartbeat for the time of a lease.
func (s *Store) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	return s.handOut(ctx, max, &taking{reject: rejected(reject), out: b})
}

// Lease is [docindex.Leaser.Lease].
func (s *Store) Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *docindex.Batch) error {
	if lease <= 0 {
		return fmt.Errorf("lease of %v: it has to be longer than nothing", lease)
	}
	return s.handOut(ctx, max, &taking{reject: rejected(reject), out: b, lease: leaseMS(lease)})
}

// leaseMS returns a lease in ms, rounded up.
func leaseMS(lease time.Duration) string { return decimal(int64((lease-1)/time.Millisecond) + 1) }

func rejected(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[hostName(name)] = true
	}
	return set
}

// taking is the state of one call for the slots.
type taking struct {
	reject map[string]bool
	lease  string // ms; "": this daemon's
	out    *docindex.Batch
	passed [shards][]string // queues without a document that may be handed out
	inTurn map[string]bool  // crawls with a queue in turn in this answer
	more   map[string]bool  // crawls that may have a queue in turn that was not listed
}

func (t *taking) consumer() string {
	if t.lease != "" {
		return remoteConsumer
	}
	return slotConsumer
}

// entry is a queue that may be served now.
type entry struct {
	shard      int
	queue      string
	place, tie int64
	multiHost  bool // its URLs may be on different hosts
	can        int  // most URLs that it may hand out
	key, crawl string
	domain     string // of the key
	aside      int64  // notAside, asideEnds, or else the domain is set aside
	most       int    // URLs that it is to hand out
	turn       float64
	rests      bool // it rests after a costly page
	begun      bool // the call has handed out a portion of it, and continues
	taken      bool // a call has opened it at its address
}

// Values for a queue in the answers of the scripts peek and ready: the ring that it is in.
const (
	notAside  = 0 // it is in the ring of all
	asideEnds = 2 // its domain is set aside for less than half of the time
)

func (e *entry) crawlDomain() crawlDomain { return crawlDomain{e.crawl, e.domain} }

// doc is a document that was handed out.
type doc struct {
	hash, id, url string
	packed        docindex.Packed
	priority      int32
	pages         uint32 // that it counts as
}

// handOut runs one call at a time. So a document of a take whose answer was lost cannot be confused
// with one that another call has just taken.
func (s *Store) handOut(ctx context.Context, limit int, t *taking) error {
	select {
	case <-s.slots:
		defer func() { s.slots <- struct{}{} }()
	case <-ctx.Done():
	}
	t.inTurn = map[string]bool{}
	for limit > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		list, err := s.lookForSlots(ctx, limit, t)
		if err != nil {
			return err
		}
		if list = s.plan(list, min(limit, takeBatch), t); len(list) == 0 {
			return nil
		}
		got, err := s.takeAll(ctx, list, t)
		if limit -= got; err != nil {
			return err
		}
	}
	return ctx.Err()
}

// asideLooks is how often lookForSlots lists queues again after it has set aside domains whose
// queues stood before others.
const asideLooks = 10

// lookForSlots lists queues as peek does, after it has set aside the queues of domains of which
// nothing may be handed out.
func (s *Store) lookForSlots(ctx context.Context, limit int, t *taking) (list []entry, err error) {
	for moved, looks := true, 0; moved && looks < asideLooks; looks++ {
		if list, err = s.peek(ctx, limit, t); err == nil {
			moved, err = s.setAside(ctx, list)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// peek lists the first queues that may hand out something, in the order of their turns.
func (s *Store) peek(ctx context.Context, limit int, t *taking) ([]entry, error) {
	var names [shards][]string
	for name := range t.reject {
		names[shardOf(name)] = append(names[shardOf(name)], name)
	}
	answers, err := s.look(ctx, anyShard, func(shard int) op {
		args := []string{decimal(int64(s.heard[shard])), t.consumer(),
			decimal(perShard(int64(min(limit, takeBatch)))), decimal(int64(len(t.passed[shard])))}
		args = append(append(args, t.passed[shard]...), decimal(int64(len(names[shard]))))
		return op{shard, peekScript, append(args, names[shard]...)}
	})
	queues, cut := merged(answers)
	t.more = s.budgets.crawlsInTurn(cut, t)
	for _, a := range answers {
		if parts := list(a.value); len(parts) > 3 {
			for _, crawl := range texts(parts[3]) {
				t.more[crawl] = true
			}
		}
	}
	return queues, err
}

// perShard returns how many queues to ask each shard for if wanted are wanted in all: its share and
// some more, since shares differ.
func perShard(wanted int64) int64 { return wanted*5/4/shards + 4 }

const anyShard = -1

// look asks one shard or all for queues, after the shards have processed what has become due.
func (s *Store) look(ctx context.Context, shard int, ask func(shard int) op) ([]answer, error) {
	var ops []op
	for i := range shards {
		if shard == anyShard || shard == i {
			ops = append(ops, ask(i))
		}
	}
	for range maxCatch {
		answers, err := s.unbroken(ctx, ops)
		if err != nil {
			return nil, err
		}
		if !catching(answers) {
			return answers, nil
		}
	}
	return nil, fmt.Errorf("the doc index in Redis: more becomes due than it can catch up with")
}

// catching reports whether a shard has not processed all that has become due. The first value of
// its answer says so.
func catching(answers []answer) bool {
	return slices.ContainsFunc(answers, func(a answer) bool {
		parts := list(a.value)
		return len(parts) > 0 && number(parts[0]) == 1
	})
}

// holding reports whether other queues wait only because a call serves them, or because they have
// as many URLs in transit as they may.
func holding(answers []answer) bool {
	return slices.ContainsFunc(answers, func(a answer) bool {
		parts := list(a.value)
		return len(parts) > 3 && number(parts[3]) == 1
	})
}

// merged sorts the queues of all shards by turn. If a shard has listed only the first queues of a
// crawl, merged cuts the other shards' queues of the crawl off that come after the last of them.
func merged(answers []answer) (all, cut []entry) {
	const parts = 8 // values of a queue
	ends := map[string]int64{}
	for _, a := range answers {
		head := list(a.value)
		if len(head) < 3 {
			continue
		}
		of := list(head[2])
		for i := 0; i+parts <= len(of); i += parts {
			all = append(all, entryOf(a.shard, of[i:i+parts]))
		}
		for of := list(head[1]); len(of) >= 2; of = of[2:] {
			crawl, place := text(of[0]), number(of[1])
			if end, cuts := ends[crawl]; !cuts || place < end {
				ends[crawl] = place
			}
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.tie, b.tie))
	})
	some := all[:0:len(all)]
	for _, e := range all {
		if end, cuts := ends[e.crawl]; cuts && e.place > end {
			cut = append(cut, e)
		} else {
			some = append(some, e)
		}
	}
	return some, cut
}

func entryOf(shard int, m []rueidis.RedisMessage) entry {
	return entry{shard: shard, queue: text(m[0]), place: number(m[1]), tie: number(m[2]),
		multiHost: number(m[3]) == 1, can: int(number(m[4])), key: text(m[5]), crawl: text(m[6]),
		domain: domainOfKey(text(m[5])), aside: number(m[7])}
}

// takeAll takes the planned documents of the queues, one from each queue in turn.
func (s *Store) takeAll(ctx context.Context, queues []entry, t *taking) (got int, err error) {
	docs, err := s.takePlain(ctx, queues, t)
	for i := 0; i < len(queues) && err == nil; i++ {
		if queues[i].multiHost {
			m := multiHostTake{entry: queues[i], consumer: t.consumer(), lease: t.lease, reject: t.reject}
			docs[i], err = s.takeMultiHost(ctx, &m, queues[i].most)
		}
	}
	for i, list := range docs {
		if len(list) == 0 {
			shard := queues[i].shard
			t.passed[shard] = append(t.passed[shard], queues[i].queue)
		}
	}
	var pages []handed
	for turn, some := 0, true; some; turn++ {
		some = false
		for i, list := range docs {
			if turn < len(list) {
				d := list[turn]
				t.out.AddFor([]byte(d.id), []byte(d.url), d.priority, docindex.SpiderOf(d.packed.Metadata()),
					queues[i].crawl)
				t.out.AttachPayload(d.packed.Payload())
				pages = append(pages, handed{queues[i].crawl, queues[i].domain, d.pages})
				if t.lease == "" {
					s.budgets.take(queues[i].crawl, queues[i].domain, d.id)
				}
				got++
				some = true
			}
		}
	}
	s.charge(ctx, slotSide, pages)
	return got, err
}

// takePlain takes documents from queues whose URLs are on one host.
func (s *Store) takePlain(ctx context.Context, queues []entry, t *taking) ([][]doc, error) {
	docs := make([][]doc, len(queues))
	var args [shards][]string
	var at [shards][]int
	places := s.placesBehind(queues)
	for i, q := range queues {
		if !q.multiHost {
			args[q.shard] = append(args[q.shard], decimal(places[i]), q.queue,
				decimal(int64(q.most)), flag(q.rests))
			at[q.shard] = append(at[q.shard], i)
		}
	}
	s.number++
	ops := opsOf(takeScript, args[:], func(int) []string { return []string{decimal(int64(s.number)), t.lease} })
	answers, err := s.unbroken(ctx, ops)
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		s.heard[a.shard] = s.number
		for j, m := range list(a.value) {
			i := at[a.shard][j]
			docs[i] = s.docsOf(a.shard, queues[i].queue, list(m))
		}
	}
	return docs, err
}

// placesBehind returns the places of queues after a take: those that give fewer documents have
// had their last turn before.
func (s *Store) placesBehind(queues []entry) []int64 {
	order := make([]int, len(queues))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(queues[a].most, queues[b].most) })
	places, first := make([]int64, len(queues)), s.places(placesOfOne*len(queues))
	for turn, i := range order {
		places[i] = first + int64(placesOfOne*turn)
	}
	return places
}

// docsOf returns the documents of a queue that a script answers with, after how many pages each
// counts as.
func (s *Store) docsOf(shard int, queue string, m []rueidis.RedisMessage) (docs []doc) {
	if len(m) == 0 {
		return nil
	}
	digits := text(m[0])
	for m = m[1:]; len(m) >= 5; m = m[5:] {
		d := s.docOf(shard, queue, m)
		d.pages = pagesIn(digits, len(docs))
		docs = append(docs, d)
	}
	return docs
}

// pagesIn returns how many pages document i counts as.
func pagesIn(digits string, i int) uint32 {
	if i >= len(digits) {
		return 1
	}
	return uint32(digits[i] - '0')
}

// docOf returns a document from its hash, DOC_ID, URL, priority and what is packed.
func (s *Store) docOf(shard int, queue string, m []rueidis.RedisMessage) doc {
	d := doc{hash: text(m[0]), id: text(m[1]), url: text(m[2]), priority: int32(number(m[3])),
		packed: docindex.Packed(text(m[4]))}
	if d.id == "" {
		d.id = s.ownID(shard, queue, d.hash)
	}
	return d
}
