package indextest

import (
	"fmt"
	"maps"
	"testing"

	"urlserver/docindex"
)

// CrawlSettings returns all settings of crawls, by crawl ID, and their version.
func CrawlSettings(t *testing.T, s docindex.Store) (all map[string]string, version uint64) {
	t.Helper()
	all = map[string]string{}
	version, err := s.CrawlSettings(t.Context(), 0, func(crawl string, text []byte) { all[crawl] = string(text) })
	if err != nil || version == 0 {
		t.Fatalf("settings of crawls have version %d, %v", version, err)
	}
	return all, version
}

// SetCrawlSettings sets the settings of a crawl.
func SetCrawlSettings(t *testing.T, s docindex.Store, crawl, text string) {
	t.Helper()
	if err := s.SetCrawlSettings(t.Context(), crawl, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func crawlSettings(t *testing.T, s docindex.Store) {
	want := map[string]string{}
	last := uint64(0)
	for i, set := range [][2]string{
		{"c", "{}"}, {"", "default"}, {"version", "v"}, {"é \x00\"", "a\x00\xff"}, {"c", "other"}, {"", ""},
		{"never set", ""},
	} {
		SetCrawlSettings(t, s, set[0], set[1])
		if want[set[0]] = set[1]; set[1] == "" {
			delete(want, set[0])
		}
		got, version := CrawlSettings(t, s)
		if !maps.Equal(got, want) || i > 0 && version != last+1 {
			t.Fatalf("after %q: %q of version %d; want %q, and one more than version %d", set, got, version, want, last)
		}
		if last = version; i > 0 {
			continue
		}
		again, err := s.CrawlSettings(t.Context(), version, func(crawl string, _ []byte) {
			t.Errorf("crawl %s is visited again", crawl)
		})
		if err != nil || again != version {
			t.Errorf("unchanged settings have version %d, %v; want %d", again, err, version)
		}
	}
	for i := range 2500 { // more than one portion
		crawl := fmt.Sprint(i)
		want[crawl] = "x" + crawl
		SetCrawlSettings(t, s, crawl, want[crawl])
	}
	if got, _ := CrawlSettings(t, s); !maps.Equal(got, want) {
		t.Errorf("%d settings; want %d", len(got), len(want))
	}
}
