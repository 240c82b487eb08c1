package httpapi

import (
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// The page shows what is known of a URL, and a button makes it due now: of the crawl and the owner
// that it was put with.
func TestDashboardFetchesAgain(t *testing.T) {
	const url = "http://127.0.4.1/page"
	r := newRig(t, setup{config: func(c *configs.Config) { c.ReqHostPerSec = 0.001 }})
	put := docindex.Put{URL: []byte(url), DocID: []byte("x"), Crawl: []byte("news"),
		Metadata: []byte(`{"appid":["app"]}`), Due: time.Now().Unix() + 100_000}
	var puts docindex.Puts
	if err := puts.Add(put); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Put(t.Context(), &puts); err != nil {
		t.Fatal(err)
	}
	document := func() docindex.Document {
		d, err := r.store.Document(t.Context(), []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	b := newBrowser(t, r.base)
	b.open("/")
	b.allow("404")
	b.fill("#page-url", url)
	b.click("#page-form button[type=submit]")
	b.shows("#page-facts", "put it, or name the crawl")
	b.until("document.getElementById('page-now').hidden")
	b.fill("#page-crawl", "news")
	b.click("#page-form button[type=submit]")
	b.shows("#page-facts", "scheduled, due 2")
	b.accessible("a URL")
	b.keepToasts()
	b.click("#page-now")
	b.toasted("It is due now.")
	if d := document(); d.State == docindex.Scheduled && d.Due > time.Now().Unix() {
		t.Errorf("it is %v, due in %d s", d.State, d.Due-time.Now().Unix())
	}
	if n := r.store.Stats(); n.Scheduled+n.InTransit+n.Completed != 1 {
		t.Errorf("%+v; want one document", n)
	}
}
