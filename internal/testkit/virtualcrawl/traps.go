package virtualcrawl

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// Honest returns the link of a page of an honest site. It is to one of two kinds of pages.
func (c *Crawl) Honest(url string) string {
	c.events++
	return fmt.Sprintf("http://%s/%c/%d", docindex.HostOf([]byte(url)), "ab"[c.events%2], c.events)
}

// Next returns a number that no other call returns.
func (c *Crawl) Next() int {
	c.events++
	return c.events
}

func site(i int) string { return fmt.Sprintf("http://www.site-%d.example/", i) }

// PutSites puts so many links of each site.
func (c *Crawl) PutSites(sites, links int, link func(url string) string) {
	for range links {
		for i := range sites {
			c.Put("", link(site(i)))
		}
	}
}

// Names is a crawl of honest sites beside a domain that generates names.
type Names struct {
	Sites int
	Links int // of each page to generated names, beside one to a page of its own site
	Most  int // names; then pages link to the first ones again
	Span  time.Duration
	Slots int
	Pace  float64 // requests a second to each host
	// Budget and Leftover are those of the settings.
	Budget, Leftover int
}

// SmallNames has few slots, a small budget, and room for a small part of the names.
func SmallNames(sites int, span time.Duration) Names {
	return Names{Sites: sites, Links: 5, Most: 1_000_000, Span: span, Slots: 16, Pace: 1, Budget: 10,
		Leftover: 10 * sites}
}

// FullNames is a million names, to which 99 of 100 links lead.
func FullNames(span time.Duration) Names {
	n := SmallNames(1000, span)
	n.Links = 99
	return n
}

// honestPages runs a crawl and returns how many pages of honest sites it brings. With a trap each page
// links to names that are generated in its domain.
func (r Rig) honestPages(t *testing.T, n Names, trap string) (pages int) {
	synctest.Test(t, func(t *testing.T) {
		c := r.New(t, func(c *configs.Config) {
			c.QueueCount, c.ReqHostPerSec, c.Crawl.Budget, c.Leftover.Max = n.Slots, n.Pace, n.Budget, n.Leftover
		})
		name := 0
		c.Address = func(host string) string {
			if strings.HasSuffix(host, ".wild.example") {
				return "wild.example"
			}
			return host
		}
		c.Links = func(url string) (urls []string) {
			if strings.Contains(url, ".site-") {
				urls = []string{c.Honest(url)}
			}
			for range n.Links * min(1, len(trap)) {
				urls = append(urls, fmt.Sprintf("http://n%d.%s.example/", name%n.Most, trap))
				name++
			}
			return urls
		}
		c.PutSites(n.Sites, 3, c.Honest)
		c.Run(n.Span)
		all := 0
		for domain, n := range c.Pages {
			if all += n; strings.HasPrefix(domain, "site-") {
				pages += n
			}
		}
		t.Logf("%d pages, %d of honest sites; %d names", all, pages, min(name, n.Most))
	})
	return pages
}

// GeneratedNames: a domain that generates host names does not fill the slots or leftover while
// other sites have links that are due: these are fetched as they are without it.
func (r Rig) GeneratedNames(t *testing.T, n Names) {
	alone := r.honestPages(t, n, "")
	for _, zone := range []string{"trap", "wild"} { // each name has an address of its own, or all have one
		t.Run(zone, func(t *testing.T) {
			if beside := r.honestPages(t, n, zone); beside < alone*95/100 {
				t.Errorf("%d pages of honest sites beside a domain of generated names; want 95 %% of %d",
					beside, alone)
			}
		})
	}
}

// Tarpit: a tarpit, each page of which links to others of its own, beside it or one folder
// deeper, gets at most one in a hundred requests beside sites of the same pace, although the
// slots have room for all.
func (r Rig) Tarpit(t *testing.T, sites int, d time.Duration, form string) {
	synctest.Test(t, func(t *testing.T) {
		c := r.New(t, func(c *configs.Config) { c.ReqHostPerSec, c.QueueCount = 0.25, 4096 })
		c.Links = func(url string) (urls []string) {
			if strings.Contains(url, ".site-") {
				return []string{c.Honest(url), c.Honest(url)}
			}
			for i := range 5 {
				urls = append(urls, fmt.Sprintf(form, url, i))
			}
			return urls
		}
		c.PutSites(sites, 10, c.Honest)
		c.Put("", "http://www.pit.example/a")
		c.Run(d)
		all := 0
		for _, n := range c.Pages {
			all += n
		}
		pit := c.Pages["pit.example"]
		t.Logf("%d of %d requests are for the tarpit: %.2f %%", pit, all, 100*float64(pit)/float64(all))
		if pit*100 > all || pit == 0 {
			t.Errorf("%d of %d requests are for the tarpit; want 1 %% at most", pit, all)
		}
	})
}
