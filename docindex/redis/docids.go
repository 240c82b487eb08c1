package redis

import "context"

// docIDEntry is a given DOC_ID and the value of its field in the hash ids.
type docIDEntry struct {
	givenDocID
	entry string
}

// releaseDocIDs deletes DOC_ID entries whose document is gone. A concurrent Put of the same
// document rewrites the entry, so the delete, which compares it, does nothing.
func (s *Store) releaseDocIDs(ctx context.Context, ids []givenDocID) error {
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
	_, err = s.all(ctx, opsOf(releaseScript, args[:], nil))
	return err
}

// entries returns the entries of DOC_IDs that point where ids says.
func (s *Store) entries(ctx context.Context, ids []givenDocID) (all []docIDEntry, err error) {
	var args [shards][]string
	var at [shards][]givenDocID
	for _, n := range ids {
		shard := shardOf(n.id)
		args[shard], at[shard] = append(args[shard], n.id), append(at[shard], n)
	}
	answers, err := s.all(ctx, opsOf(whereScript, args[:], nil))
	for _, a := range answers {
		for i, m := range list(a.value) {
			if n := at[a.shard][i]; decode(text(m)) == n.at {
				all = append(all, docIDEntry{n, text(m)})
			}
		}
	}
	return all, err
}

// unused returns the entries whose document does not have the DOC_ID.
func (s *Store) unused(ctx context.Context, all []docIDEntry) (spare []docIDEntry, err error) {
	var args [shards][]string
	var at [shards][]docIDEntry
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
