package redis

import (
	"context"
	"strings"
)

// Consumers of a queue, by the scripts' numbers.
const (
	slotConsumer     = "1"
	frontierConsumer = "2"
	remoteConsumer   = "3"
)

const maxSkipped = 64 // documents skipped in one queue before the call leaves it

// multiHostTake takes documents from a queue whose URLs are on different hosts. The hosts are in
// other shards, so it claims each document's host before it takes the document. If this daemon dies
// in between, the claim ends with its lease.
type multiHostTake struct {
	entry
	consumer, lease, token string
	reject                 map[string]bool
	passed                 int
}

// takeMultiHost takes up to most documents.
func (s *Store) takeMultiHost(ctx context.Context, m *multiHostTake, most int) (docs []doc, err error) {
	look := min(most+maxSkipped, takeBatch)
	a, err := s.one(ctx, m.shard, dueScript, m.queue, decimal(int64(look)))
	if err != nil {
		return nil, err
	}
	parts := list(a.value)
	for len(parts) >= 2 && len(docs) < most && m.passed < maxSkipped {
		var want []claim
		for ; len(parts) >= 2 && len(want) < most-len(docs); parts = parts[2:] {
			c := claim{ref: m.queue + ":" + text(parts[0]), hash: text(parts[0]), host: hostOf(text(parts[1]))}
			if m.reject[c.host] || m.consumer == frontierConsumer && s.barred(c.host) {
				m.passed++
				continue
			}
			want = append(want, c)
		}
		some, err := s.takeSomeMultiHost(ctx, m, want)
		docs = append(docs, some...)
		if err != nil {
			return docs, err
		}
	}
	return docs, nil
}

// claim is a document and the host that it needs.
type claim struct {
	ref, hash, host string
	free            bool
}

func (s *Store) takeSomeMultiHost(ctx context.Context, m *multiHostTake, want []claim) ([]doc, error) {
	if err := s.claim(ctx, m, want); err != nil {
		return nil, err
	}
	number := uint64(0)
	if m.consumer != frontierConsumer {
		s.number++
		number = s.number
	}
	args := []string{decimal(int64(number)), m.lease, decimal(s.places(placesOfOne)), m.consumer, m.queue, m.token}
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
	if m.consumer != frontierConsumer {
		s.heard[m.shard] = number
	}
	docs := s.docsOf(m.shard, m.queue, list(a.value))
	got := map[string]bool{}
	for i := range docs {
		got[docs[i].hash] = true
	}
	return docs, s.unclaim(ctx, m, want, got)
}

// claim counts a document as out on each wanted host that is free, and sets free in want.
func (s *Store) claim(ctx context.Context, m *multiHostTake, want []claim) error {
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
	answers, err := s.all(ctx, opsOf(claimScript, args[:], func(int) []string { return []string{m.consumer, m.lease} }))
	for _, a := range answers {
		for j, one := range list(a.value) {
			want[at[a.shard][j]].free = number(one) == 1
		}
	}
	return err
}

// unclaim ends the claims of documents that could not be taken.
func (s *Store) unclaim(ctx context.Context, m *multiHostTake, want []claim, got map[string]bool) error {
	var args [shards][]string
	for _, c := range want {
		if c.free && c.host != "" && !got[c.hash] {
			shard := shardOf(c.host)
			args[shard] = append(args[shard], s.owner, m.consumer, c.ref, c.host)
		}
	}
	return s.updateHosts(ctx, args)
}

// hostName is a host's name in the shards' keys: without a dot at its end.
func hostName(name string) string { return strings.TrimSuffix(name, ".") }
