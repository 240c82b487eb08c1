package scoped

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

// Put is [docindex.Putter.Put]. A URL that is not in the scope of its crawl gets the verdict Outside,
// unless it is known and the Put is an Update. One of a crawl that was stopped is Dropped.
//
// A URL with Via belongs to the crawl and the owner of that document, and is one link deeper. If a
// rule says that query parameters do not count on the URL's host, a URL without a unique gets one
// that leaves them out. A known URL with a LastMod after its last fetch goes out now, as far as the
// store believes the lastmods of its host.
//
// The store takes URLs that an index had before (Puts.Kept) whatever the scope says, and checks them
// before it hands them out. Of a crawl that was stopped it takes only completed ones.
func (s *Store) Put(ctx context.Context, p *docindex.Puts) (res docindex.PutResult, err error) {
	if err := s.ready(ctx); err != nil {
		return res, err
	}
	if p.Kept {
		defer func() { s.recountOf(p) }()
	}
	if p.HasVia() && p.HasDocID() {
		if ends := partsOf(p); len(ends) > 1 {
			err = s.putParts(ctx, p, ends, &res)
			return res, err
		}
	}
	return s.putPart(ctx, p)
}

// partsOf cuts p before each URL whose page is put earlier in the same part. It returns the end of
// each part.
func partsOf(p *docindex.Puts) (ends []int) {
	ids := map[string]struct{}{}
	for i := range p.Len() {
		put, _ := p.At(i)
		if _, found := ids[string(put.Via)]; found {
			ends = append(ends, i)
			clear(ids)
		}
		if len(put.DocID) > 0 {
			ids[string(put.DocID)] = struct{}{}
		}
	}
	return append(ends, p.Len())
}

// putParts stores the parts of p one after the other, so that links find their pages.
func (s *Store) putParts(ctx context.Context, p *docindex.Puts, ends []int, res *docindex.PutResult) error {
	from := 0
	for _, end := range ends {
		var part docindex.Puts
		for i := from; i < end; i++ {
			part.AddFrom(p, i)
		}
		one, err := s.putPart(ctx, &part)
		for i := from; i < end; i++ {
			p.SetVerdict(i, part.Verdict(i-from))
		}
		for i := range one.Refused {
			one.Refused[i].Index += from
		}
		res.New += one.New
		res.Known += one.Known
		res.Dropped += one.Dropped
		res.Refused = append(res.Refused, one.Refused...)
		res.OutOfScope += one.OutOfScope
		for rule, n := range one.Rules {
			res.Rules[rule] += n
		}
		if err != nil {
			return err
		}
		from = end
	}
	return nil
}

// putPart is Put where no page of a URL is in p itself.
func (s *Store) putPart(ctx context.Context, p *docindex.Puts) (res docindex.PutResult, err error) {
	b := batch{s: s, p: p, res: &res, now: s.now()}
	if p, err = b.resolve(ctx); err != nil {
		return res, err
	}
	if !s.some.Load() && b.p == p {
		return s.Store.Put(ctx, p)
	}
	err = b.put(ctx, p)
	return res, err
}

// batch is one call of Put.
type batch struct {
	s        *Store
	p        *docindex.Puts // the caller's
	res      *docindex.PutResult
	now      int64
	pages    map[string]*docindex.Document // by DOC_ID; nil: there is none
	via      []byte                        // the DOC_ID that page was last called with
	viaPage  *docindex.Document
	refusals map[int]struct{} // URLs whose page is not known
	name     string           // of last
	last     *crawl
	asked    bool // name and last are set
}

// crawl returns the crawl of a URL, or nil if no scope may refuse it.
func (b *batch) crawl(id []byte) *crawl {
	if !b.asked || b.name != string(id) {
		b.name, b.last, b.asked = string(id), b.s.find(id), true
		if b.p.Kept && b.last != nil && !b.last.Stopped {
			b.last = nil
		}
	}
	return b.last
}

// resolve returns the Puts with the crawl, owner and depth that their pages give them, and with
// their uniques. It returns the caller's Puts if no URL has a page or a LastMod and each is known
// by its own text. It refuses URLs whose page is not known.
func (b *batch) resolve(ctx context.Context) (*docindex.Puts, error) {
	if !b.p.HasVia() && !b.p.HasLastMod() && b.s.names == nil {
		return b.p, nil
	}
	b.pages, b.refusals = map[string]*docindex.Document{}, map[int]struct{}{}
	out := &docindex.Puts{}
	out.Grow(b.p)
	for i := range b.p.Len() {
		put, host := b.p.At(i)
		if len(put.Via) > 0 {
			page, err := b.page(ctx, put.Via)
			if err != nil {
				return nil, err
			}
			if err := put.From(page); err != nil {
				b.refuse(i, err)
			} else if faulty(FaultVia) {
				put.Depth = page.Depth
			}
		}
		if err := b.setUnique(ctx, &put, host); err != nil {
			return nil, err
		}
		if err := b.bringForward(ctx, &put, host); err != nil {
			return nil, err
		}
		out.AddChecked(put, host)
	}
	return out, nil
}

// setUnique sets the unique of a URL without one, if a rule is for its host. A URL from which no
// parameter is dropped gets a unique, too, so that it is the same document as one from which a
// parameter is dropped. An Update that names no owner gets none if a document with its URL is
// known: it is of that document, whoever owns it.
func (b *batch) setUnique(ctx context.Context, put *docindex.Put, host []byte) error {
	if b.s.names == nil || len(put.Unique) > 0 {
		return nil
	}
	unique := b.s.names.Name(host, put.URL)
	if unique == nil {
		return nil
	}
	if put.Update && docindex.OwnerOf(put.Metadata) == nil {
		if known, err := b.isKnown(ctx, put, host); known || err != nil {
			return err
		}
	}
	put.Unique = unique
	return nil
}

func (b *batch) refuse(i int, err error) {
	b.refusals[i] = struct{}{}
	b.p.SetVerdict(i, docindex.Refused)
	b.res.Refused = append(b.res.Refused, docindex.Refusal{Index: i, Err: err})
}

// page returns the document with a DOC_ID, or nil. Most links stand beside others of their page.
func (b *batch) page(ctx context.Context, id []byte) (page *docindex.Document, err error) {
	if !bytes.Equal(b.via, id) {
		if b.viaPage, err = b.findPage(ctx, id); err != nil {
			return nil, err
		}
		b.via = id
	}
	return b.viaPage, nil
}

func (b *batch) findPage(ctx context.Context, id []byte) (*docindex.Document, error) {
	if page, known := b.pages[string(id)]; known {
		return page, nil
	}
	doc, err := b.s.Store.Document(ctx, id)
	switch {
	case err == nil:
		b.pages[string(id)] = &doc
	case errors.Is(err, docindex.ErrUnknown):
		b.pages[string(id)] = nil
	default:
		return nil, fmt.Errorf("the page of a link: %w", err)
	}
	return b.pages[string(id)], nil
}

// put stores what is in scope of p, which has the caller's URLs in their order.
func (b *batch) put(ctx context.Context, p *docindex.Puts) error {
	in := make([]int, 0, p.Len())
	limited := false
	for i := range p.Len() {
		if _, refused := b.refusals[i]; refused {
			continue
		}
		put, host := p.At(i)
		c := b.crawl(put.Crawl)
		ok, err := b.takes(ctx, c, i, &put, host)
		if err != nil {
			return err
		}
		if ok {
			in = append(in, i)
			limited = limited || c.limited() && put.Due != docindex.Never
		}
	}
	if limited {
		return b.putLimited(ctx, p, in)
	}
	return b.putSome(ctx, p, in)
}

// takes reports whether a URL may be stored, as far as that does not depend on counts. If not, its
// verdict is set.
func (b *batch) takes(
	ctx context.Context, c *crawl, i int, put *docindex.Put, host []byte,
) (bool, error) {
	if c == nil || b.p.Kept && put.Due == docindex.Never {
		return true, nil
	}
	rule := scope.InScope
	if !c.Stopped || faulty(FaultStopped) {
		if rule = c.check(put.URL, host, put.Depth, b.now); rule == scope.InScope {
			return true, nil
		}
	}
	if put.Update {
		if known, err := b.isKnown(ctx, put, host); known || err != nil {
			return known, err
		}
	}
	if c.Stopped {
		b.p.SetVerdict(i, docindex.Dropped)
		b.res.Dropped++
		c.tally.dropped.Add(1)
		return false, nil
	}
	b.outside(i, c, rule)
	return false, nil
}

// isKnown reports whether the store has the document of a put, so that the put adds none. If several
// documents have the URL, it looks at one of them only: a known document may count as unknown, never
// the other way round.
func (b *batch) isKnown(ctx context.Context, put *docindex.Put, host []byte) (bool, error) {
	_, known, err := b.document(ctx, put, host)
	return known, err
}

// document returns the document of a put, with the limits that isKnown has.
func (b *batch) document(
	ctx context.Context, put *docindex.Put, host []byte,
) (doc docindex.Document, known bool, err error) {
	queue := docindex.Scope{Crawl: put.Crawl, Key: put.Key}
	if len(queue.Key) == 0 {
		queue.Key = host
	}
	doc, err = b.s.Store.Find(ctx, queue, put.URL)
	switch owner := docindex.OwnerOf(put.Metadata); {
	case errors.Is(err, docindex.ErrUnknown):
		return doc, false, nil
	case err != nil:
		return doc, false, err
	case put.Update && owner == nil && len(put.Unique) == 0:
		return doc, true, nil // it is of any document with this URL
	default:
		known = bytes.Equal(doc.Unique, put.Unique) && bytes.Equal(docindex.OwnerOf(doc.Metadata), owner)
		return doc, known, nil
	}
}

// outside refuses a URL by a rule.
func (b *batch) outside(i int, c *crawl, rule scope.Rule) {
	b.p.SetVerdict(i, docindex.Outside)
	b.res.OutOfScope++
	b.res.Rules[rule]++
	c.tally.refused[rule].Add(1)
}

// putSome stores some URLs of p, and sets the verdicts of the caller's. which is in ascending order,
// without repeats: if it is as long as p, it is all of p.
func (b *batch) putSome(ctx context.Context, p *docindex.Puts, which []int) error {
	if len(which) == 0 {
		return nil
	}
	some := p
	if len(which) < p.Len() {
		some = &docindex.Puts{}
		for _, i := range which {
			some.AddFrom(p, i)
		}
	}
	res, err := b.s.Store.Put(ctx, some)
	for j, i := range which {
		b.p.SetVerdict(i, some.Verdict(j))
	}
	b.res.New += res.New
	b.res.Known += res.Known
	b.res.Dropped += res.Dropped
	for _, r := range res.Refused {
		b.res.Refused = append(b.res.Refused, docindex.Refusal{Index: which[r.Index], Err: r.Err})
	}
	return err
}
