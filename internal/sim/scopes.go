package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
	"urlserver/urlserver/engine"
)

// scopedIndex is the daemon's own index in memory, with scopes. It gets only the seeds of its crawls;
// the other documents are put as links of pages that spiders have fetched. Document n belongs to
// crawl n%Crawls.
type scopedIndex struct {
	run    *run
	store  *scoped.Store
	ends   map[uint32]docindex.Outcome // outcomes that the outbox has, by document
	tags   map[string]put              // PUTs of spiders that have no answer yet
	tag    int
	review bool // the store reviews a crawl: it ends documents by itself
}

// put is a link that is put, or a seed.
type put struct {
	doc uint32
	via int64 // the page; negative: none
}

// watchedStore reports the outcomes that reach the store.
type watchedStore struct {
	docindex.Store
	index *scopedIndex
}

// Candidates implements [docindex.Source.Candidates].
func (w watchedStore) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	from := b.Len()
	err := w.Store.Candidates(ctx, max, reject, b)
	for i := from; i < b.Len(); i++ {
		w.index.run.oracle.handedOut(numberOf(b.At(i).DocID), reject)
	}
	return err
}

// Return implements [docindex.Returner.Return].
func (w watchedStore) Return(ctx context.Context, o *docindex.Outcomes) error {
	for i := range o.Len() {
		w.index.run.oracle.crawls.comesBack(numberOf(o.At(i).DocID))
	}
	return w.Store.Return(ctx, o)
}

// Outcomes implements [docindex.Source.Outcomes].
func (w watchedStore) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	for i := range o.Len() {
		w.index.run.oracle.stored(numberOf(o.At(i).DocID), o.At(i).Kind, w.index.review)
	}
	return w.Store.Outcomes(ctx, o)
}

// Put implements [docindex.Putter.Put]. Updates are of documents that a review schedules again.
func (w watchedStore) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	for i := range p.Len() {
		if one, _ := p.At(i); one.Update {
			n, _ := numberOfURL(string(one.URL)) // each URL has one
			w.index.run.oracle.again(n)
		}
	}
	return w.Store.Put(ctx, p)
}

const (
	domains  = 9 // registered domains of a scenario with scopes
	children = 3 // links of a page to pages that only it links to
	others   = 3 // its other links

)

// turns returns the budget of a domain, and how many documents the slots have at most of what takes
// turns.
func (sc *Scenario) turns() (budget int, ahead docindex.Ahead) {
	if sc.Shapes {
		return 0, docindex.Ahead{Queue: 6}
	}
	return 6, docindex.Ahead{Domain: 12, Waiting: 5}
}

func newScopedIndex(r *run) *scopedIndex {
	x := &scopedIndex{run: r, ends: map[uint32]docindex.Outcome{}, tags: map[string]put{}}
	store := memory.New()
	store.SetClock(func() time.Duration { return r.now })
	x.store = scoped.New(watchedStore{store, x})
	x.store.SetClock(func() int64 { return r.start.Add(r.now + r.drift).Unix() })
	x.store.OnRecall(func(o *docindex.Outcomes) {
		for i := range o.Len() {
			r.oracle.recalled(numberOf(o.At(i).DocID))
		}
		r.engine.Recalled(o)
	})
	r.oracle.crawls = newCrawlViews(r.sc, r.world)
	budget, ahead := r.sc.turns()
	x.store.SetBudget(budget)
	x.store.SetAhead(ahead)
	for c := range r.sc.Crawls {
		if !r.sc.Shapes {
			x.set(c)
		}
		for i := range 4 {
			r.plan(time.Duration(i)*r.sc.Day/4, func() { x.seed(c) })
		}
	}
	r.every(func() time.Duration { return r.sc.Trouble.Scopes }, func() { x.change(r.rng.IntN(r.sc.Crawls)) })
	return x
}

func crawlName(c int) string { return "crawl-" + strconv.Itoa(c) }

func numberOf(id []byte) uint32 {
	n, _ := strconv.ParseUint(string(id), 10, 32) // the simulation gives all DOC_IDs
	return uint32(n)
}

// seed puts a random first page of a crawl.
func (x *scopedIndex) seed(c int) {
	r := x.run
	n := r.sc.Crawls*r.rng.IntN(r.sc.Documents/r.sc.Crawls/8) + c
	x.putAll([]put{{uint32(c), -1}, {uint32(n), -1}})
}

// links returns the links of a page, to pages of its crawl.
func (x *scopedIndex) links(page uint32) (list []put) {
	sc, docs := x.run.sc, x.run.world.docs
	all, crawls := uint32(sc.Documents), uint32(sc.Crawls)
	at, c := page/crawls, page%crawls
	for i := range uint32(children + others) {
		to := at*children + i + 1
		if i >= children {
			to = at * (i + 7) % (all / crawls)
		}
		if to = to*crawls + c; to < all && !(sc.Shapes && docs[to].host == docs[page].host) {
			list = append(list, put{to, int64(page)})
		}
	}
	return list
}

// fetched puts the links of a page that a spider has fetched: on its connection, or as HTTP does.
func (x *scopedIndex) fetched(s *spider, page uint32) {
	list := x.links(page)
	if x.run.rng.IntN(2) == 0 {
		x.putAll(list)
		return
	}
	for _, l := range list {
		x.tag++
		tag := "t" + strconv.Itoa(x.tag)
		x.tags[tag] = l
		s.send(x.run.putLine(tag, l.doc, l.via))
	}
	x.sayCount(s)
}

// putAll puts links and seeds in one call.
func (x *scopedIndex) putAll(list []put) {
	var p docindex.Puts
	for _, one := range list {
		raw, _ := x.run.world.url(one.doc)
		to := docindex.Put{URL: []byte(raw), DocID: []byte(strconv.Itoa(int(one.doc)))}
		if x.run.sc.Payloads {
			to.Payload = []byte(payloadOf(one.doc))
		}
		if to.Crawl = []byte(crawlName(int(one.doc) % x.run.sc.Crawls)); one.via >= 0 {
			to.Crawl, to.Via = nil, strconv.AppendInt(nil, one.via, 10)
		}
		if err := p.Add(to); err != nil {
			panic(err) // URLs of a scenario with scopes are good
		}
	}
	x.file(list, &p)
}

// file stores links, in their order, and shows the oracle the verdicts.
func (x *scopedIndex) file(list []put, p *docindex.Puts) {
	res, err := x.store.Put(context.Background(), p)
	if err != nil {
		x.run.oracle.wrong(RuleScope, "the store failed: %v", err)
	}
	var verdicts []docindex.Verdict
	for i := range list {
		verdicts = append(verdicts, p.Verdict(i))
	}
	x.run.oracle.put(list, verdicts, res)
}

// change changes the scope of a crawl, or stops it.
func (x *scopedIndex) change(c int) {
	if x.run.now >= x.run.sc.Heal {
		return
	}
	if x.run.rng.IntN(40) == 0 {
		x.run.oracle.crawls.stopping = true
		x.reviewed(func() error { return x.store.StopCrawlID(context.Background(), crawlName(c)) })
		x.run.oracle.crawls.stopping = false
		x.run.oracle.stoppedCrawl(c)
		return
	}
	x.set(c)
}

// set gives a crawl another scope.
func (x *scopedIndex) set(c int) {
	r := x.run
	text := randomScope(r.rng, r.start.Add(r.now))
	to, err := scope.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	if r.oracle.crawls.list[c].stopped {
		return
	}
	r.oracle.setsScope(c, text)
	x.reviewed(func() error {
		return x.store.SetCrawl(context.Background(), crawlName(c), scoped.Change{Scope: &to})
	})
	r.oracle.hasScope(c)
	if !to.Until.IsZero() {
		r.plan(to.Until.Sub(r.start)+r.between(0, time.Second), func() {
			x.reviewed(func() error {
				_, err := x.store.Review(context.Background())
				return err
			})
			r.oracle.over(c)
		})
	}
}

func (x *scopedIndex) reviewed(do func() error) {
	x.review = true
	if err := do(); err != nil {
		x.run.oracle.wrong(RuleScope, "the store failed: %v", err)
	}
	x.review = false
	x.run.again = true
}

// randomScope returns the JSON of a scope.
func randomScope(rng *rand.Rand, now time.Time) string {
	var parts []string
	list := func(member string, most int, one func() string) {
		if rng.IntN(3) > 0 {
			return
		}
		var items []string
		for range 1 + rng.IntN(most) {
			items = append(items, strconv.Quote(one()))
		}
		parts = append(parts, fmt.Sprintf("%q:[%s]", member, strings.Join(items, ",")))
	}
	number := func(member string, least, most, seldom int) {
		if rng.IntN(seldom) == 0 {
			parts = append(parts, fmt.Sprintf("%q:%d", member, least+rng.IntN(most-least)))
		}
	}
	pick := func(texts ...string) func() string { return func() string { return texts[rng.IntN(len(texts))] } }
	list("domains", domains, func() string { return fmt.Sprintf("d%d.example", rng.IntN(domains)) })
	list("hosts", 20, func() string { return scopedHost(uint32(rng.IntN(300))) })
	list("surts", 6, func() string {
		n := rng.IntN(domains)
		if rng.IntN(2) == 0 {
			return fmt.Sprintf("http://(example,d%d,", n)
		}
		return fmt.Sprintf("http://(example,d%d,w%d,)/docs/", n, n+domains*rng.IntN(30))
	})
	list("allow", 2, pick("/docs/|/p/", `w\d*[02468]\.`, "^http:", "p"))
	list("deny", 3, pick("/cal/", `[0-9]*7(\.|$)`, `//w1\d\.`, "(?i)/IMG/.*5"))
	list("deny_extensions", 2, pick("jpg", "html"))
	number("max_depth", 0, 6, 3)
	number("max_pages", 20, 500, 4)
	number("max_pages_domain", 5, 60, 4)
	if rng.IntN(8) == 0 {
		until := now.Add(time.Duration(rng.IntN(3600)) * time.Second).Truncate(time.Second)
		parts = append(parts, fmt.Sprintf(`"until":%q`, until.Format(time.RFC3339)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// scopedHost returns the name of a host in a scenario with scopes: below one of few domains.
func scopedHost(i uint32) string { return fmt.Sprintf("w%d.d%d.example", i, i%domains) }

// scopedPath returns the path of a document in a scenario with scopes, or one with shapes.
func scopedPath(n uint32, shapes bool) string {
	h := n * 2654435761
	if shapes {
		return fmt.Sprintf("/%c/%d.html", 'a'+h>>8%6, n)
	}
	folder := []string{"/docs/", "/cal/2026/", "/img/", "/p/", "/docs/a/"}[h>>8%5]
	return folder + strconv.Itoa(int(n)) + []string{"", ".html", ".jpg", ".JPG?x"}[h>>16%4]
}

// asked implements [docIndex].
func (x *scopedIndex) asked(a *engine.Ask) {
	r := x.run
	r.oracle.asked(a.Reject)
	answer := &engine.Prepared{}
	if err := x.store.Candidates(context.Background(), a.Max, a.Reject, &answer.Batch); err != nil {
		r.oracle.wrong(RuleScope, "the store failed: %v", err)
	}
	for i := range answer.Batch.EndedLen() {
		c := answer.Batch.EndedAt(i)
		r.oracle.refused(numberOf(c.DocID), c.Kind)
	}
	r.after(r.between(10*time.Millisecond, 1500*time.Millisecond), func() {
		r.oracle.asking = false
		for i := range answer.Batch.Len() {
			c := answer.Batch.At(i)
			r.oracle.took(string(c.DocID), string(c.URL), c.Priority)
		}
		for i := range answer.Batch.EndedLen() {
			c := answer.Batch.EndedAt(i)
			r.oracle.unusable(string(c.DocID), c.Kind)
		}
		answer.Prepare()
		r.engine.Answered(answer)
	})
}

// returned implements [docIndex].
func (x *scopedIndex) returned(o docindex.Outcome) {
	id, url := bytes.Clone(o.DocID), bytes.Clone(o.URL)
	x.run.after(x.run.between(0, 300*time.Millisecond), func() {
		var back docindex.Outcomes
		back.Add(docindex.Outcome{DocID: id, URL: url})
		if err := x.store.Return(context.Background(), &back); err != nil {
			x.run.oracle.wrong(RuleScope, "the store failed: %v", err)
		}
	})
}

// ended implements [docIndex]. As the daemon does, it puts the target of a redirect.
func (x *scopedIndex) ended(o docindex.Outcome) {
	n := numberOf(o.DocID)
	o.DocID, o.URL, o.Crawl = bytes.Clone(o.DocID), bytes.Clone(o.URL), bytes.Clone(o.Crawl)
	o.Location, o.Metadata = nil, nil
	x.ends[n] = o
	if o.Kind == docindex.Done && o.Status == 301 {
		links := x.links(n)
		x.putAll(links[:min(1, len(links))])
	}
}

// complete implements [docIndex].
func (x *scopedIndex) complete(n uint32) {
	var o docindex.Outcomes
	one := x.ends[n]
	one.Pause, one.Gap = 0, 0 // the store's clock is not the simulation's
	o.Add(one)
	delete(x.ends, n)
	if err := x.store.Outcomes(context.Background(), &o); err != nil {
		x.run.oracle.wrong(RuleScope, "the store failed: %v", err)
	}
}

// unfinished implements [docIndex].
func (x *scopedIndex) unfinished() int { return x.run.oracle.crawls.live }
