package scoped_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/export"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
)

// imported is a store as an import fills it.
type imported struct{ *scoped.Store }

func (i imported) SetCrawlSettings(ctx context.Context, id string, text []byte) error {
	return i.TakeSettings(ctx, id, text)
}

// An export has the scopes of crawls. An import takes all that it has, loses nothing that is not in
// scope any more, and sends none of that.
func TestDump(t *testing.T) {
	from := scoped.New(memory.New())
	put(t, from, of("c", "http://a.test/", "http://a.test/x", "http://b.test/")...)
	put(t, from, of("ended", "http://a.test/")...)
	put(t, from, of("", "http://a.test/")...)
	const narrow, over = `{"domains":["a.test"],"deny":["x"],"max_pages":1}`, `{"until":"2001-02-03T04:05:06Z"}`
	set(t, from, "c", narrow)
	set(t, from, "ended", over)
	if err := from.SetCrawl(t.Context(), "c", scoped.Change{Weight: 4}); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := export.Write(t.Context(), from, &text); err != nil {
		t.Fatal(err)
	}
	onStores(t, func(t *testing.T, to *scoped.Store) {
		for _, want := range []int{5, 0} { // the second time all is known
			res, err := export.Read(t.Context(), imported{to}, bytes.NewReader(text.Bytes()))
			if err != nil || res.Invalid > 0 || res.New != want {
				t.Fatalf("%+v, %v; want %d new", res, err, want)
			}
		}
		if i, err := to.Crawl(t.Context(), "c"); err != nil || i.Weight != 4 || i.Scope.MaxPages != 1 ||
			!slices.Equal(i.Scope.Deny, []string{"x"}) || i.Scheduled != 3 {
			t.Errorf("%+v, %v; want the scope, the weight, and three documents", i, err)
		}
		if v, _ := put(t, to, of("c", "http://a.test/2")...); v[0] != docindex.Outside {
			t.Errorf("put beyond max_pages: %v", v[0])
		}
		sent, ended := take(t, to)
		if !slices.Equal(sent, []string{"http://a.test/", "http://a.test/"}) || len(ended) != 3 {
			t.Errorf("sent %q, ended %q; want two sent", sent, ended)
		}
		set(t, to, "mine", `{"deny":["y"]}`)
		line := `{"set":"crawl","crawlID":"mine","settings":{"scope":{"deny":["z"]}}}`
		bad := "\n" + `{"set":"crawl","crawlID":"bad","settings":{"scope":{"deny":["("]}}}`
		res, err := export.Read(t.Context(), imported{to}, bytes.NewReader([]byte(line+bad)))
		if err != nil || res.Invalid != 1 {
			t.Errorf("%+v, %v; want one line refused", res, err)
		}
		if i, err := to.Crawl(t.Context(), "mine"); err != nil || !slices.Equal(i.Scope.Deny, []string{"y"}) {
			t.Errorf("a crawl that has a scope gets another: %+v, %v", i.Scope, err)
		}
		if _, err := to.Crawl(t.Context(), "bad"); err == nil {
			t.Error("a crawl with a bad scope is there")
		}
	})
}

// TestDumpOfAStoppedCrawl: what is scheduled in a dump is dropped if its crawl ID was stopped, as what is
// put for it. What is completed is taken, so that it stays known.
func TestDumpOfAStoppedCrawl(t *testing.T) {
	const text = `{"set":"crawl","crawlID":"c","settings":{"stopped":true}}
{"known":{"info":{"url":"http://a.test/1","crawlID":"c"},"refetchableFromDate":"1"}}
{"known":{"info":{"url":"http://a.test/2","crawlID":"c"},"refetchableFromDate":"0"}}
{"known":{"info":{"url":"http://a.test/1","crawlID":"other"},"refetchableFromDate":"1"}}
`
	onStores(t, func(t *testing.T, s *scoped.Store) {
		res, err := export.Read(t.Context(), imported{s}, strings.NewReader(text))
		if err != nil || res.New != 2 || res.Dropped != 1 || res.Known != 0 || res.Invalid != 0 {
			t.Errorf("%+v, %v; want two new and one dropped", res, err)
		}
		if i, err := s.Crawl(t.Context(), "c"); err != nil || i.Dropped != 1 || i.Completed != 1 || i.Scheduled != 0 {
			t.Errorf("%+v, %v; want one dropped and one completed", i, err)
		}
		if sent, ended := take(t, s); !slices.Equal(sent, []string{"http://a.test/1"}) || len(ended) != 0 {
			t.Errorf("sent %q, ended %q; want what is of the other crawl", sent, ended)
		}
	})
}
