package scoped

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"urlserver/docindex"
)

// bringForward makes a known URL go out now if its LastMod is after its last fetch, and the store
// believes its host. It ignores a LastMod in the future.
func (b *batch) bringForward(ctx context.Context, put *docindex.Put, host []byte) error {
	if put.LastMod == 0 || put.LastMod > b.now || put.Update || put.Sooner && put.Due <= b.now {
		return nil
	}
	doc, known, err := b.document(ctx, put, host)
	if err != nil || !known || !fetchedBefore(&doc, put.LastMod) {
		return err
	}
	if doc.State == docindex.InTransit || doc.State == docindex.Scheduled && doc.Due <= b.now {
		return nil // it goes out anyway
	}
	if b.s.sites.ask(host, doc.DocID, time.Duration(b.now-doc.Last.At.Unix())*time.Second) {
		put.Due, put.Sooner = docindex.Now, true
	}
	return nil
}

// fetchedBefore reports whether the last fetch of a document was before a moment. It is false for a
// document whose last end was not after a fetch: it ended for a reason that a site's lastmod does
// not change.
func fetchedBefore(doc *docindex.Document, moment int64) bool {
	fetched := !doc.Last.Known || doc.Last.Kind == docindex.Done || doc.Last.Kind == docindex.Timeout
	return fetched && !doc.Last.At.IsZero() && doc.Last.At.Unix() < moment
}

// Outcomes is [docindex.Source.Outcomes]. From the changes that the outcomes report it learns
// whether the lastmods for which documents went out were true.
func (s *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	if err := s.complete(ctx, o); err != nil {
		return err
	}
	s.sites.learn(o)
	return nil
}

// Bounds of beliefs. A full map takes about 2 MiB for the hosts and 5 MiB for the trials.
const (
	maxDoubt  = 11      // the last fetch has to be 1024 hours ago
	maxHosts  = 1 << 16 // with doubts
	maxTrials = 1 << 17 // documents that went out for a lastmod and have no outcome yet
)

// beliefs says for each host how far the store believes its lastmods. It forgets some hosts when
// there are too many, and all when the process ends. It is safe for concurrent use.
type beliefs struct {
	seed maphash.Seed

	mu     sync.Mutex // guards all below; held for memory work only
	doubts map[uint64]uint8
	trials map[uint64]uint64 // DOC_ID to host
}

func newBeliefs() *beliefs {
	return &beliefs{seed: maphash.MakeSeed(), doubts: map[uint64]uint8{}, trials: map[uint64]uint64{}}
}

// ask reports whether the store believes a lastmod of a host, for a document whose last fetch was
// that long ago. If so, learn checks the lastmod by the document's next outcome.
func (b *beliefs) ask(host, id []byte, ago time.Duration) bool {
	site, doc := maphash.Bytes(b.seed, host), maphash.Bytes(b.seed, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if ago < patience(b.doubts[site]) {
		return false
	}
	makeRoom(b.trials, maxTrials)
	b.trials[doc] = site
	return true
}

// patience returns how long ago the last fetch of a page has to be for the store to believe a
// lastmod: 0 without doubts; otherwise an hour, twice as long after each further lastmod that was
// wrong, and half as long after each that was right.
func patience(doubt uint8) time.Duration {
	if doubt == 0 {
		return 0
	}
	return time.Hour << (doubt - 1)
}

// learn checks by outcomes whether the pages that went out for a lastmod had changed.
func (b *beliefs) learn(o *docindex.Outcomes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := 0; i < o.Len() && len(b.trials) > 0; i++ {
		one := o.At(i)
		doc := maphash.Bytes(b.seed, one.DocID)
		site, tried := b.trials[doc]
		if !tried {
			continue
		}
		delete(b.trials, doc)
		doubt := b.doubts[site]
		switch {
		case one.Kind != docindex.Done:
		case one.Change == docindex.Unchanged || one.Status == 304:
			makeRoom(b.doubts, maxHosts)
			b.doubts[site] = min(doubt+1, maxDoubt)
		case one.Change == docindex.Modified && doubt > 1:
			b.doubts[site] = doubt - 1
		case one.Change == docindex.Modified:
			delete(b.doubts, site)
		}
	}
}

// makeRoom removes any entry of a full map.
func makeRoom[V any](m map[uint64]V, most int) {
	if len(m) < most {
		return
	}
	for key := range m {
		delete(m, key)
		return
	}
}
