package spider

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// indexOf is a sitemap index with some sitemaps.
func indexOf(sitemaps ...string) []byte {
	return []byte("<sitemapindex><sitemap><loc>" + strings.Join(sitemaps, "</loc></sitemap><sitemap><loc>") +
		"</loc></sitemap></sitemapindex>")
}

// A chain of a million indexes, each of which names the next one among others, ends soon.
func TestNestedIndexes(t *testing.T) {
	for _, others := range []int{0, 1000} {
		n := newNesting()
		for i := range 1_000_000 {
			list := []string{fmt.Sprintf("http://a.test/%d", i+1)}
			for k := range others {
				list = append(list, fmt.Sprintf("http://a.test/%d-%d", i, k))
			}
			found := linksOf(sitemapAnswer(t, "text/xml", indexOf(list...)), "bot")
			n.limit(fmt.Appendf(nil, "http://a.test/%d", i), &found)
			if i < maxNesting && (found.fault != nil || len(found.urls) != 1+others) {
				t.Fatalf("index %d has %d sitemaps, %v", i, len(found.urls), found.fault)
			}
			if len(found.urls) > 0 {
				continue
			}
			if !errors.Is(found.fault, errSitemapNested) || others == 0 && i != maxNesting {
				t.Errorf("index %d ends with %v; want that number %d is below too many", i, found.fault, maxNesting)
			}
			if i > 10*maxNesting {
				t.Errorf("with %d others index %d is read", others, i)
			}
			break
		}
		found := linksOf(sitemapAnswer(t, "text/xml", indexOf("http://b.test/1")), "bot")
		if n.limit([]byte("http://b.test/"), &found); len(found.urls) != 1 {
			t.Error("another index is taken for one of the chain")
		}
	}
}
