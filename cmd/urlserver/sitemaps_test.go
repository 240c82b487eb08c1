package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSitemapsOfRobots: the sitemaps that a robots.txt names are told, and with robots.sitemaps they
// are fetched in the scope of the crawl.
func TestSitemapsOfRobots(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		depth          string
		want           []string // paths
		refused        []string // rules of the scope
	}{
		{name: "put", settings: "robots.sitemaps = true", depth: "1", want: []string{"/", "/map.xml"},
			refused: []string{"domain"}},
		{name: "a link too deep", settings: "robots.sitemaps = true", depth: "0", want: []string{"/"},
			refused: []string{"depth"}},
		{name: "told only", settings: "robots.sitemaps = false", depth: "1", want: []string{"/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string][]string{"index.html": nil, "map.xml": nil})
			m := startMirror(t, dir)
			inside, outside := m.on(0, "/map.xml")[0], "http://127.0.0.3:1/map.xml"
			file := "Sitemap: " + inside + "\nSitemap: " + outside + "\n"
			if err := os.WriteFile(filepath.Join(dir, "robots.txt"), []byte(file), 0o644); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(settings(t, ""))
			if err != nil {
				t.Fatal(err)
			}
			d := startDaemon(t, write(t, "sitemaps.toml",
				strings.Replace(string(text), "robots.enabled = false", c.settings, 1)))
			referenceSpider(t, d)
			command(t, m.on(0, "/")[0], "put", "--at", d.at, "--same-site", "--depth", c.depth, "--crawl", "maps",
				"-").want(t, 0, `"new":1`, "")
			n := crawled(t, d, "maps", len(c.want))
			if got, want := m.pages("reference"), m.on(0, c.want...); !slices.Equal(got, want) {
				t.Errorf("the spider asked %q; want %q", got, want)
			}
			for _, rule := range c.refused {
				for late := time.Now().Add(patience); n.Rules[rule] == 0; n = crawled(t, d, "maps", len(c.want)) {
					if time.Now().After(late) {
						t.Fatalf("%+v; want that the scope refuses one by %s", n, rule)
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
			if _, got := d.ask(http.MethodGet, "/api/hosts/127.0.0.2", ""); !strings.Contains(got,
				`"sitemaps":["`+inside+`","`+outside+`"]`) {
				t.Errorf("/api/hosts: %s; want the sitemaps", got)
			}
			command(t, "", "explain", "127.0.0.2", "--at", d.at).want(t, 0,
				"\nsitemap     "+inside+"\nsitemap     "+outside+"\n", "")
		})
	}
}
