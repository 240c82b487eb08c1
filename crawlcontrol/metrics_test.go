package crawlcontrol_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// Whatever a crawl is called, its counts can be read.
func TestMetrics(t *testing.T) {
	store := memory.New()
	var p docindex.Puts
	for _, crawl := range []string{"c", "\xff", "\xfe", "\x00\n\"", "(other)"} {
		put := docindex.Put{URL: []byte("http://a.test/"), Crawl: []byte(crawl),
			Metadata: []byte(`{"appid":["app"]}`)}
		if err := p.Add(put); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	id := docindex.CrawlID{Spider: "link", App: "app", Crawl: "c"}
	if err := store.StopCrawl(t.Context(), id, docindex.Expired); err != nil {
		t.Fatal(err)
	}
	if _, err := store.PurgeCrawl(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(crawlcontrol.Metrics{Handler: crawlcontrol.New(&fakeCrawls{}, 10), Store: store})
	w := httptest.NewRecorder()
	promhttp.HandlerFor(all, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, want := range []string{
		`urlserver_crawl_documents{appid="app",crawlid="c",spiderid="link",state="expired"} 1`,
		`urlserver_crawl_documents{appid="app",crawlid="c",spiderid="link",state="purged"} 0`,
		`urlserver_crawl_documents{appid="app",crawlid="\"\\xff\"",spiderid="link",state="pending"} 1`,
		`urlserver_crawl_sent_total{appid="app",crawlid="c",spiderid="link"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}
