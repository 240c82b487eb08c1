// Package indextest is the suite that every docindex.Store passes.
package indextest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
)

// Run runs the suite. open returns a new, empty store that is usable until the test ends. Some
// tests call it in a synctest bubble.
func Run(t *testing.T, open func(t *testing.T) docindex.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, docindex.Store)
	}{
		{"empty", empty},
		{"known URLs are not taken again", known},
		{"one document a crawl, key and URL", crawlsAndKeys},
		{"candidates name their crawls", crawlsOfCandidates},
		{"given DOC_IDs", givenIDs},
		{"DOC_IDs never collide", idsDiffer},
		{"a document twice in one call", twiceAtOnce},
		{"document", document},
		{"hosts take turns", turns},
		{"priority, then first in first out", priorities},
		{"rejected hosts keep their turn", reject},
		{"in transit until the outcome", inTransit},
		{"outcomes of others change nothing", strangeOutcomes},
		{"outcome while scheduled", earlyOutcome},
		{"settings of crawls", crawlSettings},
		{"notify", notify},
		{"cancelled", cancelled},
		{"many at once", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
	runTimed(t, open, leaseCases)
	runTimed(t, open, callCases)
	runTimed(t, open, heldCases)
	runTimed(t, open, consumerCases)
	runTimed(t, open, againCases)
	runTimed(t, open, lastCases)
	runTimed(t, open, dumpCases)
	runTimed(t, open, recallCases)
	runTimed(t, open, hostCases)
	runTimed(t, open, ownerCases)
	runTimed(t, open, packedCases)
	runTimed(t, open, orphanCases)
	runTimed(t, open, addressCases)
}

// put stores URLs and returns how many were new.
func put(t *testing.T, s docindex.Store, puts ...docindex.Put) docindex.PutResult {
	t.Helper()
	var p docindex.Puts
	for _, one := range puts {
		if err := p.Add(one); err != nil {
			t.Fatalf("Add(%s): %v", one.URL, err)
		}
	}
	res, err := s.Put(t.Context(), &p)
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return res
}

// urls makes Puts of plain URLs.
func urls(texts ...string) (puts []docindex.Put) {
	for _, text := range texts {
		puts = append(puts, docindex.Put{URL: []byte(text)})
	}
	return puts
}

// take takes up to max candidates.
func take(t *testing.T, s docindex.Store, max int, reject ...string) *docindex.Batch {
	t.Helper()
	var b docindex.Batch
	if err := s.Candidates(t.Context(), max, reject, &b); err != nil {
		t.Fatalf("Candidates: %v", err)
	}
	return &b
}

// twiceAtOnce puts documents in one call whose later parts concern what the earlier ones put.
func twiceAtOnce(t *testing.T, s docindex.Store) {
	spider, url := []byte(`{"spiderid":["s"]}`), []byte("http://a.test/1")
	later := time.Now().Unix() + 60
	verdicts := add(t, s,
		docindex.Put{URL: url, DocID: []byte("x")},
		docindex.Put{URL: []byte("http://a.test/2"), DocID: []byte("x")},
		docindex.Put{URL: url, Metadata: spider},
		docindex.Put{URL: url, Metadata: spider},
		docindex.Put{URL: url, Metadata: spider, Update: true, Due: later},
		docindex.Put{URL: url, Metadata: spider, Update: true, Due: docindex.Never},
		docindex.Put{URL: url, Update: true, Due: later})
	want := []docindex.Verdict{docindex.New, docindex.Refused, docindex.New, docindex.Same, docindex.Changed,
		docindex.Changed, docindex.Changed}
	if !slices.Equal(verdicts, want) {
		t.Errorf("verdicts are %v; want %v", verdicts, want)
	}
	n, err := s.Count(t.Context(), nil)
	if err != nil || n.Scheduled != 1 || n.Completed != 1 {
		t.Errorf("%+v, %v; want one scheduled and one completed", n, err)
	}
}

// texts returns the URLs of a batch.
func texts(b *docindex.Batch) (all []string) {
	for i := range b.Len() {
		all = append(all, string(b.At(i).URL))
	}
	return all
}

func wantTexts(t *testing.T, b *docindex.Batch, want ...string) {
	t.Helper()
	if got := texts(b); !slices.Equal(got, want) {
		t.Errorf("candidates are\n%q; want\n%q", got, want)
	}
}

// end reports the outcome done for all documents of b.
func end(t *testing.T, s docindex.Store, b *docindex.Batch) {
	t.Helper()
	var o docindex.Outcomes
	for i := range b.Len() {
		c := b.At(i)
		o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Kind: docindex.Done, Status: 200, Attempts: 1})
	}
	report(t, s, &o)
}

func report(t *testing.T, s docindex.Store, o *docindex.Outcomes) {
	t.Helper()
	if err := s.Outcomes(t.Context(), o); err != nil {
		t.Fatalf("Outcomes: %v", err)
	}
}

// wantStates compares the counts of documents by state.
func wantStates(t *testing.T, s docindex.Store, scheduled, inTransit, completed int) {
	t.Helper()
	st := s.Stats()
	if st.Scheduled != scheduled || st.InTransit != inTransit || st.Completed != completed {
		t.Errorf("%d scheduled, %d in transit, %d completed; want %d, %d, %d",
			st.Scheduled, st.InTransit, st.Completed, scheduled, inTransit, completed)
	}
}

func wantResult(t *testing.T, res docindex.PutResult, isNew, known, refused int) {
	t.Helper()
	if res.New != isNew || res.Known != known || len(res.Refused) != refused {
		t.Errorf("%d new, %d known, refused %v; want %d, %d, %d",
			res.New, res.Known, res.Refused, isNew, known, refused)
	}
}

func empty(t *testing.T, s docindex.Store) {
	wantTexts(t, take(t, s, 10, "a.example"))
	wantStates(t, s, 0, 0, 0)
	wantResult(t, put(t, s), 0, 0, 0)
	report(t, s, &docindex.Outcomes{})
	if _, err := s.Document(t.Context(), []byte("1")); !errors.Is(err, docindex.ErrUnknown) {
		t.Errorf("Document of an empty store: %v; want ErrUnknown", err)
	}
}

func known(t *testing.T, s docindex.Store) {
	wantResult(t, put(t, s, urls("http://a.example/", "http://a.example/x", "HTTP://A.example/x#y")...), 2, 1, 0)
	b := take(t, s, 10)
	wantTexts(t, b, "http://a.example/", "http://a.example/x")
	wantResult(t, put(t, s, urls("http://a.example/x")...), 0, 1, 0)
	end(t, s, b)
	wantResult(t, put(t, s, urls("http://a.example/x", "http://a.example/")...), 0, 2, 0)
	wantTexts(t, take(t, s, 10))
	wantStates(t, s, 0, 0, 2)
}

func crawlsOfCandidates(t *testing.T, s docindex.Store) {
	want := map[string]string{} // "SPIDERID of CRAWL" by URL
	for url, one := range map[string]docindex.Put{
		"http://a.test/": {},
		"http://b.test/": {Crawl: []byte("DEFAULT")},
		"http://c.test/": {Crawl: []byte("one")},
		"http://d.test/": {Crawl: []byte("one"), Key: []byte("key")},
		"http://e.test/": {Crawl: []byte("one"), Key: []byte("key"), Metadata: []byte(`{"spiderid":["link"]}`)},
		"http://f.test/": {Crawl: []byte("two words: é"), Metadata: []byte(`{"spiderid":["link"]}`)},
		"http://g.test/": {Key: []byte("key"), Metadata: []byte(`{"spiderid":["link"]}`)},
	} {
		one.URL = []byte(url)
		wantResult(t, put(t, s, one), 1, 0, 0)
		want[url] = fmt.Sprintf("%s of %s", docindex.SpiderOf(one.Metadata),
			strings.TrimPrefix(string(one.Crawl), "DEFAULT"))
	}
	for range 2 {
		b, got, back := take(t, s, 20), map[string]string{}, docindex.Outcomes{}
		for i := range b.Len() {
			c := b.At(i)
			got[string(c.URL)] = fmt.Sprintf("%s of %s", c.Spider, c.Crawl)
			back.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL})
		}
		if !maps.Equal(got, want) {
			t.Errorf("candidates are %v; want %v", got, want)
		}
		if err := s.Return(t.Context(), &back); err != nil {
			t.Fatal(err)
		}
	}
}

func crawlsAndKeys(t *testing.T, s docindex.Store) {
	u := []byte("http://a.example/")
	wantResult(t, put(t, s,
		docindex.Put{URL: u},
		docindex.Put{URL: u, Crawl: []byte("DEFAULT")},
		docindex.Put{URL: u, Key: []byte("a.example")},
		docindex.Put{URL: u, Crawl: []byte("c")},
		docindex.Put{URL: u, Key: []byte("c")},
		docindex.Put{URL: u, Crawl: []byte("c"), Key: []byte("k")},
		docindex.Put{URL: u, Crawl: []byte("k"), Key: []byte("c")},
		docindex.Put{URL: u, Crawl: []byte("c"), Key: []byte("k")},
	), 5, 3, 0)
	b := take(t, s, 10)
	if b.Len() != 5 {
		t.Errorf("%d candidates; want 5 documents of one URL", b.Len())
	}
	end(t, s, b)
	wantStates(t, s, 0, 0, 5)
}

func givenIDs(t *testing.T, s docindex.Store) {
	a, b, c := []byte("http://a.example/"), []byte("http://b.example/"), []byte("http://c.example/")
	wantResult(t, put(t, s,
		docindex.Put{URL: a, DocID: []byte("page-7")},
		docindex.Put{URL: a, DocID: []byte("page-7")},
		docindex.Put{URL: a, DocID: []byte("other")},
	), 1, 2, 0)
	res := put(t, s, docindex.Put{URL: c}, docindex.Put{URL: b, DocID: []byte("page-7")})
	wantResult(t, res, 1, 0, 1)
	if len(res.Refused) == 1 && res.Refused[0].Index != 1 {
		t.Errorf("refused is number %d; want 1", res.Refused[0].Index)
	}
	ids := map[string]string{}
	for got, i := take(t, s, 10), 0; i < got.Len(); i++ {
		ids[string(got.At(i).URL)] = string(got.At(i).DocID)
	}
	if ids[string(a)] != "page-7" || len(ids) != 2 {
		t.Errorf("DOC_IDs are %v; want page-7 for %s, and %s", ids, a, c)
	}
	// The store also accepts a DOC_ID that it gave itself.
	wantResult(t, put(t, s, docindex.Put{URL: b, DocID: []byte(ids[string(c)])}), 0, 0, 1)
}

func idsDiffer(t *testing.T, s docindex.Store) {
	var puts []docindex.Put
	for i := range 200 {
		p := docindex.Put{URL: fmt.Appendf(nil, "http://a.example/%d", i)}
		if i%3 == 0 {
			p.DocID = fmt.Appendf(nil, "%d", 2*i+1) // some of the numbers that a store might give
		}
		puts = append(puts, p)
	}
	res := put(t, s, puts...)
	b := take(t, s, 1000)
	if b.Len() != res.New || res.New+len(res.Refused) != len(puts) {
		t.Fatalf("%d candidates of %+v", b.Len(), res)
	}
	seen := map[string]bool{}
	for i := range b.Len() {
		c := b.At(i)
		if seen[string(c.DocID)] {
			t.Errorf("DOC_ID %s is given twice", c.DocID)
		}
		seen[string(c.DocID)] = true
		d, err := s.Document(t.Context(), c.DocID)
		if err != nil || !bytes.Equal(d.URL, c.URL) || !bytes.Equal(d.DocID, c.DocID) {
			t.Errorf("Document(%s) = %s %s, %v; want %s", c.DocID, d.DocID, d.URL, err, c.URL)
		}
	}
	end(t, s, b)
	wantStates(t, s, 0, 0, b.Len())
}

func document(t *testing.T, s docindex.Store) {
	want := docindex.Put{
		URL:      []byte("http://a.example/x"),
		DocID:    []byte("x1"),
		Priority: -5,
		Crawl:    []byte("crawl"),
		Key:      []byte("key"),
		Metadata: []byte(`{"k":["v","w"]}`),
	}
	put(t, s, want)
	wantDocument(t, s, docindex.Document{Put: want, State: docindex.Scheduled})
	b := take(t, s, 1)
	if b.Len() != 1 || b.At(0).Priority != want.Priority {
		t.Fatalf("candidates are %q; want one of priority %d", texts(b), want.Priority)
	}
	wantDocument(t, s, docindex.Document{Put: want, State: docindex.InTransit})
	end(t, s, b)
	if d, err := s.Document(t.Context(), want.DocID); err != nil || d.State != docindex.Completed {
		t.Errorf("state after the outcome is %v, %v; want completed", d.State, err)
	}
}

func wantDocument(t *testing.T, s docindex.Store, want docindex.Document) {
	t.Helper()
	got, err := s.Document(t.Context(), want.DocID)
	if err != nil {
		t.Fatalf("Document(%s): %v", want.DocID, err)
	}
	want.Created = got.Created
	if !reflect.DeepEqual(got, want) {
		t.Errorf("document is\n%+v; want\n%+v", got, want)
	}
}

func cancelled(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var b docindex.Batch
	if err := s.Candidates(ctx, 1, nil, &b); !errors.Is(err, context.Canceled) {
		t.Errorf("Candidates with a cancelled context: %v; want %v", err, context.Canceled)
	}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: []byte("1")})
	if err := s.Outcomes(ctx, &o); !errors.Is(err, context.Canceled) {
		t.Errorf("Outcomes with a cancelled context: %v; want %v", err, context.Canceled)
	}
	wantStates(t, s, 1, 0, 0)
}

// Active returns the active flag. An error fails the test.
func Active(t testing.TB, s docindex.Frontier) bool {
	t.Helper()
	is, err := s.Active(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// CrawlCounts returns the counts of up to max crawls. An error fails the test.
func CrawlCounts(t testing.TB, s docindex.Crawls, max int) []docindex.CrawlCounts {
	t.Helper()
	counts, err := s.CrawlCounts(t.Context(), max)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}
