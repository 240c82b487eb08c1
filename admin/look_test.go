package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	}{{width: 1280}, {width: 1280, dark: true}, {width: 360, phone: true}} {
		b.screen(c.width, 900, 1, c.phone, c.dark)
		b.open("/")
		b.until("document.querySelectorAll('#t-busiest tbody tr').length > 1")
		b.fill("#name", "127.0.1.20"+kb.Enter)
		b.shows("#explained", "Req_Host_Per_Sec")
		b.click("#settings summary")
		b.see("#crawls")
		b.click("#t-crawls .link")
		b.shows("#crawl-info", "127.0.4.1")
		b.accessible(fmt.Sprintf("dashboard, %+v", c))
	}
	b.screen(1280, 900, 1, false, false)
	// Tab reaches all that can be used, and shows where it is.
	js[bool](b, "(document.activeElement.blur(), document.querySelector('#settings details').open = false, scrollTo(0, 0), true)")
	want := js[[]string](b, `[...document.querySelectorAll("a, button, input, select, textarea, summary, [tabindex='0']")]
		.filter((e) => e.checkVisibility() && !e.closest("table")).map((e) => e.id || e.getAttribute("aria-labelledby") || e.ariaLabel || e.textContent.trim())`)
	var got []string
	in(b, chromedp.Click(chromedp.CSS("h1")))
	for range 3*len(want) + 200 {
		in(b, chromedp.KeyEvent(kb.Tab))
		got = append(got, js[string](b, `(() => { const e = document.activeElement; return e.id || e.getAttribute("aria-labelledby") || e.ariaLabel || e.textContent.trim() || ""; })()`))
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
		{name: "phone", width: 360, height: 740, scale: 2, phone: true},
		{name: "phone-dark", width: 360, height: 740, scale: 2, phone: true, dark: true},
	} {
		b.screen(c.width, c.height, c.scale, c.phone, c.dark)
		b.open("/")
		b.shows("#state", "Ready")
		b.until("document.querySelectorAll('#t-busiest tbody tr').length > 1 && document.querySelectorAll('.plot canvas').length === 3")
		b.fill("#name", "127.0.1.20"+kb.Enter)
		b.shows("#explained", "Req_Host_Per_Sec")
		if over := js[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
			t.Errorf("%s: the page is %d pixels wider than the screen", c.name, over)
		}
		b.shoot(c.name, c.width, c.scale, c.phone)
	}
}

// A hundred thousand slots are all on the map. The log shows how long that took.
func TestDashboardOfManySlots(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 hosts take their time; without -short")
	}
	const slots = 100_000
	r := newRig(t, setup{config: func(c *configs.Config) { c.QueueCount, c.ReqHostPerSec, c.DocIndex.Batch = slots, 0.2, 10_000 }})
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
	for end := time.Now().Add(patience); r.status().Slots.Used < slots*9/10; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("slots: %+v", r.status().Slots)
		}
	}
	r.crawl(1000) // not before, so that none is through with its slot while others wait for theirs
	for end := time.Now().Add(patience); r.status().Sent == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is sent")
		}
	}
	b.open("/")
	b.until("performance.getEntriesByName('map refresh').length > 5")
	text := js[string](b, `JSON.stringify({paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
		loaded: performance.getEntriesByName("loaded")[0].startTime, refresh: performance.getEntriesByName("map refresh").map((e) => e.duration)})`)
	var took struct {
		Paint, Loaded float64
		Refresh       []float64
	}
	if err := json.Unmarshal([]byte(text), &took); err != nil {
		t.Fatal(err)
	}
	t.Logf("first paint %.0f ms, map there after %.0f ms, refreshes %.1f ms", took.Paint, took.Loaded, took.Refresh)
	cells := js[int](b, "['empty','ready','active','cooling','held'].map((s) => Number(document.getElementById('n-' + s).textContent.replace(/\\D/g, ''))).reduce((a, b) => a + b)")
	if cells != slots {
		t.Errorf("%d cells are on the map; want %d", cells, slots)
	}
	b.shoot("many-slots", 1440, 1, false)
}
