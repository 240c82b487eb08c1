package redis

import (
	"context"

	"urlserver/docindex"
)

// uniques is what a batch of puts knows of those with a unique. A document may be in another queue
// than its Put would be, and in another shard than the entry by which it is found, as with DOC_IDs
// that clients give.
type uniques struct {
	known map[int]knownBy    // where the document of a URL is known already
	given map[int]givenDocID // entries that were written before their documents
	again map[int]bool       // of these: those that were there before, which another daemon may release
}

// knownBy is the URL and the key that a document has.
type knownBy struct{ url, key []byte }

// giveUniques finds the documents of Puts with a unique, and writes entries for those that are not
// known.
func (s *Store) giveUniques(ctx context.Context, b *putting) error {
	first, ids, at := map[string]int{}, []string(nil), []int(nil)
	b.uniques = uniques{known: map[int]knownBy{}, given: map[int]givenDocID{}, again: map[int]bool{}}
	var repeated []int
	for i := b.from; i < b.to; i++ {
		put, _ := b.p.At(i)
		if len(put.Unique) == 0 {
			continue
		}
		key := uniqueKey(&put)
		if _, ok := first[key]; ok {
			repeated = append(repeated, i)
			continue
		}
		first[key] = i
		ids, at = append(ids, key), append(at, i)
	}
	if len(ids) == 0 {
		return nil
	}
	has, docs, err := s.lookUp(ctx, ids)
	if err != nil {
		return err
	}
	err = s.writeUniques(ctx, b, ids, at, has, docs)
	for _, i := range repeated {
		put, _ := b.p.At(i)
		one, host := b.at(first[uniqueKey(&put)])
		b.uniques.known[i] = knownBy{one.URL, []byte(keyOf(&one, host))}
	}
	return err
}

// writeUniques does the rest of giveUniques: has and docs are the place and the document of each
// entry. An entry of another daemon whose document is not there yet is taken over; then both
// documents may be stored.
func (s *Store) writeUniques(ctx context.Context, b *putting, ids []string, at []int, has []where,
	docs []docindex.Document) (err error) {
	for round := 0; len(ids) > 0 && round < 2; round++ {
		if ids, at, has, err = s.writeFreeUniques(ctx, b, ids, at, has, docs); err != nil {
			return err
		}
		if docs, err = s.get(ctx, has); err != nil {
			return err
		}
	}
	return nil
}

// writeFreeUniques writes the entries whose documents are not known. It returns the entries that
// somebody else has written meanwhile, with the places in them.
func (s *Store) writeFreeUniques(ctx context.Context, b *putting, ids []string, at []int, has []where,
	docs []docindex.Document) (taken []string, of []int, places []where, err error) {
	var args [shards][]string
	var asked [shards][]int // indexes in ids
	for j, id := range ids {
		put, _ := b.p.At(at[j])
		if d := &docs[j]; len(d.URL) > 0 && string(docindex.IdentityOf(&d.Put)) == string(docindex.IdentityOf(&put)) {
			b.uniques.known[at[j]] = knownBy{d.URL, d.Key}
			continue
		}
		from := ""
		if has[j].known() {
			from = has[j].encode()
		}
		shard := shardOf(id)
		args[shard] = append(args[shard], id, b.where(at[j]).encode(), from)
		asked[shard] = append(asked[shard], j)
	}
	answers, err := s.all(ctx, opsOf(nameScript, args[:], nil))
	for _, a := range answers {
		for n, m := range list(a.value) {
			j := asked[a.shard][n]
			if !m.IsInt64() && text(m) != "" {
				taken, of, places = append(taken, ids[j]), append(of, at[j]), append(places, decode(text(m)))
				continue
			}
			b.uniques.given[at[j]] = givenDocID{ids[j], b.where(at[j])}
			b.uniques.again[at[j]] = m.IsInt64()
		}
	}
	return taken, of, places, err
}
