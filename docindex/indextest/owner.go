package indextest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

// ownerCases test that spiderid, appid, crawl and URL together identify a document.
var ownerCases = []testCase{
	{"known by spider, application, crawl and URL", ownersApart},
	{"completed at once, with an owner", ownersCompletedAtOnce},
	{"news without an owner", ownersNews},
	{"news keeps the owner", ownersKept},
	{"forgotten, and put again, with owners", ownersForgotten},
	{"many owners of a URL", ownersMany},
}

// owned is the metadata of five owners.
var owned = []string{
	``,
	`{"appid":["A"],"x":["y"]}`,
	`{"appid":["B"]}`,
	`{"appid":["A"],"spiderid":["s"]}`,
	`{"spiderid":["s"]}`,
}

func ownedBy(metadata string) docindex.Put {
	return docindex.Put{URL: []byte("http://a.test/"), Crawl: []byte("c"), Metadata: []byte(metadata)}
}

// wantOwned puts the URL for each owner, as discovered, in reverse order, and compares the
// verdicts.
func wantOwned(t *testing.T, s docindex.Store, when string, want docindex.Verdict) {
	t.Helper()
	var puts []docindex.Put
	for _, one := range slices.Backward(owned) {
		puts = append(puts, ownedBy(one))
	}
	for i, v := range add(t, s, puts...) {
		if v != want {
			t.Errorf("%s: put for %s is answered %v; want %v", when, puts[i].Metadata, v, want)
		}
	}
}

func ownersApart(t *testing.T, s docindex.Store) {
	wantOwned(t, s, "first", docindex.New)
	wantOwned(t, s, "again", docindex.Same)
	if v := add(t, s, ownedBy(`{"appid":["A"],"spiderid":["link"]}`)); v[0] != docindex.Same {
		t.Errorf("the spider that goes without saying is answered %v; want that it is known", v[0])
	}
	other := ownedBy(owned[1])
	other.Crawl = nil
	if v := add(t, s, other); v[0] != docindex.New {
		t.Errorf("another crawl is answered %v; want that it is new", v[0])
	}
	ids := map[string]bool{}
	for len(ids) < len(owned)+1 {
		b := take(t, s, 10)
		if b.Len() == 0 {
			t.Fatalf("%d documents are handed out; want %d", len(ids), len(owned)+1)
		}
		for i := range b.Len() {
			ids[string(b.At(i).DocID)] = true
		}
		wantOwned(t, s, "in transit", docindex.Same)
		end(t, s, b)
		time.Sleep(time.Minute)
	}
	wantStates(t, s, 0, 0, len(ids))
	wantOwned(t, s, "completed", docindex.Same)
	seen := map[string]int{}
	if err := s.List(t.Context(), docindex.Scope{Crawl: []byte("c")}, func(d *docindex.Document) bool {
		seen[string(docindex.OwnerOf(d.Metadata))]++
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for _, one := range owned {
		if n := seen[string(docindex.OwnerOf([]byte(one)))]; n != 1 {
			t.Errorf("%d completed documents of the owner that %s names are listed; want 1: %v", n, one, seen)
		}
	}
}

func ownersCompletedAtOnce(t *testing.T, s docindex.Store) {
	for _, one := range owned {
		p := ownedBy(one)
		p.Due = docindex.Never
		if v := add(t, s, p); v[0] != docindex.New {
			t.Errorf("put for %s is answered %v; want that it is new", one, v[0])
		}
	}
	wantOwned(t, s, "completed at once", docindex.Same)
	wantStates(t, s, 0, 0, len(owned))
	for i, one := range owned[1:] {
		p := ownedBy(one)
		p.Update = true
		if v := add(t, s, p); v[0] != docindex.Changed {
			t.Errorf("news for %s is answered %v; want that it is known", one, v[0])
		}
		wantStates(t, s, i+1, 0, len(owned)-i-1)
	}
	wantOwned(t, s, "scheduled again", docindex.Same)
}

// An update without an owner is of the document that a client has. If there is none, it is of the
// one without an owner, and else of a scheduled one.
func ownersNews(t *testing.T, s docindex.Store) {
	add(t, s, ownedBy(owned[1]), ownedBy(owned[2]))
	served := call(t, s, docindex.Request{PerQueue: 1, Scope: docindex.Scope{Crawl: []byte("c")}, Lease: time.Hour})
	wantURLs(t, served, "http://a.test/")
	wantStates(t, s, 1, 1, 0)
	news := ownedBy("")
	news.Update, news.Due = true, docindex.Never
	for i, want := range []struct{ scheduled, completed int }{{1, 1}, {0, 2}, {0, 2}} {
		if v := add(t, s, news); v[0] != docindex.Changed {
			t.Errorf("%d: news is answered %v; want that the URL is known", i, v[0])
		}
		wantStates(t, s, want.scheduled, 0, want.completed)
	}
	add(t, s, ownedBy(""))
	wantStates(t, s, 1, 0, 2)
	add(t, s, news)
	wantStates(t, s, 0, 0, 3)
}

// An update without an owner leaves the document's owner as it is, whatever metadata it contains.
func ownersKept(t *testing.T, s docindex.Store) {
	for i, one := range owned[1:] {
		p := ownedBy(one)
		p.URL = fmt.Appendf(nil, "http://a.test/%d", i)
		add(t, s, p)
		news := p
		news.Update, news.Due, news.Metadata = true, time.Now().Unix()+5, []byte(`{"z":["1"]}`)
		if v := add(t, s, news); v[0] != docindex.Changed {
			t.Errorf("news of %s is answered %v; want that it is known", one, v[0])
		}
		d, err := s.Find(t.Context(), docindex.Scope{Crawl: p.Crawl, Key: []byte("a.test")}, p.URL)
		m := docindex.DecodeMetadata(d.Metadata)
		own := bytes.Equal(docindex.OwnerOf(d.Metadata), docindex.OwnerOf(p.Metadata))
		if err != nil || !own || len(m["z"]) != 1 || len(m["x"]) != 0 {
			t.Errorf("after news it is %s, %v; want what the news says, and the owner of %s", d.Metadata, err, one)
		}
		p.Metadata = []byte(one)
		if v := add(t, s, p); v[0] != docindex.Same {
			t.Errorf("put again for %s it is answered %v; want that it is known", one, v[0])
		}
	}
	wantStates(t, s, len(owned)-1, 0, 0)
}

func ownersForgotten(t *testing.T, s docindex.Store) {
	queue := docindex.Scope{Crawl: []byte("c"), Key: []byte("a.test")}
	for _, forget := range []func() (int, error){
		func() (int, error) { return s.Purge(t.Context(), queue, time.Now().Add(time.Hour)) },
		func() (int, error) { return s.Delete(t.Context(), queue) },
	} {
		wantOwned(t, s, "put", docindex.New)
		if n, err := forget(); err != nil || n != len(owned) {
			t.Errorf("%d are forgotten, %v; want %d", n, err, len(owned))
		}
		if _, err := s.Find(t.Context(), queue, []byte("http://a.test/")); err == nil {
			t.Error("it is found when it was forgotten")
		}
		news := ownedBy("")
		news.Update, news.Due = true, docindex.Never
		if v := add(t, s, news); v[0] != docindex.New {
			t.Errorf("news of what was forgotten is answered %v; want that it is new", v[0])
		}
		if _, err := s.Purge(t.Context(), queue, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

func ownersMany(t *testing.T, s docindex.Store) {
	const n = 300
	var puts []docindex.Put
	for i := range n {
		puts = append(puts, ownedBy(fmt.Sprintf(`{"appid":["app %d"],"spiderid":["%d"]}`, i/3, i%3)))
	}
	for _, want := range []docindex.Verdict{docindex.New, docindex.Same} {
		for i, v := range add(t, s, puts...) {
			if v != want {
				t.Fatalf("put %d is answered %v; want %v", i, v, want)
			}
		}
	}
	wantStates(t, s, n, 0, 0)
}
