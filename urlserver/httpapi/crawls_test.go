package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
)

// control gives a rig crawl control over its store.
func (r *rig) control() {
	controller := crawlcontrol.NewController(r.store, r.daemon, zerolog.Nop())
	r.server.actions = crawlcontrol.New(controller, 1000)
	r.server.crawls = newCrawlLists(r.store)
	r.server.crawls.changes = controller.Changes
}

// A cheap list from before a change is not shown again; an expensive one is, however many changes
// come.
func TestCrawlListsChange(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		want  int
	}{
		{name: "cheap", takes: keptCheap, want: 2},
		{name: "expensive", takes: keptCheap + 1, want: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, changes := &fakeLister{takes: c.takes}, uint64(0)
				lists := newCrawlLists(f)
				lists.changes = func() uint64 { return changes }
				for range 3 {
					if _, err := lists.get(t.Context(), ""); err != nil {
						t.Fatal(err)
					}
					changes = 1
				}
				if len(f.asked) != c.want {
					t.Errorf("the store was asked %d times; want %d", len(f.asked), c.want)
				}
			})
		})
	}
}

func (r *rig) submit(app, crawl string, urls ...string) {
	r.t.Helper()
	for _, u := range urls {
		body := fmt.Sprintf(`{"url":%q,"appid":%q,"crawlid":%q}`, u, app, crawl)
		if a := r.ask("POST", "/api/actions", body); a.StatusCode != http.StatusOK {
			r.t.Fatalf("submit: %s %s", a.Status, a.body)
		}
	}
}

func TestCrawls(t *testing.T) {
	r := newRig(t, setup{})
	var list crawlList
	if r.into(&list, "GET", "/api/crawls", ""); list.Note != noCrawls || list.Crawls == nil {
		t.Errorf("without crawl control: %+v", list)
	}
	r.control()
	list = crawlList{}
	r.into(&list, "GET", "/api/crawls?text=nothing", "")
	if list.All != 0 || list.Crawls == nil || len(list.Crawls) != 0 || list.Note != "" {
		t.Errorf("no crawls: %+v", list)
	}
	if err := r.daemon.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	r.submit("app", "one", "http://127.0.0.1/1", "http://127.0.0.1/2")
	r.submit("app", "two", "http://127.0.0.1/1")
	r.into(&list, "GET", "/api/crawls", "")
	if list.All != 2 || list.Crawls[0].CrawlID != "one" || list.Crawls[0].Scheduled+list.Crawls[0].AtSlots != 2 ||
		list.Crawls[0].State != "running" || list.Crawls[1].CrawlID != "two" {
		t.Errorf("crawls: %+v", list)
	}
	r.ask("POST", "/api/actions", `{"action":"stop","appid":"app","uuid":"u","spiderid":"link","crawlid":"two"}`)
	r.into(&list, "GET", "/api/crawls?text=tw", "")
	if list.All != 1 || list.Crawls[0].State != "stopped" {
		t.Errorf("a stopped crawl: %+v", list)
	}
	r.ask("GET", "/api/crawls?text="+strings.Repeat("x", maxCrawlText+1), "").wantError(t,
		http.StatusBadRequest, "at most 256")
	r.ask("GET", "/api/crawls?text=%zz", "").wantError(t, http.StatusBadRequest, "query")
}

// A crawl whose metadata name its end in ms instead of seconds, as a client may, has the last date that JSON
// has, and hides no other crawl.
func TestCrawlsExpireLate(t *testing.T) {
	r := newRig(t, setup{})
	r.control()
	if err := r.daemon.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	r.submit("app", "one", "http://127.0.0.1/1")
	put := `{"url":"http://127.0.0.1/2","crawl":"two","metadata":{"appid":["app"],"expires":["1893456000000"]}}`
	if a := r.ask("POST", "/docindex/urls", put); a.StatusCode != http.StatusOK {
		t.Fatalf("put: %s %s", a.Status, a.body)
	}
	var list crawlList
	r.into(&list, "GET", "/api/crawls", "")
	if len(list.Crawls) != 2 {
		t.Fatalf("crawls: %+v; want one and two", list)
	}
	want := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, c := range list.Crawls {
		switch {
		case c.CrawlID == "one" && c.Expires != nil:
			t.Errorf("crawl one expires at %v; want never", c.Expires)
		case c.CrawlID == "two" && (c.Expires == nil || !c.Expires.Equal(want)):
			t.Errorf("crawl two expires at %v; want %v", c.Expires, want)
		}
	}
}

// fakeLister has so many crawls with such names, and counts how often it is asked.
type fakeLister struct {
	crawls int
	name   string
	takes  time.Duration
	asked  []string
	err    error
}

func (f *fakeLister) ListCrawls(_ context.Context, text string, most int) (some []docindex.CrawlState,
	all int, err error) {
	f.asked = append(f.asked, text)
	time.Sleep(f.takes)
	for i := range min(f.crawls, most) {
		some = append(some, docindex.CrawlState{CrawlID: docindex.CrawlID{App: f.name, Crawl: fmt.Sprint(f.name, i)}})
	}
	return some, f.crawls, f.err
}

// However many look, a list is made once while it is fresh; one that is dear is fresh for longer.
func TestCrawlLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLister{crawls: 9, takes: 100 * time.Millisecond}
		looks := newCrawlLists(f)
		look := func(text string) {
			t.Helper()
			if list, err := looks.get(t.Context(), text); err != nil || len(list.Crawls) != 9 {
				t.Fatalf("%d crawls, %v", len(list.Crawls), err)
			}
		}
		look("")
		time.Sleep(9 * time.Second)
		look("")
		look("a")
		look("a")
		if !slices.Equal(f.asked, []string{"", "a"}) {
			t.Errorf("asked for %q; want each once", f.asked)
		}
		time.Sleep(2 * time.Second)
		look("")
		if len(f.asked) != 3 {
			t.Errorf("asked for %q; want a new list after 100 times what it took", f.asked)
		}
		for i := range 3 * maxKept {
			look(fmt.Sprint(i))
			if len(looks.answers) > maxKept {
				t.Fatalf("%d lists are kept", len(looks.answers))
			}
		}
	})
}

// A list that cannot be made is tried once for all that look just then, and who waits for it may
// go.
func TestCrawlLooksFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLister{takes: 10 * time.Second, err: errors.New("away")}
		looks := newCrawlLists(f)
		var viewers sync.WaitGroup
		for range 5 {
			viewers.Go(func() {
				if _, err := looks.get(t.Context(), ""); !errors.Is(err, f.err) {
					t.Errorf("the list: %v; want %v", err, f.err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := looks.get(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a viewer that goes: %v", err)
		}
		viewers.Wait()
		if len(f.asked) != 1 {
			t.Errorf("asked %d times; want once", len(f.asked))
		}
	})
}

// Many crawls with long names are as many as fit.
func TestCrawlListIsBounded(t *testing.T) {
	r := newRig(t, setup{})
	for _, c := range []struct {
		name        string
		least, most int
	}{{"app", crawlRows, crawlRows}, {strings.Repeat("<", 500), 1, 10}} {
		r.server.crawls = newCrawlLists(&fakeLister{crawls: 1_000_000, name: c.name})
		var list crawlList
		r.into(&list, "GET", "/api/crawls", "")
		if n := len(list.Crawls); n < c.least || n > c.most || list.All != 1_000_000 {
			t.Errorf("%d rows of %d; want %d to %d of a million", n, list.All, c.least, c.most)
		}
		if a := r.ask("GET", "/api/crawls", ""); len(a.body) > crawlBytes+100 {
			t.Errorf("%d bytes; want at most %d", len(a.body), crawlBytes)
		}
	}
}

// A crawl whose names are longer than a list hides no other crawl. Who asks for its ID gets it.
func TestCrawlListSkipsLongNames(t *testing.T) {
	long := docindex.CrawlID{App: strings.Repeat("\x01", crawlBytes/6), Crawl: "long"}
	list := []docindex.CrawlState{{CrawlID: long}, {CrawlID: docindex.CrawlID{App: "app", Crawl: "short"}}}
	for text, want := range map[string]string{"": "short", "o": "short", "long": "long"} {
		if rows := crawlRowsOf(list, text); len(rows) != 1 || rows[0].CrawlID != want {
			t.Errorf("%q: %d rows; want that of crawl %s", text, len(rows), want)
		}
	}
}
