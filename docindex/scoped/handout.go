package scoped

import (
	"context"
	"time"

	"urlserver/docindex"
)

// Candidates is [docindex.Source.Candidates]. In b, a document that is no longer in scope has the
// outcome that ends it, and is not to be sent.
func (s *Store) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	if !s.rechecks(ctx) {
		return s.Store.Candidates(ctx, max, reject, b)
	}
	var all docindex.Batch
	err := s.Store.Candidates(ctx, max, reject, &all)
	s.pass(ctx, &all, b, b.AddEnded)
	return err
}

// Lease is [docindex.Leaser.Lease]. It ends documents that are no longer in scope.
func (s *Store) Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *docindex.Batch) error {
	if !s.rechecks(ctx) {
		return s.Store.Lease(ctx, max, reject, lease, b)
	}
	var all docindex.Batch
	var ended docindex.Outcomes
	err := s.Store.Lease(ctx, max, reject, lease, &all)
	s.pass(ctx, &all, b, func(c docindex.Candidate) { ended.Add(outcomeOf(c)) })
	if ended.Len() > 0 && err == nil {
		err = s.complete(ctx, &ended) // else they are handed out again when the lease is over
	}
	return err
}

func outcomeOf(c docindex.Candidate) docindex.Outcome {
	return docindex.Outcome{DocID: c.DocID, URL: c.URL, Kind: c.Kind, NoStatus: true, At: time.Now(), Crawl: c.Crawl}
}

// rechecks reports whether the store checks documents of some crawl before it hands them out.
func (s *Store) rechecks(ctx context.Context) bool {
	_ = s.ready(ctx) // after an error the settings that are known count
	return s.some.Load()
}

// pass adds the candidates of all that are in scope to b, and calls end for the others.
func (s *Store) pass(ctx context.Context, all, b *docindex.Batch, end func(docindex.Candidate)) {
	now := s.now()
	for i := range all.Len() {
		c := all.At(i)
		if of := s.find(c.Crawl); of.rechecked(now) {
			if kind, _, ends := of.ends(c.URL, docindex.HostOf(c.URL), s.depth(ctx, of, c.DocID), now); ends {
				c.Kind = kind
				end(c)
				continue
			}
		}
		b.AddFor(c.DocID, c.URL, c.Priority, string(c.Spider), string(c.Crawl))
		b.AttachPayload(c.Payload)
	}
	for i := range all.EndedLen() {
		end(all.EndedAt(i))
	}
	for range all.Skipped() {
		b.Skip()
	}
}

// depth returns the depth of a document if its scope limits that; else, or if it cannot be read, 0.
func (s *Store) depth(ctx context.Context, of *crawl, id []byte) uint16 {
	if of.rules == nil || of.Scope.MaxDepth == nil {
		return 0
	}
	doc, err := s.Store.Document(ctx, id)
	if err != nil {
		return 0
	}
	return doc.Depth
}

// Serve is [docindex.Frontier.Serve]. It gives out the URLs that are in scope, and ends the others.
func (s *Store) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	if !s.rechecks(ctx) {
		return s.Store.Serve(ctx, r, give)
	}
	var ended docindex.Outcomes
	var out docindex.Served
	err := s.Store.Serve(ctx, r, func(all *docindex.Served) error {
		out.Reset()
		for i := range all.Len() {
			p := all.At(i)
			if end, ends := s.served(ctx, &p); ends {
				ended.Add(end)
			} else {
				out.AddFrom(all, i)
			}
		}
		if out.Len() == 0 {
			return nil
		}
		return give(&out)
	})
	if ended.Len() > 0 {
		err = joined(err, s.complete(ctx, &ended))
	}
	return err
}

// served returns the outcome of a URL that Serve is about to give out; ends is false if the URL is
// to be fetched.
func (s *Store) served(ctx context.Context, p *docindex.Put) (o docindex.Outcome, ends bool) {
	now, of := s.now(), s.find(p.Crawl)
	if !of.rechecked(now) {
		return o, false
	}
	doc, err := s.Store.Find(ctx, docindex.Scope{Crawl: p.Crawl, Key: p.Key}, p.URL)
	if err != nil {
		return o, false
	}
	kind, _, ends := of.ends(p.URL, docindex.HostOf(p.URL), doc.Depth, now)
	if !ends {
		return o, false
	}
	return outcomeOf(docindex.Candidate{DocID: doc.DocID, URL: p.URL, Crawl: p.Crawl, Kind: kind}), true
}

func joined(err, other error) error {
	if err == nil {
		return other
	}
	return err
}
