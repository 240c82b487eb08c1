package redis

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// OnRecall is [docindex.Hooks.OnRecall]. back gets documents in this daemon's own slots, after
// changes that were made through this daemon.
func (s *Store) OnRecall(back func(*docindex.Outcomes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backs = append(s.backs, back)
}

// SetSlotGap is [docindex.Hooks.SetSlotGap].
func (s *Store) SetSlotGap(gap time.Duration) { s.gap.Store(gap.Milliseconds()) }

// SetHostRules is [docindex.Hooks.SetHostRules].
func (s *Store) SetHostRules(of func(host []byte) docindex.HostRule) { s.rules.Store(&of) }

// SetBudget is [docindex.Hooks.SetBudget]. Each daemon counts the pages that it hands out itself.
func (s *Store) SetBudget(pages int) { s.budgets.set(uint32(max(0, min(pages, math.MaxUint32)))) }

// Rounds is [docindex.Hooks.Rounds], by the pages that this daemon has handed out.
func (s *Store) Rounds() []docindex.Round { return s.budgets.rounds() }

// RestoreRounds is [docindex.Hooks.RestoreRounds].
func (s *Store) RestoreRounds(all []docindex.Round) { s.budgets.restore(all, s.nowMS()) }

// barred reports whether a rule keeps a host's URLs from calls.
func (s *Store) barred(host string) bool {
	of := s.rules.Load()
	return of != nil && *of != nil && (*of)([]byte(host)).Barred
}

// unbarred removes queues of barred hosts from the list, and marks them as visited by the call.
func (s *Store) unbarred(v *serving, list []entry) []entry {
	return slices.DeleteFunc(list, func(q entry) bool {
		is := !q.multiHost && s.barred(q.key)
		if is {
			v.passed[q.shard] = append(v.passed[q.shard], q.queue)
		}
		return is
	})
}

func (s *Store) wantsBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.backs) > 0 || s.onDelete != nil
}

// recall passes documents in this daemon's slots to the functions of OnRecall: those of the queue
// that was set; if a host was set, those on the host in its shard; without a key, all.
func (s *Store) recall(ctx context.Context, set docindex.Setting) error {
	first, last, queue := 0, shards-1, ""
	if key := string(set.Key); key != "" {
		first = shardOf(key)
		last = first
		if !set.Host {
			queue = "@" + nameOf(string(set.Crawl), key)
		}
	}
	for shard := first; shard <= last; shard++ {
		var held docindex.Outcomes
		if err := s.held(ctx, shard, queue, &held); err != nil {
			return err
		}
		if set.Host {
			held = heldOn(hostName(string(set.Key)), &held)
		}
		s.giveBack(&held)
	}
	return nil
}

// heldOn returns the documents on a host.
func heldOn(host string, all *docindex.Outcomes) (some docindex.Outcomes) {
	for i := range all.Len() {
		if o := all.At(i); hostOf(string(o.URL)) == host {
			some.Add(o)
		}
	}
	return some
}

// held adds the documents that this daemon's slots have: of a queue, or of the whole shard if queue
// is "".
func (s *Store) held(ctx context.Context, shard int, queue string, o *docindex.Outcomes) error {
	if !s.wantsBack() {
		return nil
	}
	for cursor := "0"; ; {
		a, err := s.one(ctx, shard, heldScript, queue, cursor)
		parts := list(a.value)
		if err != nil || len(parts) != 2 {
			return err
		}
		s.addHeld(o, shard, parts[1])
		if cursor = text(parts[0]); cursor == "0" {
			return nil
		}
	}
}

// addHeld adds documents that a script returned as queue, hash, DOC_ID and URL.
func (s *Store) addHeld(o *docindex.Outcomes, shard int, told rueidis.RedisMessage) {
	for m := list(told); len(m) >= 4; m = m[4:] {
		o.Add(s.heldOf(shard, text(m[0]), text(m[1]), text(m[2]), text(m[3])))
	}
}

// heldOf returns an outcome that names a document to the slots. id is the DOC_ID that it was put
// with; "": none.
func (s *Store) heldOf(shard int, queue, hash, id, url string) docindex.Outcome {
	if id == "" {
		id = s.ownID(shard, queue, hash)
	}
	return docindex.Outcome{DocID: []byte(id), URL: []byte(url)}
}

func (s *Store) giveBack(o *docindex.Outcomes) {
	if o.Len() == 0 {
		return
	}
	s.mu.Lock()
	backs := s.backs
	s.mu.Unlock()
	for _, back := range backs {
		back(o)
	}
}
