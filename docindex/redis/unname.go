package redis

import (
	"context"
	"errors"
)

// unname takes DOC_IDs away from where no document has them. The same document may have been put there again, or may be in
// between: so that is asked before, and after.
func (s *Store) unname(ctx context.Context, list []named) error {
	_, spare, err := s.inUse(ctx, list)
	if err != nil {
		return err
	}
	var args [shards][]string
	for _, n := range spare {
		shard := shardOf(n.id)
		args[shard] = append(args[shard], n.id, n.at.encode())
	}
	_, err = s.all(ctx, opsOf(unnameScript, args[:], nil))
	used, _, err2 := s.inUse(ctx, spare)
	return errors.Join(err, err2, s.rename(ctx, used))
}

// rename gives DOC_IDs back to documents.
func (s *Store) rename(ctx context.Context, list []named) error {
	var args [shards][]string
	for _, n := range list {
		shard := shardOf(n.id)
		args[shard] = append(args[shard], n.id, n.at.encode(), "")
	}
	_, err := s.all(ctx, opsOf(nameScript, args[:], nil))
	return err
}

// inUse tells DOC_IDs that the documents there have from others.
func (s *Store) inUse(ctx context.Context, ids []named) (used, spare []named, err error) {
	var args [shards][]string
	var at [shards][]named
	for _, n := range ids {
		if w := n.at; w.known() {
			args[w.shard], at[w.shard] = append(args[w.shard], w.queue, w.hash, n.id), append(at[w.shard], n)
		}
	}
	answers, err := s.all(ctx, opsOf(usesScript, args[:], nil))
	for _, a := range answers {
		for i, m := range list(a.value) {
			if n := at[a.shard][i]; number(m) == 1 {
				used = append(used, n)
			} else {
				spare = append(spare, n)
			}
		}
	}
	return used, spare, err
}
