package engine

import (
	"fmt"
	"slices"
	"testing"

	"urlserver/configs"
	"urlserver/internal/robots"
)

// TestSitemapsArePut: the sitemaps of a robots.txt are put as links of the document that waits for
// it first, if the settings say so, and the index takes them.
func TestSitemapsArePut(t *testing.T) {
	const file = "User-agent: *\nDisallow: /x\nSitemap: http://b.test/1\nSitemap: http://a.example/2\n"
	maps := []string{"http://b.test/1", "http://a.example/2"}
	for _, c := range []struct {
		name     string
		on       bool
		embedded bool
		status   int
		redirect bool
		told     []string
		want     []string // DOC_ID and URL of each put
	}{
		{name: "put", on: true, embedded: true, status: 200, told: maps,
			want: []string{"0 http://b.test/1", "0 http://a.example/2"}},
		{name: "after a redirect", on: true, embedded: true, status: 200, redirect: true, told: maps,
			want: []string{"0 http://b.test/1", "0 http://a.example/2"}},
		{name: "off", embedded: true, status: 200, told: maps},
		{name: "an index elsewhere", on: true, status: 200, told: maps},
		{name: "no file", on: true, embedded: true, status: 404},
		{name: "an error", on: true, embedded: true, status: 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := paced(2, func(cfg *configs.Config) { cfg.Robots.Enabled, cfg.Robots.Sitemaps = true, c.on })
			e.opt.Exact = c.embedded
			e.Connected("spider")
			now := 10 * second
			stepAt(e, now)
			if c.redirect {
				e.Fetched(e.Out.Fetches[0].ID, robots.Response{Status: 301, Location: "http://b.test/r"})
				now += 10 * second
				stepAt(e, now)
			}
			e.Fetched(e.Out.Fetches[len(e.Out.Fetches)-1].ID, robots.Response{Status: c.status, Body: []byte(file)})
			var got []string
			for i := range e.Out.Sitemaps.Len() {
				o := e.Out.Sitemaps.At(i)
				got = append(got, fmt.Sprintf("%s %s", o.DocID, o.Location))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("put %q; want %q", got, c.want)
			}
			if x, _ := e.Explain([]byte("a.example")); !slices.Equal(x.Sitemaps, c.told) {
				t.Errorf("told %q; want %q", x.Sitemaps, c.told)
			}
		})
	}
}
