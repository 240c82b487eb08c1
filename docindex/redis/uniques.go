package redis

import (
	"context"
	"slices"
	"time"

	"urlserver/docindex"
)

// uniques has the state of those puts of a batch that have a unique. A document may be in another
// queue than its Put names. The entry that finds it may be in another shard than the document, as
// with DOC_IDs that clients give.
type uniques struct {
	known map[int]knownBy    // where the document of a URL is known already
	given map[int]givenDocID // entries that were written before their documents
	again map[int]bool       // indexes of given whose entries existed before, so that another daemon may release them
}

// knownBy is the URL and the key that a document has.
type knownBy struct{ url, key []byte }

// If another daemon has written the entry of a unique, and its document is not stored yet, the put
// looks again after pauses. The other daemon stores the document next, unless it has died: after
// uniqueWait the put takes the entry over. A daemon that stood still for longer in between stores a
// second document.
const (
	uniqueWait        = 2 * time.Second
	firstUniqueLook   = 2 * time.Millisecond
	longestUniqueLook = 100 * time.Millisecond
)

// giveUniques finds the documents of Puts with a unique, and writes entries for those that are not
// known. It takes the Puts off b.these that have to wait for another daemon, and returns them; with
// takeOver there are none but those whose entry changes at this moment.
func (s *Store) giveUniques(ctx context.Context, b *putting, takeOver bool) (waits []int, err error) {
	first, ids, at := map[string]int{}, []string(nil), []int(nil)
	b.uniques = uniques{known: map[int]knownBy{}, given: map[int]givenDocID{}, again: map[int]bool{}}
	var repeated []int
	for _, i := range b.these {
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
		return nil, nil
	}
	has, docs, err := s.lookUp(ctx, ids)
	if err != nil {
		return nil, err
	}
	if waits, err = s.writeUniques(ctx, b, ids, at, has, docs, takeOver); err != nil {
		return nil, err
	}
	for _, i := range repeated {
		put, _ := b.p.At(i)
		if j := first[uniqueKey(&put)]; slices.Contains(waits, j) {
			waits = append(waits, i)
		} else {
			one, host := b.at(j)
			b.uniques.known[i] = knownBy{one.URL, []byte(keyOf(&one, host))}
		}
	}
	slices.Sort(waits)
	b.these = slices.DeleteFunc(b.these, func(i int) bool {
		_, wait := slices.BinarySearch(waits, i)
		return wait
	})
	return waits, nil
}

// writeUniques does the rest of giveUniques: has and docs are the place and the document of each
// entry.
func (s *Store) writeUniques(ctx context.Context, b *putting, ids []string, at []int, has []where,
	docs []docindex.Document, takeOver bool) (waits []int, err error) {
	var args [shards][]string
	var asked [shards][]int // indexes in ids
	for j, id := range ids {
		put, _ := b.p.At(at[j])
		d, mine := &docs[j], b.where(at[j])
		if len(d.URL) > 0 && string(docindex.IdentityOf(&d.Put)) == string(docindex.IdentityOf(&put)) {
			b.uniques.known[at[j]] = knownBy{d.URL, d.Key}
			continue
		}
		from := ""
		if has[j].known() {
			from = has[j].encode()
		}
		if from != "" && has[j] != mine && len(d.URL) == 0 && !takeOver {
			waits = append(waits, at[j])
			continue
		}
		shard := shardOf(id)
		args[shard] = append(args[shard], id, mine.encode(), from)
		asked[shard] = append(asked[shard], j)
	}
	answers, err := s.all(ctx, opsOf(nameScript, args[:], nil))
	for _, a := range answers {
		for n, m := range list(a.value) {
			j := asked[a.shard][n]
			if !m.IsInt64() && text(m) != "" { // somebody else has written it meanwhile
				waits = append(waits, at[j])
				continue
			}
			b.uniques.given[at[j]] = givenDocID{ids[j], b.where(at[j])}
			b.uniques.again[at[j]] = m.IsInt64()
		}
	}
	return waits, err
}
