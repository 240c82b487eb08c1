package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"urlserver/configs"
)

func TestDashboardIsAccessible(t *testing.T) {
	r := newCrawl(t, setup{})
	r.control()
	r.submit("app", "news", "http://127.0.4.1/1", "http://127.0.4.2/1")
	b := newBrowser(t, r.base)
	for _, c := range []struct {
		width       int64
		phone, dark bool
	}{{width: 1280}, {width: 1280, dark: true}, {width: 390, phone: true}} {
		b.screen(c.width, 900, 1, c.phone, c.dark)
		b.open("/")
		b.until("document.querySelectorAll('#t-hosts tbody tr').length > 1")
		b.fill("#name", "127.0.1.20"+kb.Enter)
		b.shows("#explained", "Req_Host_Per_Sec")
		js[bool](b, "(document.querySelectorAll('main details').forEach((d) => { d.open = true; }), true)")
		b.see("#crawls")
		b.click("#t-crawls .link")
		b.shows("#crawl-info", "127.0.4.1")
		b.accessible(fmt.Sprintf("dashboard, %+v", c))
	}
	b.screen(1280, 900, 1, false, false)
	// Tab reaches all that can be used, and shows where it is.
	js[bool](b, "(document.activeElement.blur(), document.querySelector('#settings details').open = "+
		"false, scrollTo(0, 0), true)")
	want := js[[]string](b, `[...document.querySelectorAll("a, button, input, select, textarea, summary, [tabindex='0']")]
		.filter((e) => e.checkVisibility() && !e.closest("table")).map((e) => e.id || e.getAttribute("aria-labelledby") || e.ariaLabel || e.textContent.trim())`)
	var got []string
	in(b, chromedp.Click(chromedp.CSS("h1")))
	for range 3*len(want) + 200 {
		in(b, chromedp.KeyEvent(kb.Tab))
		got = append(got,
			js[string](b, `(() => { const e = document.activeElement; return e.id || e.getAttribute("aria-labelledby") || e.ariaLabel || e.textContent.trim() || ""; })()`))
		if len(got) > 2 && !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(got, w) }) {
			break
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("Tab does not reach %q", w)
		}
	}
}

// phoneScreens is how many screens of a phone the page takes at most.
const phoneScreens = 3

func TestDashboardPictures(t *testing.T) {
	r := newCrawl(t, setup{})
	r.control()
	r.submit("app", "news", "http://127.0.4.1/1", "http://127.0.4.2/1")
	b := newBrowser(t, r.base)
	for _, c := range []struct {
		name          string
		width, height int64
		scale         float64
		phone, dark   bool
	}{
		{name: "desktop", width: 1440, height: 900, scale: 1},
		{name: "desktop-dark", width: 1440, height: 900, scale: 1, dark: true},
		{name: "phone", width: 390, height: 844, scale: 2, phone: true},
		{name: "phone-dark", width: 390, height: 844, scale: 2, phone: true, dark: true},
	} {
		b.screen(c.width, c.height, c.scale, c.phone, c.dark)
		b.open("/")
		b.shows("#state", "Ready")
		b.until("document.querySelectorAll('#t-hosts tbody tr').length > 1 && " +
			"document.querySelectorAll('.plot canvas').length === 3 && " +
			"document.getElementById('p-text').textContent.length > 1")
		if high := js[int](b, "document.documentElement.scrollHeight"); c.phone && high > phoneScreens*int(c.height) {
			t.Errorf("%s: the page is %d pixels high; want at most %d screens of %d", c.name, high,
				phoneScreens, c.height)
		}
		b.shoot(c.name+"-first", c.width, c.scale, c.phone)
		b.fill("#name", "127.0.1.20"+kb.Enter)
		b.shows("#explained", "Req_Host_Per_Sec")
		if over := js[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
			t.Errorf("%s: the page is %d pixels wider than the screen", c.name, over)
		}
		b.shoot(c.name, c.width, c.scale, c.phone)
	}
}

// What the page may cost with 100,000 slots, in CPU time of the thread that all of it runs on:
// however busy the machine is, that stays the same. The time on a clock is in the log.
const (
	firstPaint = time.Second // until all is there and painted
	// script, style, layout and paint of all the page, each time the daemon tells how things are
	oneRefresh = 50 * time.Millisecond
	refreshes  = 10 // of the map, at least, looked at
)

// busy is what the page's main thread has worked so far. Performance is to be enabled in
// threadTicks.
func (b *browser) busy() time.Duration {
	b.t.Helper()
	for _, m := range call(b, performance.GetMetrics, cdp.Empty{}).Metrics {
		if m.Name == "TaskDuration" {
			return time.Duration(m.Value * float64(time.Second))
		}
	}
	b.t.Fatal("the browser does not tell TaskDuration")
	return 0
}

// refreshed waits for the map to be refreshed so many times from the page's begin on.
func (b *browser) refreshed(n int) {
	b.t.Helper()
	js[bool](b, `new Promise((done) => {
		const enough = () => performance.getEntriesByName("map refresh").length >= %d && requestAnimationFrame(() => setTimeout(() => done(true)));
		new PerformanceObserver(enough).observe({entryTypes: ["measure"]});
		enough();
	})`, n)
}

// A hundred thousand slots are all on the map, and cost what they may.
func TestDashboardOfManySlots(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 hosts take their time; without -short")
	}
	const slots = 100_000
	r := newRig(t, setup{config: func(c *configs.Config) {
		c.QueueCount, c.ReqHostPerSec,
			c.DocIndex.Batch = slots, 0.2, 10_000
	}})
	var urls strings.Builder
	for i := range slots {
		for n := range 4 {
			fmt.Fprintf(&urls, "http://127.%d.%d.%d/%d\n", 1+i>>16, i>>8&255, i&255, n)
		}
	}
	if a := r.ask("POST", "/docindex/urls", urls.String()); a.StatusCode != 200 {
		t.Fatalf("put: %s", a.Status)
	}
	b := newBrowser(t, r.base)
	b.screen(1440, 900, 1, false, false)
	for end := time.Now().Add(testTimeout); r.status().Slots.Used < slots*9/10; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("slots: %+v", r.status().Slots)
		}
	}
	r.crawl(1000) // not before, so that none is through with its slot while others wait for theirs
	for end := time.Now().Add(testTimeout); r.status().Sent == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is sent")
		}
	}
	call(b, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	b.open("/")
	b.refreshed(1)
	first := b.busy()
	before := b.told()
	already := js[int](b, "performance.getEntriesByName('map refresh').length")
	b.refreshed(already + refreshes)
	each := (b.busy() - first) / time.Duration(b.told()-before)
	if first <= 0 || first > firstPaint {
		t.Errorf("until the map was there the page took %v of CPU; want at most %v", first, firstPaint)
	}
	if each <= 0 || each > oneRefresh {
		t.Errorf("a refresh takes %v of CPU; want at most %v", each, oneRefresh)
	}
	text := js[string](b, `JSON.stringify({paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
		loaded: performance.getEntriesByName("loaded")[0].startTime, refresh: performance.getEntriesByName("map refresh").map((e) => e.duration)})`)
	var took struct {
		Paint, Loaded float64
		Refresh       []float64
	}
	if err := json.Unmarshal([]byte(text), &took); err != nil {
		t.Fatal(err)
	}
	t.Logf("CPU until the map was there %v, of a refresh %v; on a clock: first paint %.0f ms, map there "+
		"after %.0f ms, its own part of refreshes %.1f ms", first, each, took.Paint, took.Loaded, took.Refresh)
	cells := js[int](b, "['empty','ready','active','cooling','held'].map((s) => "+
		"Number(document.getElementById('n-' + s).textContent.replace(/\\D/g, ''))).reduce((a, b) => a + b)")
	if cells != slots {
		t.Errorf("%d cells are on the map; want %d", cells, slots)
	}
	b.shoot("many-slots", 1440, 1, false)
}
