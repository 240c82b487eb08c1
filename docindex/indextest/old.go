package indextest

import (
	"fmt"
	"slices"
	"testing"

	"urlserver/docindex"
)

// RunOld tests a store that was filled before documents were distinguished by owners (see
// [docindex.OwnerOf]). The store must find all its documents by their owners. It contains:
//
//   - crawl c: http://a.example/plain without an owner; app and id of the appid A, id with the DOC_ID
//     given1; spider of the spiderid s1. For each of them there is a completed one, such as
//     plain-done; id-done has the DOC_ID given2.
//   - A's crawl s, which was stopped: http://a.example/stopped and stopped-done.
//   - crawl l: http://b.example/app-leased, of A, and plain-leased. A client has leased both.
func RunOld(t *testing.T, s docindex.Store) {
	const app, spider = `{"appid":["A"],"depth":["2"]}`, `{"spiderid":["s1"]}`
	of := func(url, metadata string) docindex.Put {
		return docindex.Put{URL: []byte("http://a.example/" + url), Crawl: []byte("c"), Metadata: []byte(metadata)}
	}
	before := s.Stats()
	if before.Scheduled != 4 || before.InTransit != 2 || before.Completed != 6 {
		t.Errorf("it has %+v; want 4 scheduled, 2 in transit, 6 completed", before)
	}
	leased(t, s)
	for round, want := range []docindex.Verdict{docindex.New, docindex.Same} {
		for url, by := range map[string]string{
			"plain": "", "plain-done": "", "app": app, "app-done": app, "id": app, "id-done": app,
			"spider": spider, "spider-done": spider,
		} {
			if v := add(t, s, of(url, by)); v[0] != docindex.Same {
				t.Errorf("%d: %s is answered %v to its owner; want that it is known", round, url, v[0])
			}
		}
		for _, p := range []docindex.Put{
			of("plain", app), of("plain-done", app), of("app", ""), of("app-done", ""),
			of("app", `{"appid":["B"]}`), of("app-done", `{"appid":["B"]}`),
			of("app-done", `{"appid":["A"],"spiderid":["s1"]}`), of("id", spider), of("spider", ""),
			of("spider", `{"spiderid":["s2"]}`), of("spider", app),
		} {
			if v := add(t, s, p); v[0] != want {
				t.Errorf("%d: %s is answered %v to the owner that %s names; want %v", round, p.URL, v[0],
					p.Metadata, want)
			}
		}
	}
	for url, id := range map[string]string{"id": "given1", "id-done": "given2"} {
		p := of(url, app)
		p.DocID = []byte(id)
		if v := add(t, s, p); v[0] != docindex.Same {
			t.Errorf("%s is answered %v with its DOC_ID; want that it is known", url, v[0])
		}
		p.Metadata = []byte(`{"appid":["B"]}`)
		if v := add(t, s, p); v[0] != docindex.Refused {
			t.Errorf("%s of another owner is answered %v with its DOC_ID; want that it is refused", url, v[0])
		}
	}
	if v := add(t, s, docindex.Put{URL: []byte("http://a.example/new"), Crawl: []byte("s"),
		Metadata: []byte(app)}); v[0] != docindex.Dropped {
		t.Errorf("a URL of the stopped crawl is answered %v; want that it is dropped", v[0])
	}
	endAll(t, s)
}

// leased reports the leased documents as completed. The client's reports name no owner.
func leased(t *testing.T, s docindex.Store) {
	for _, url := range []string{"http://b.example/app-leased", "http://b.example/plain-leased"} {
		d, err := s.Find(t.Context(), docindex.Scope{Crawl: []byte("l"), Key: []byte("b.example")}, []byte(url))
		if err != nil || d.State != docindex.InTransit {
			t.Errorf("%s is %v, %v; want it in transit", url, d.State, err)
		}
		news := docindex.Put{URL: []byte(url), Crawl: []byte("l"), Update: true, Due: docindex.Never}
		if v := add(t, s, news); v[0] != docindex.Changed {
			t.Errorf("news of %s is answered %v; want that it is known", url, v[0])
		}
	}
	wantStates(t, s, 4, 0, 8)
}

// endAll takes all scheduled documents and ends them.
func endAll(t *testing.T, s docindex.Store) {
	var urls []string
	for {
		b := take(t, s, 100)
		if b.Len() == 0 {
			break
		}
		urls = append(urls, texts(b)...)
		end(t, s, b)
	}
	slices.Sort(urls)
	if got, want := fmt.Sprint(len(urls)), "15"; got != want {
		t.Errorf("%s documents are handed out, %q; want %s", got, urls, want)
	}
	wantStates(t, s, 0, 0, 23)
}
