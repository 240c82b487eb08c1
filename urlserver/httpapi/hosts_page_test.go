package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"

	"urlserver/configs"
)

// The table of hosts is sorted and filtered, and says how many hosts it does not show.
func TestDashboardHosts(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) {
		c.QueueCount, c.ReqHostPerSec = 64, 0.001
		c.Rules = []configs.HostRule{{Hosts: []string{"127.0.3.1"}, Block: true}}
	}})
	var urls []string
	for host := range 30 {
		for n := range 1 + host {
			urls = append(urls, fmt.Sprintf("http://127.0.1.%d/%d", host, n))
		}
	}
	r.put(append(urls, "http://127.0.3.1/")...)
	r.holds(len(urls) + 1)
	r.spider()
	b := newBrowser(t, r.base)
	b.open("/")
	first := func(name string) {
		t.Helper()
		b.until("document.querySelector('#t-hosts tbody tr')?.textContent.startsWith(%q)", name)
	}
	rowsAre := func(n int) {
		t.Helper()
		b.until("document.querySelectorAll('#t-hosts tbody tr').length === %d", n)
	}
	first("127.0.1.29")
	rowsAre(10)
	b.shows("#hosts-hidden", "21 more are not shown.")
	b.click("#more-hosts")
	rowsAre(25)
	b.click("#more-hosts")
	rowsAre(31)
	b.shows("#hosts-hidden", "All are shown.")
	b.click("#t-hosts thead th:nth-child(1) button")
	first("127.0.1.0")
	b.until("document.querySelector('#t-hosts th').ariaSort === 'ascending'")
	b.click("#t-hosts thead th:nth-child(1) button")
	first("127.0.3.1")
	b.shows("#t-hosts tbody tr", "blocked by rule")
	b.fill("#host-text", "1.2")
	rowsAre(11)
	b.shows("#n-hosts", "11 of 31")
	b.fill("#host-text", "no such")
	b.shows("#t-hosts", "No host is like this.")
	js[bool](b, "(document.getElementById('host-text').value = '', "+
		"document.getElementById('host-only').value = 'blocked', "+
		"document.getElementById('host-only').dispatchEvent(new Event('change')), true)")
	rowsAre(1)
	b.shows("#t-blocked", "127.0.3.1a rule of the settings")
	b.click("#t-hosts tbody button")
	b.shows("#explained", "blocked by")
	b.shows("#explained", "until the settings change")
	if text := js[string](b, "document.getElementById('explained').textContent"); strings.Contains(text, "operator") {
		t.Errorf("a block by a rule shows as the operator's: %s", text)
	}
	b.click("#close-host")
	b.until("document.getElementById('host').hidden")
}

// A new daemon shows how to begin a crawl, until one has begun.
func TestDashboardOfAnEmptyDaemon(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) { c.Spider.Listen = "127.0.0.1:4101" }})
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#state", "Waiting for a spider")
	b.until("document.getElementById('begin').checkVisibility()")
	b.shows("#begin-spider", "spider serve --dial 127.0.0.1:4101")
	b.until("document.getElementById('begin-url').checkVisibility()")
	b.shows("#p-text", "No URL has been put yet.")
	b.shows("#t-hosts", "No host is known yet.")
	b.shoot("empty", 1440, 1, false)
	b.fill("#urls", "http://127.0.3.1/new")
	b.click("#put-form button")
	b.until("!document.getElementById('begin-url').checkVisibility()")
	r.spider()
	b.shows("#state", "Ready")
	b.until("document.getElementById('begin').hidden")
}

// Without data from the daemon the page is dim, and says since when.
func TestDashboardWithoutNews(t *testing.T) {
	r := newCrawl(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#state", "Ready")
	b.allow("ERR_")
	r.end()
	b.shows("#state", "Last news: 2")
	b.until("document.body.classList.contains('stale') && document.getElementById('pause').disabled")
	b.until("getComputedStyle(document.querySelector('main')).opacity < 0.5")
	b.shoot("stale", 1440, 1, false)
}

// mostShift is the largest allowed Cumulative Layout Shift. 0.1 counts as good.
const mostShift = 0.1

// countShifts makes the next page count its layout shifts, and note what moved.
const countShifts = `window.shift = 0; window.moved = [];
	const name = (n) => n && (n.id || (n.parentElement ? name(n.parentElement) + " > " : "") + (n.className || n.nodeName));
	new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) {
		window.shift += e.value;
		for (const s of e.sources) {
			window.moved.push(e.value.toFixed(3) + " " + name(s.node) + " " + s.previousRect.y + " -> " + s.currentRect.y);
		}
	} }).observe({type: "layout-shift", buffered: true});`

// The layout does not shift while the page is filled.
func TestDashboardStandsStill(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) { c.QueueCount, c.ReqHostPerSec = 10_000, 0.2 }})
	var urls strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&urls, "http://127.1.%d.%d/%d\n", i>>8&63, i&255, i)
	}
	if a := r.ask("POST", "/docindex/urls", urls.String()); a.StatusCode != 200 {
		t.Fatalf("put: %s", a.Status)
	}
	r.crawl(100)
	b := newBrowser(t, r.base)
	call(b, cdppage.AddScriptToEvaluateOnNewDocument,
		cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: countShifts})
	for _, c := range []struct {
		width, height int64
		phone         bool
	}{{width: 1440, height: 900}, {width: 390, height: 844, phone: true}} {
		b.screen(c.width, c.height, 1, c.phone, false)
		b.open("/")
		// statuses; the page is as it stays
		for told := b.told(); b.told() < told+4; time.Sleep(20 * time.Millisecond) {
		}
		b.until("document.querySelectorAll('#t-hosts tbody tr').length > 1")
		b.until("document.getElementById('v-statuses-0')")
		if shift := js[float64](b, "window.shift"); shift > mostShift {
			t.Errorf("%d pixels wide: %.3f of the page moved by itself; want at most %.1f; what moved:\n%s", c.width,
				shift, mostShift, strings.Join(js[[]string](b, "window.moved"), "\n"))
		} else {
			t.Logf("%d pixels wide: %.3f of the page moved", c.width, shift)
		}
	}
}

// Without a connection the table of hosts says so, and is as small as its one line.
func TestDashboardHostsWithoutConnection(t *testing.T) {
	r := newRig(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#t-hosts", "No host is known yet.")
	js[bool](b, "(window.online = window.fetch, window.fetch = () => Promise.reject(new TypeError()), true)")
	b.fill("#host-text", "a")
	b.shows("#t-hosts", "No connection.")
	b.until("document.querySelector('#hosts .scroll').offsetHeight < 100")
	js[bool](b, "(window.fetch = window.online, true)")
	b.fill("#host-text", "b")
	b.shows("#t-hosts", "No host is like this.")
}
