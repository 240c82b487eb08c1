package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/shapes"
)

const (
	putBatch   = 1000    // URLs that are stored together
	maxSeconds = 1 << 50 // later due times are stored as this
)

// Answers of the script put.
const (
	codeNew = 1 + iota
	codeSame
	codeChanged
	codeClash
	codeDropped
	codeBroken
	otherID = 10 // is added to a code if the document has another DOC_ID
)

// Put is [docindex.Putter.Put].
func (s *Store) Put(ctx context.Context, p *docindex.Puts) (res docindex.PutResult, err error) {
	scheduled := false
	for from := 0; from < p.Len() && err == nil; from += putBatch {
		if err = ctx.Err(); err == nil {
			b := putting{p: p, res: &res}
			for i := from; i < min(from+putBatch, p.Len()); i++ {
				b.these = append(b.these, i)
			}
			err = s.putSome(ctx, &b)
			scheduled = scheduled || b.scheduled
		}
	}
	if scheduled {
		s.wake()
	}
	return res, err
}

// putting is one batch of a Put.
type putting struct {
	p         *docindex.Puts
	these     []int // indexes of URLs
	res       *docindex.PutResult
	ids       map[int]string // given DOC_IDs that are stored with their documents
	places    map[int]where  // the place that is stored for each of them
	metadata  map[int][]byte // of updates without an owner: their metadata with the document's owner added
	uniques   uniques
	again     map[int]bool // DOC_IDs that had an entry already, which another daemon may release meanwhile
	scheduled bool
}

// putSome stores a batch. If another daemon is storing the unique of a document at this moment,
// putSome stores that document last: only then does it know whether the other daemon has stored the
// unique.
func (s *Store) putSome(ctx context.Context, b *putting) error {
	began := time.Now()
	for pause := firstUniqueLook; ; pause = min(2*pause, longestUniqueLook) {
		waits, err := s.giveUniques(ctx, b, time.Since(began) > uniqueWait)
		if err != nil {
			return err
		}
		if err := s.giveDocIDs(ctx, b); err != nil {
			return err
		}
		all := slices.DeleteFunc(b.these, func(i int) bool { return b.p.Verdict(i) == docindex.Refused })
		for len(all) > 0 {
			if all, err = s.putThese(ctx, b, all); err != nil {
				return err
			}
		}
		if b.these = waits; len(waits) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// at returns URL i in the form in which the store keeps it, and its host.
func (b *putting) at(i int) (docindex.Put, []byte) {
	put, host := b.p.At(i)
	if known, ok := b.uniques.known[i]; ok {
		put.URL, put.Key = known.url, known.key
		host = docindex.HostOf(known.url)
	}
	if m, ok := b.metadata[i]; ok {
		put.Metadata = m
	}
	return put, host
}

// putThese stores some URLs. It returns those that are to be put again, for which b.metadata now
// names the owner.
func (s *Store) putThese(ctx context.Context, b *putting, these []int) (again []int, err error) {
	var args [shards][]string
	var at [shards][]int
	first := s.places(placesOfOne * len(these))
	var links shapes.Links
	var last lastDomain
	for n, i := range these {
		put, host := b.at(i)
		key, identity := keyOf(&put, host), identityOf(&put)
		hash, other := hashesOfPut(&put)
		member := membershipOf(put.Metadata, put.URL)
		if put.Due == docindex.Never {
			put.Metadata, put.Payload = docindex.OwnerOf(put.Metadata), nil
		}
		shard := shardOf(key)
		at[shard] = append(at[shard], i)
		args[shard] = append(args[shard],
			decimal(first+int64(placesOfOne*n)), string(put.Crawl), key, string(host), hash, other, identity,
			string(put.URL), b.ids[i],
			decimal(int64(put.Priority)), dueOf(put.Due), flag(put.Update), flag(put.Sooner), decimal(put.Created),
			string(docindex.Pack(&put)))
		if put.NoExpiry && put.Due != docindex.Never && member[2] == "0" {
			member[2] = "-1"
		}
		args[shard] = append(append(args[shard], member...), links.Text(&put, host), last.of(s, string(put.Crawl), key))
	}
	answers, err := s.all(ctx, opsOf(putScript, args[:],
		func(shard int) []string { return []string{decimal(int64(len(at[shard])))} }))
	b.reported(s, these)
	var spare, renamed []givenDocID
	for _, a := range answers {
		for j, m := range list(a.value) {
			i, code := at[a.shard][j], number(m)
			if !m.IsInt64() {
				b.own(i, text(m))
				again = append(again, i)
				continue
			}
			b.settle(i, code%otherID)
			if entry, ok := b.uniques.given[i]; ok && code%otherID != codeNew {
				spare = append(spare, entry)
			} else if ok && b.uniques.again[i] {
				renamed = append(renamed, entry)
			}
			switch id := b.ids[i]; {
			case id == "":
			case code > otherID:
				spare = append(spare, givenDocID{id, b.places[i]})
			case b.again[i] && code == codeNew:
				renamed = append(renamed, givenDocID{id, b.places[i]})
			}
		}
	}
	return again, errors.Join(err, s.reassignDocIDs(ctx, renamed), s.releaseDocIDs(ctx, spare))
}

// reported tells the pace which URLs clients reported, once Redis has the reports. After an error
// Redis may have them, too.
func (b *putting) reported(s *Store, these []int) {
	for _, i := range these {
		if put, host := b.at(i); put.Update {
			s.pace.reported(string(put.Crawl), keyOf(&put, host))
		}
	}
}

// lastDomain is the domain of the previous URL of a batch, which often is the domain of the next
// one.
type lastDomain struct {
	crawlDomain
	key string
}

// of returns the domain of a URL, and notes that it is known.
func (l *lastDomain) of(s *Store, crawl, key string) string {
	if l.domain == "" || l.crawl != crawl || l.key != key {
		*l = lastDomain{crawlDomain{crawl, domainOfKey(key)}, key}
		s.budgets.known(l.crawlDomain)
	}
	return l.domain
}

// own adds the document's owner to the metadata of an update. says is the script's answer: 'c' and
// the name of the document's crawl, or 'm' and what is packed of the document.
func (b *putting) own(i int, says string) {
	owner := docindex.OwnerOf(docindex.Packed(says[1:]).Metadata())
	if crawl, ok := crawlOfName(says[1:]); ok && says[0] == 'c' {
		owner = docindex.OwnerOfCrawl(crawl)
	}
	if b.metadata == nil {
		b.metadata = map[int][]byte{}
	}
	put, _ := b.p.At(i)
	b.metadata[i] = docindex.WithOwner(put.Metadata, owner)
}

// reassignDocIDs writes the entries of DOC_IDs again after their documents were stored, in case
// another daemon has released them in between.
func (s *Store) reassignDocIDs(ctx context.Context, ids []givenDocID) error {
	var args [shards][]string
	for _, n := range ids {
		shard := shardOf(n.id)
		args[shard] = append(args[shard], n.id, n.at.encode(), "")
	}
	_, err := s.all(ctx, opsOf(nameScript, args[:], nil))
	return err
}

func keyOf(put *docindex.Put, host []byte) string {
	if len(put.Key) > 0 {
		return string(put.Key)
	}
	return string(host)
}

// dueOf formats a due time for the script.
func dueOf(due int64) string {
	if due == docindex.Never {
		return ""
	}
	return decimal(max(-maxSeconds, min(due, maxSeconds)))
}

func (b *putting) where(i int) where {
	put, host := b.at(i)
	hash, _ := hashesOfPut(&put)
	return whereOf(string(put.Crawl), keyOf(&put, host), hash)
}

// settle records the verdict on URL i.
func (b *putting) settle(i int, code int64) {
	put, _ := b.p.At(i)
	switch code {
	case codeNew:
		b.p.SetVerdict(i, docindex.New)
		b.res.New++
		b.scheduled = b.scheduled || put.Due != docindex.Never
	case codeChanged:
		b.p.SetVerdict(i, docindex.Changed)
		b.res.Known++
		b.scheduled = b.scheduled || put.Due != docindex.Never
	case codeSame:
		b.p.SetVerdict(i, docindex.Same)
		b.res.Known++
	case codeDropped:
		b.p.SetVerdict(i, docindex.Dropped)
		b.res.Dropped++
	case codeClash:
		b.refuse(i, errClash)
	case codeBroken:
		b.refuse(i, fmt.Errorf("its queue cannot be written: %w, which the daemon's log names", errBroken))
	}
}

var errClash = errors.New("another URL of its queue has the same hash; put it with another key")

func (b *putting) refuse(i int, err error) {
	b.p.SetVerdict(i, docindex.Refused)
	b.res.Refused = append(b.res.Refused, docindex.Refusal{Index: i, Err: err})
}

// givenDocID is a DOC_ID that was given with a document.
type givenDocID struct {
	id string
	at where
}

// giveDocIDs reserves the DOC_IDs that the URLs bring. It refuses a URL whose DOC_ID belongs to
// another document.
func (s *Store) giveDocIDs(ctx context.Context, b *putting) error {
	b.ids, b.again, b.places = map[int]string{}, map[int]bool{}, map[int]where{}
	var ids []string
	var at []int
	for _, i := range b.these {
		b.p.SetVerdict(i, docindex.Unsettled)
		if put, _ := b.p.At(i); len(put.DocID) > 0 {
			ids, at = append(ids, string(put.DocID)), append(at, i)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	has, docs, err := s.lookUp(ctx, ids)
	if err != nil {
		return err
	}
	return s.giveFreeDocIDs(ctx, b, ids, at, has, docs)
}

// giveFreeDocIDs does the rest of giveDocIDs: has and docs are the place and the document of each
// DOC_ID.
func (s *Store) giveFreeDocIDs(ctx context.Context, b *putting, ids []string, at []int, has []where,
	docs []docindex.Document) error {
	var args [shards][]string
	var asked [shards][]int
	for j, id := range ids {
		i := at[j]
		mine := b.where(i)
		put, host := b.at(i)
		taken, itsOwn := string(docs[j].DocID) == id, isOf(&docs[j], &put, host)
		if taken && itsOwn {
			mine = has[j]
		}
		b.places[i] = mine
		_, own := s.parseOwn(id)
		switch {
		case taken && !itsOwn:
			b.refuse(i, fmt.Errorf("doc_id %q: taken by %.200s", id, docs[j].URL))
		case own && len(docs[j].URL) == 0:
			b.refuse(i, fmt.Errorf("doc_id %q: %w", id, docindex.ErrReserved))
		case !own:
			shard, from := shardOf(id), ""
			if has[j].known() { // the entry's document is gone, or has another DOC_ID
				from = has[j].encode()
			}
			args[shard], asked[shard] = append(args[shard], id, mine.encode(), from), append(asked[shard], i)
		}
	}
	answers, err := s.all(ctx, opsOf(nameScript, args[:], nil))
	for _, a := range answers {
		for j, m := range list(a.value) {
			i := asked[a.shard][j]
			put, _ := b.p.At(i)
			if !m.IsInt64() && text(m) != "" {
				b.refuse(i, fmt.Errorf("doc_id %q: taken by another URL", put.DocID))
				continue
			}
			b.ids[i], b.again[i] = string(put.DocID), m.IsInt64()
		}
	}
	return err
}

// isOf reports whether a Put names the document d: the same crawl, key, URL and owner. An update
// without an owner and a unique names it whoever owns it.
func isOf(d *docindex.Document, p *docindex.Put, host []byte) bool {
	identity := docindex.IdentityOf(p)
	return string(d.Crawl) == string(p.Crawl) && string(d.Key) == keyOf(p, host) && string(d.URL) == string(p.URL) &&
		(p.Update && identity == nil || string(docindex.IdentityOf(&d.Put)) == string(identity))
}

// OnWake is [docindex.Hooks.OnWake]. For URLs that other daemons put, wake is called a few seconds
// later.
func (s *Store) OnWake(wake func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes = append(s.wakes, wake)
}

func (s *Store) wake() {
	s.mu.Lock()
	wakes := s.wakes
	s.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}
