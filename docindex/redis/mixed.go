package redis

import (
	"context"
	"strings"
)

// Doors, as scripts have them.
const (
	doorSlots = "1"
	doorCalls = "2"
	doorLent  = "3"
)

const maxPassed = 64 // documents that are passed over in a queue of many hosts before that is left alone

// mixing takes from a queue whose URLs may be on different hosts. These are in other shards, so it claims each document's
// host before it takes the document: should this daemon die in between, the claim ends as what it took does.
type mixing struct {
	entry
	door, lease, token string
	reject             map[string]bool
	passed             int
}

// pickMixed takes up to most documents.
func (s *Store) pickMixed(ctx context.Context, m *mixing, most int) (docs []doc, err error) {
	look := min(most+maxPassed, takeBatch)
	a, err := s.one(ctx, m.shard, dueScript, m.queue, decimal(int64(look)))
	if err != nil {
		return nil, err
	}
	parts := list(a.value)
	for len(parts) >= 2 && len(docs) < most && m.passed < maxPassed {
		var want []claim
		for ; len(parts) >= 2 && len(want) < most-len(docs); parts = parts[2:] {
			c := claim{ref: m.queue + ":" + text(parts[0]), hash: text(parts[0]), host: hostOf(text(parts[1]))}
			if m.reject[c.host] || m.door == doorCalls && s.barred(c.host) {
				m.passed++
				continue
			}
			want = append(want, c)
		}
		some, err := s.pickSome(ctx, m, want)
		docs = append(docs, some...)
		if err != nil {
			return docs, err
		}
	}
	return docs, nil
}

// claim is a document whose host is wanted.
type claim struct {
	ref, hash, host string
	free            bool
}

func (s *Store) pickSome(ctx context.Context, m *mixing, want []claim) ([]doc, error) {
	if err := s.claim(ctx, m, want); err != nil {
		return nil, err
	}
	number := uint64(0)
	if m.door != doorCalls {
		s.number++
		number = s.number
	}
	args := []string{decimal(int64(number)), m.lease, decimal(s.places(placesOfOne)), m.door, m.queue, m.token}
	n := len(args)
	for _, c := range want {
		if c.free {
			args = append(args, c.hash)
		} else {
			m.passed++
		}
	}
	if len(args) == n {
		return nil, nil
	}
	a, err := s.one(ctx, m.shard, pickScript, args...)
	if err != nil {
		return nil, err
	}
	if m.door != doorCalls {
		s.heard[m.shard] = number
	}
	var docs []doc
	got := map[string]bool{}
	parts := list(a.value)
	for ; len(parts) >= 5; parts = parts[5:] {
		d := s.docOf(m.shard, m.queue, parts)
		docs, got[d.hash] = append(docs, d), true
	}
	if len(docs) > 0 {
		m.crawl = crawlIn(parts)
	}
	return docs, s.unclaim(ctx, m, want, got)
}

// claim tells which documents' hosts are free, and counts those as out.
func (s *Store) claim(ctx context.Context, m *mixing, want []claim) error {
	var args [shards][]string
	var at [shards][]int
	for i, c := range want {
		if c.host == "" {
			want[i].free = true // there is nobody to disturb
			continue
		}
		shard := shardOf(c.host)
		args[shard] = append(args[shard], c.host, c.ref)
		at[shard] = append(at[shard], i)
	}
	answers, err := s.all(ctx, opsOf(claimScript, args[:], func(int) []string { return []string{m.door, m.lease} }))
	for _, a := range answers {
		for j, one := range list(a.value) {
			want[at[a.shard][j]].free = number(one) == 1
		}
	}
	return err
}

// unclaim ends the claims of documents that were not there any more.
func (s *Store) unclaim(ctx context.Context, m *mixing, want []claim, got map[string]bool) error {
	var args [shards][]string
	for _, c := range want {
		if c.free && c.host != "" && !got[c.hash] {
			shard := shardOf(c.host)
			args[shard] = append(args[shard], s.owner, m.door, c.ref, c.host)
		}
	}
	return s.tellHosts(ctx, args)
}

// hostName is a host's name as shards know it.
func hostName(name string) string { return strings.TrimSuffix(name, ".") }
