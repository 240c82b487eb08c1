package redis

import (
	"errors"
	"maps"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

// TestUncountedSettings: a change of a crawl's settings that cannot be counted is none.
func TestUncountedSettings(t *testing.T) {
	s := openStore(t, nil, redistest.Start(t).Addr())
	indextest.SetCrawlSettings(t, s, "c", "old")
	c := reach(t, s)
	err := c.Do(t.Context(), c.B().Hset().Key("{u0}:settings").FieldValue().FieldValue("version", "x").Build()).Error()
	if err != nil {
		t.Fatal(err)
	}
	for _, crawl := range []string{"c", "new"} {
		err = s.SetCrawlSettings(t.Context(), crawl, []byte("new"))
		if got, _ := indextest.CrawlSettings(t, s); err == nil || !maps.Equal(got, map[string]string{"c": "old"}) {
			t.Errorf("settings are %q, %v after a change of %s that was not counted; want old ones", got, err, crawl)
		}
	}
}

// TestFullSettings: where the most crawls have settings, those of another one are refused, and change nothing;
// those that are there may be changed and removed.
func TestFullSettings(t *testing.T) {
	s := openStore(t, nil, redistest.Start(t).Addr())
	want, last := map[string]string{}, uint64(0)
	for i, set := range []struct {
		crawl, text string
		refused     bool
	}{
		{"a", "1", false}, {"", "1", false}, {"b", "1", true}, {"a", "2", false}, {"", "2", false}, {"b", "", false},
		{"a", "", false}, {"b", "1", false}, {"a", "3", true},
	} {
		err := s.setCrawlSettings(t.Context(), set.crawl, []byte(set.text), 2)
		if set.refused != errors.Is(err, docindex.ErrTooManyCrawls) || !set.refused && err != nil {
			t.Fatalf("change %d: %v; want it refused: %v", i, err, set.refused)
		}
		if !set.refused {
			if want[set.crawl] = set.text; set.text == "" {
				delete(want, set.crawl)
			}
			last++
		}
		if got, version := indextest.CrawlSettings(t, s); !maps.Equal(got, want) || version != last+1 {
			t.Fatalf("after change %d: %q of version %d; want %q of version %d", i, got, version, want, last+1)
		}
	}
}
