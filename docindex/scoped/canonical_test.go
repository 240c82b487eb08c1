package scoped_test

import (
	"slices"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/scoped"
	"urlserver/internal/canonical"
)

var utm = canonical.Rule{Hosts: []string{"a.test", "*.a.test"}, Drop: []string{"utm_*"}}

// URLs that differ in parameters that do not count are one document, in whatever order and calls
// they come. It is fetched by the URL that was put first.
func TestCanonical(t *testing.T) {
	const n, k = docindex.New, docindex.Same
	onStores(t, func(t *testing.T, s *scoped.Store) {
		for _, c := range []struct {
			urls []string
			want []docindex.Verdict
		}{
			{[]string{"http://a.test/?x=1", "http://a.test/?utm_a=1&x=1", "http://a.test/?x=1&utm_b=2"},
				[]docindex.Verdict{n, k, k}},
			{[]string{"http://a.test/?x=1&utm_c=3", "http://a.test/?x=1"}, []docindex.Verdict{k, k}},
			{[]string{"http://www.a.test/?utm_a=1"}, []docindex.Verdict{n}},
			{[]string{"http://www.a.test/", "http://www.a.test/?utm_a=2"}, []docindex.Verdict{k, k}},
			{[]string{"http://b.test/?utm_a=1", "http://b.test/"}, []docindex.Verdict{n, n}},
		} {
			if got, _ := put(t, s, of("", c.urls...)...); !slices.Equal(got, c.want) {
				t.Errorf("%q: %v; want %v", c.urls, got, c.want)
			}
		}
		one := of("another", "http://a.test/?x=1")[0]
		owned := of("", "http://a.test/?x=1&utm_a=1")[0]
		owned.Metadata = []byte(`{"spiderid":["s"]}`)
		named := of("", "http://a.test/?x=1")[0]
		named.Unique = []byte("a name of its own")
		if got, _ := put(t, s, one, owned, named); !slices.Equal(got, []docindex.Verdict{n, n, n}) {
			t.Errorf("another crawl, owner and unique: %v", got)
		}
		named.URL = []byte("http://a.test/?x=1&utm_d=1")
		named.Unique = []byte("http://a.test/?x=1")
		if got, _ := put(t, s, named); got[0] != k {
			t.Errorf("the unique that it has, said by the client: %v", got)
		}
		want := []string{"http://a.test/?x=1", "http://a.test/?x=1", "http://a.test/?x=1",
			"http://a.test/?x=1&utm_a=1", "http://b.test/", "http://b.test/?utm_a=1",
			"http://www.a.test/?utm_a=1"}
		if urls, _ := take(t, s); !slices.Equal(urls, want) {
			t.Errorf("fetched: %q\nwant %q", urls, want)
		}
	}, utm)
}

// News of a document are of the one that has the URL or is known by the same, whether or not they
// say its owner.
func TestCanonicalUpdate(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		plain := of("", "http://a.test/1?utm_a=1")[0]
		owned := of("", "http://a.test/2?utm_a=1")[0]
		owned.Metadata = []byte(`{"spiderid":["s"]}`)
		put(t, s, plain, owned)
		for _, c := range []struct{ url, metadata string }{
			{"http://a.test/1?utm_a=1", ""}, {"http://a.test/1", ""}, {"http://a.test/2?utm_a=1", ""},
			{"http://a.test/2", `{"spiderid":["s"]}`},
		} {
			news := docindex.Put{URL: []byte(c.url), Metadata: []byte(c.metadata), Update: true, Due: docindex.Never}
			put(t, s, news)
			n, err := s.Count(t.Context(), &docindex.Scope{})
			if all := n.Scheduled + n.InTransit + n.Completed; err != nil || all != 2 {
				t.Errorf("after news of %s %s there are %d documents, %v", c.url, c.metadata, all, err)
			}
		}
		if urls, _ := take(t, s); len(urls) > 0 {
			t.Errorf("fetched though it is completed: %q", urls)
		}
	}, utm)
}

// Without rules a URL is known by its own text.
func TestNoCanonical(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		_, res := put(t, s, of("", "http://a.test/", "http://a.test/?utm_a=1")...)
		if res.New != 2 {
			t.Errorf("%d new", res.New)
		}
	})
}
