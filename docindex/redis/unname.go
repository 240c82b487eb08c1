package redis

import "context"

// kept is a DOC_ID that was given with a document, and what its shard keeps for it.
type kept struct {
	named
	entry string
}

// unname takes DOC_IDs away from where no document has them. The same document may be put there again meanwhile: who does that
// changes what is kept for the DOC_ID, before and, if that was there already, once the document is.
func (s *Store) unname(ctx context.Context, ids []named) error {
	all, err := s.entries(ctx, ids)
	if err != nil {
		return err
	}
	spare, err := s.unused(ctx, all)
	if err != nil {
		return err
	}
	var args [shards][]string
	for _, k := range spare {
		shard := shardOf(k.id)
		args[shard] = append(args[shard], k.id, k.entry)
	}
	_, err = s.all(ctx, opsOf(unnameScript, args[:], nil))
	return err
}

// entries tells what is kept for DOC_IDs that are where ids says.
func (s *Store) entries(ctx context.Context, ids []named) (all []kept, err error) {
	var args [shards][]string
	var at [shards][]named
	for _, n := range ids {
		shard := shardOf(n.id)
		args[shard], at[shard] = append(args[shard], n.id), append(at[shard], n)
	}
	answers, err := s.all(ctx, opsOf(whereScript, args[:], nil))
	for _, a := range answers {
		for i, m := range list(a.value) {
			if n := at[a.shard][i]; decode(text(m)) == n.at {
				all = append(all, kept{n, text(m)})
			}
		}
	}
	return all, err
}

// unused returns those that the documents there do not have.
func (s *Store) unused(ctx context.Context, all []kept) (spare []kept, err error) {
	var args [shards][]string
	var at [shards][]kept
	for _, k := range all {
		if w := k.at; w.known() {
			args[w.shard], at[w.shard] = append(args[w.shard], w.queue, w.hash, k.id), append(at[w.shard], k)
		}
	}
	answers, err := s.all(ctx, opsOf(usesScript, args[:], nil))
	for _, a := range answers {
		for i, m := range list(a.value) {
			if number(m) == 0 {
				spare = append(spare, at[a.shard][i])
			}
		}
	}
	return spare, err
}
