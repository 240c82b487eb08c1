package scoped

import (
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

func TestPlaces(t *testing.T) {
	indextest.Places(t, func(*testing.T) (a, b docindex.PageCounter, pass func(time.Duration)) {
		one := newPlaces()
		return one, one, nil
	})
}

// TestPlacesOfDeletedCrawl settles a place of a crawl that was deleted meanwhile: nothing is left of it.
func TestPlacesOfDeletedCrawl(t *testing.T) {
	p := newPlaces()
	got, err := p.TakePages(t.Context(), "c", []string{"a.test"}, 10, 0)
	if err != nil || !got.Uncounted {
		t.Fatal(got, err)
	}
	if err := p.CountPages(t.Context(), "c", got.Epoch, 1, nil); err != nil {
		t.Fatal(err)
	}
	if got, err = p.TakePages(t.Context(), "c", []string{"a.test"}, 10, 0); err != nil || got.ID == "" {
		t.Fatal(got, err)
	}
	if err := p.ForgetPages(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if err := p.SettlePages(t.Context(), "c", got.ID, nil, []string{"a.test"}); err != nil || len(p.crawls) != 0 {
		t.Errorf("%d crawls are known, %v; want none", len(p.crawls), err)
	}
}
