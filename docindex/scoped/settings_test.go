package scoped_test

import (
	"context"
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
)

// visited is a store that counts the settings of crawls that are read.
type visited struct {
	docindex.Store
	settings int
}

func (v *visited) CrawlSettings(
	ctx context.Context, since uint64, visit func(crawl string, text []byte),
) (version uint64, err error) {
	return v.Store.CrawlSettings(ctx, since, func(crawl string, text []byte) {
		v.settings++
		visit(crawl, text)
	})
}

// TestChangesReadNothing changes the settings of one crawl after the other: no change reads those of all
// crawls, however many there are, except after somebody else's change.
func TestChangesReadNothing(t *testing.T) {
	v := &visited{Store: memory.New()}
	s := scoped.New(v)
	const crawls = 50
	for i := range crawls {
		err := s.Widen(t.Context(), fmt.Sprint(i), func(scope.Scope, bool) (scope.Scope, error) {
			return scope.Scope{Domains: []string{"a.test"}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if v.settings != 0 {
		t.Errorf("%d settings were read for %d changes; want none", v.settings, crawls)
	}
	if err := v.SetCrawlSettings(t.Context(), "0", []byte(`{"scope":{"domains":["b.test"]}}`)); err != nil {
		t.Fatal(err)
	}
	set(t, s, "new", `{"max_depth":3}`)
	if v.settings != crawls {
		t.Errorf("%d settings were read after somebody else's change; want %d", v.settings, crawls)
	}
	if verdicts, _ := put(t, s, of("0", "http://a.test/", "http://b.test/")...); verdicts[0] != docindex.Outside ||
		verdicts[1] != docindex.New {
		t.Errorf("verdicts are %v; want those of somebody else's scope", verdicts)
	}
}
