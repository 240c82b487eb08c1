package httpapi

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The panel shows the crawls of the API, also after changes, and stops a crawl after a
// confirmation.
func TestDashboardCrawls(t *testing.T) {
	r := newCrawl(t, setup{})
	r.control()
	r.submit("app", "small", "http://127.0.4.1/1", "http://127.0.4.2/1")
	for n := range 5 {
		r.submit("app", "large", fmt.Sprintf("http://127.0.5.1/%d", n))
	}
	r.submit("other", "large", "http://127.0.5.2/1")
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#state", "Ready")
	if n := js[int](b,
		"performance.getEntriesByType('resource').filter((e) => e.name.includes('/api/crawls')).length"); n != 0 {
		t.Errorf("the list is asked for %d times while nobody sees it", n)
	}
	b.see("#crawls")
	b.until("document.querySelectorAll('#t-crawls tbody tr').length === 3")
	b.shows("#t-crawls tbody tr", "largeapplinkrunning")
	b.shows("#n-crawls", "3")
	b.click("#t-crawls tbody button[aria-label='About crawl large of app']")
	b.shows("#crawl-info", "127.0.5.1")
	b.shows("#crawl-info", "priorities")
	b.accessible("crawls")

	b.fill("#crawl", "other"+kb.Enter)
	b.until("document.querySelectorAll('#t-crawls tbody tr').length === 1")
	b.fill("#crawl", "no such"+kb.Enter)
	b.shows("#t-crawls", "None has this in its name.")
	js[bool](b, "(document.getElementById('crawl').value = '', true)")
	b.click("#seek button")
	b.until("document.querySelectorAll('#t-crawls tbody tr').length === 3")

	r.submit("app", "young", "http://127.0.6.1/1") // shown without a click
	b.until("document.querySelectorAll('#t-crawls tbody tr').length === 4")

	const halt = "#t-crawls tbody button[aria-label='Stop crawl large of app']"
	b.click(halt)
	b.until("document.getElementById('stop-crawl').open")
	b.accessible("question about a crawl")
	in(b, chromedp.KeyEvent(kb.Enter)) // the focused element keeps the focus
	b.until("!document.getElementById('stop-crawl').open")
	if got := r.crawlState("large", "app"); got != "running" {
		t.Errorf("the crawl is %s before its end was confirmed", got)
	}
	b.keepToasts()
	b.click(halt)
	b.click("#stop-crawl button[value=stop]")
	b.toasted("is stopped")
	b.until("[...document.querySelectorAll('#t-crawls tbody tr')].some((r) => " +
		"r.textContent.startsWith('largeapplinkstopped'))")
	b.until("!document.querySelector(%q)?.checkVisibility()", halt)
	if got := r.crawlState("large", "app"); got != "stopped" {
		t.Errorf("the crawl is %s", got)
	}
	if got := r.crawlState("large", "other"); got != "running" {
		t.Errorf("the other application's crawl is %s", got)
	}
	b.shows("#crawl-info", "0 pending")
}

// see scrolls to an element.
func (b *browser) see(selector string) {
	b.t.Helper()
	js[bool](b, "(document.querySelector(%q).scrollIntoView(), true)", selector)
}

func (r *rig) crawlState(crawl, app string) string {
	r.t.Helper()
	some, _, err := r.store.ListCrawls(r.t.Context(), crawl, 10)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range some {
		if some[i].App == app {
			return crawlRowOf(&some[i]).State
		}
	}
	return "not there"
}

// Without a list of crawls, the panel says so.
func TestDashboardWithoutCrawls(t *testing.T) {
	r := newCrawl(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	b.see("#crawls")
	b.shows("#crawls-note", "lists no crawls")
}
