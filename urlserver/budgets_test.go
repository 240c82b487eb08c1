package urlserver

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
	"urlserver/internal/testkit/virtualcrawl"
)

const honestSites = 50

var crawlInMemory = virtualcrawl.Rig{
	Open: func(*testing.T) docindex.Store { return memory.New() }, Ahead: ahead,
}

var crawlOnDisk = virtualcrawl.Rig{
	Open: func(t *testing.T) docindex.Store {
		s, err := disk.Open(disk.Config{Path: t.TempDir(), Sync: disk.None})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	},
	Ahead: ahead,
}

func TestGeneratedNames(t *testing.T) {
	crawlInMemory.GeneratedNames(t, virtualcrawl.SmallNames(honestSites, 5*time.Minute))
}

// TestMillionGeneratedNames crawls for five minutes with the index in memory, in which all names come up,
// and for one on disk; for an hour with URLSERVER_LONG.
func TestMillionGeneratedNames(t *testing.T) {
	inMemory, onDisk := 5*time.Minute, time.Minute
	switch {
	case os.Getenv("URLSERVER_LONG") != "":
		inMemory, onDisk = time.Hour, time.Hour
	case testing.Short():
		inMemory = time.Minute
	}
	t.Run("memory", func(t *testing.T) { crawlInMemory.GeneratedNames(t, virtualcrawl.FullNames(inMemory)) })
	t.Run("disk", func(t *testing.T) { crawlOnDisk.GeneratedNames(t, virtualcrawl.FullNames(onDisk)) })
}

func TestTarpitBesideHonestSites(t *testing.T) {
	for _, form := range []string{"%s-%d", "%s/%d"} {
		crawlInMemory.Tarpit(t, honestSites, time.Hour, form)
	}
}

// Sites whose pages bring nothing but their own shape have all the pages that their pace allows, where
// they are half of all sites: a budget compares what domains have with the average.
func TestSitesOfOneShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crawlInMemory.New(t, func(c *configs.Config) { c.QueueCount, c.Crawl.Budget = 4096, 50 })
		link := func(url string) string {
			var site int
			if fmt.Sscanf(url, "http://www.site-%d.", &site); site%2 == 0 {
				return c.Honest(url)
			}
			return fmt.Sprintf("http://%s/wiki/%d", docindex.HostOf([]byte(url)), c.Next())
		}
		c.Links = func(url string) []string { return []string{link(url), link(url)} }
		c.PutSites(honestSites, 10, link)
		c.Run(10 * time.Minute)
		for domain, n := range c.Pages {
			if n < 590 {
				t.Errorf("%s has %d pages; want 600, one a second", domain, n)
			}
		}
	})
}
