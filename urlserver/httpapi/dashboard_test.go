package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/urlserver/httpapi/livefeed"
)

// newCrawl is a rig that holds URLs of some hosts. None is due while a test runs, so the numbers
// stay the same.
func newCrawl(t *testing.T, set setup) *rig {
	t.Helper()
	set.config = func(c *configs.Config) { c.ReqHostPerSec, c.QueueCount, c.QueueLen = 0.001, 64, 8 }
	r := newRig(t, set)
	var urls []string
	for host := range 24 {
		for n := range 1 + host {
			urls = append(urls, fmt.Sprintf("http://127.0.1.%d/%d", host, n))
		}
	}
	header := []string{}
	if set.token != "" {
		header = []string{"Authorization", "Bearer " + set.token}
	}
	if a := r.ask("POST", "/docindex/urls", strings.Join(urls, "\n"), header...); a.StatusCode != 200 {
		t.Fatalf("put: %s", a.Status)
	}
	r.holds(len(urls))
	r.crawl(2)
	return r
}

// holds waits until the daemon has taken all URLs.
func (r *rig) holds(documents int) {
	r.t.Helper()
	for end := time.Now().Add(testTimeout); ; time.Sleep(10 * time.Millisecond) {
		s, err := r.daemon.Status(r.t.Context())
		if err != nil || time.Now().After(end) {
			r.t.Fatalf("%d held, %v; want %d", s.Slots.Held, err, documents)
		}
		if s.Slots.Held == documents {
			return
		}
	}
}

func (r *rig) status() (s status) {
	r.t.Helper()
	r.into(&s, "GET", "/api/status", "")
	return s
}

// Every panel shows the data of the API, also later.
func TestDashboardShowsTheAPI(t *testing.T) {
	r := newCrawl(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#state", "Ready")
	var s status
	r.into(&s, "GET", "/api/status", "")
	b.shows("#f-slots", fmt.Sprintf("%d / 64", s.Slots.Used))
	b.shows("#f-held", fmt.Sprint(s.Held))
	b.shows("#f-leftover", fmt.Sprint(s.Leftover))
	b.shows("#f-spiders", "1")
	b.shows("#t-spiders", s.Spiders[0].Addr)
	b.shows("#t-outcomes", "timeout")
	b.shows("#f-index", "answers")

	var top livefeed.Top
	r.into(&top, "GET", "/api/top", "")
	if len(top.Busiest) == 0 {
		t.Fatalf("top: %+v", top)
	}
	var hosts hostList
	r.into(&hosts, "GET", "/api/hosts?limit=10", "")
	b.until("document.querySelectorAll('#t-hosts tbody tr').length === %d", len(hosts.Hosts))
	for i, h := range hosts.Hosts {
		b.until("document.querySelectorAll('#t-hosts tbody tr')[%d].textContent.startsWith(%q)", i,
			fmt.Sprintf("%s%d%d", h.Host, h.Waiting, h.Done))
	}
	b.shows("#n-hosts", fmt.Sprint(hosts.All))
	b.shows("#hosts-hidden", "14 more are not shown.")
	b.shows("#p-text", "300 URLs: 0 completed")
	b.shows("#t-blocked", "None.")

	// The map has as many cells of each state as the server's bytes.
	b.until("document.getElementById('n-empty').textContent === %q", fmt.Sprintf("empty %d", 64-s.Slots.Used))
	used := js[int](b, "['ready','active','cooling','held'].map((s) => "+
		"Number(document.getElementById('n-' + s).textContent.match(/\\d+$/)[0])).reduce((a, b) => a + b)")
	if used != s.Slots.Used {
		t.Errorf("%d cells are of slots in use; want %d", used, s.Slots.Used)
	}
	b.fill("#slot", fmt.Sprint(top.Busiest[0].Slot))
	b.click("#pick button")
	b.shows("#picked", top.Busiest[0].Group)

	var list struct{ Settings []shownSetting }
	r.into(&list, "GET", "/api/settings", "")
	b.until("document.querySelectorAll('#t-settings tbody tr').length === %d", len(list.Settings))
	b.shows("#t-settings", "Req_Host_Per_Sec0.001")

	// New events are shown without loading the page again.
	mark := js[bool](b, "(window.mark = true)")
	r.put("http://127.0.2.1/1", "http://127.0.2.1/2")
	b.shows("#f-held", fmt.Sprint(s.Held+2))
	b.until("document.getElementById('n-empty').textContent === %q", fmt.Sprintf("empty %d", 64-s.Slots.Used-1))
	log := zerolog.New(r.server.warnings)
	log.Warn().Str("where", "here").Msg("something <b>odd</b>")
	b.shows("#l-warnings", "something <b>odd</b>")
	if !mark || !js[bool](b, "window.mark === true") {
		t.Error("the page was loaded anew")
	}
}

// The shares of outcomes are those of all that have ended by now, not when the page was opened.
func TestDashboardOutcomeShares(t *testing.T) {
	r := newRig(t, setup{})
	sp := r.spider()
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#t-outcomes", "2xx: fetched0")
	r.put("http://127.0.0.1/1")
	sp.done(sp.next())
	b.shows("#t-outcomes", "2xx: fetched1100 %")
	r.put("http://127.0.0.1/2")
	if _, err := fmt.Fprintf(sp.conn, "%s DONE 404\n", sp.next()); err != nil {
		t.Fatal(err)
	}
	b.shows("#t-outcomes", "2xx: fetched150 %")
}

func TestDashboardActs(t *testing.T) {
	r := newCrawl(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#state", "Ready")

	b.click("#pause")
	b.click("#ask-pause button[value=no]")
	b.until("!document.getElementById('ask-pause').open")
	if r.status().Paused {
		t.Error("the daemon is paused, though the operator said no")
	}
	b.click("#pause")
	b.click("#ask-pause button[value=pause]")
	b.shows("#state", "Paused by the operator")
	if !r.status().Paused {
		t.Error("the daemon is not paused")
	}
	b.shows("#pause", "Resume")
	b.click("#pause")
	b.shows("#state", "Ready")
	if r.status().Paused {
		t.Error("the daemon is paused")
	}

	const name = "127.0.1.20"
	b.fill("#name", "http://"+name+":8080/x?y"+kb.Enter) // the host of the URL
	var h host
	r.into(&h, "GET", "/api/hosts/"+name, "")
	b.shows("#explained", *h.Group)
	b.shows("#explained", "Req_Host_Per_Sec")
	b.click("#block")
	b.shows("#explained", "blocked by the operator until")
	b.shows("#t-blocked", name)
	if r.into(&h, "GET", "/api/hosts/"+name, ""); h.BlockedUntil == nil || time.Until(*h.BlockedUntil) < 23*time.Hour {
		t.Errorf("blocked until %v", h.BlockedUntil)
	}
	b.click("#t-blocked td:last-child button")
	b.shows("#t-blocked", "None.")
	b.until("!document.getElementById('explained').textContent.includes('blocked by')")
	if h = (host{}); true {
		r.into(&h, "GET", "/api/hosts/"+name, "")
	}
	if h.BlockedUntil != nil {
		t.Errorf("still blocked until %v", h.BlockedUntil)
	}
	b.allow("status of 404")
	b.fill("#name", "Bücher.Example:80"+kb.Enter) // normalised as in URLs
	b.until("document.getElementById('name').value === 'xn--bcher-kva.example'")
	b.fill("#name", name+kb.Enter)
	b.shows("#explained", "Req_Host_Per_Sec")
	b.keepToasts()
	b.fill("#delay", "7")
	b.click("#set-delay")
	b.toasted("every 7 s")

	b.allow("status of 400")
	b.fill("#name", "no host/"+kb.Enter)
	b.shows("#explained", "is no host")

	before := r.store.Stats().Scheduled + r.store.Stats().InTransit
	b.fill("#urls", "http://127.0.3.1/new\nhttp://127.0.1.1/0\nnonsense")
	b.click("#put-form button")
	b.shows("#put-answer", "1 new, 1 known, 1 invalid")
	b.shows("#put-answer", "line 3")
	if now := r.store.Stats().Scheduled + r.store.Stats().InTransit; now != before+1 {
		t.Errorf("%d URLs in the index; want %d", now, before+1)
	}
}

// All warnings that the daemon keeps are shown in order. After a restart, those of the new daemon
// replace them.
func TestDashboardWarnings(t *testing.T) {
	r := newRig(t, setup{})
	log := zerolog.New(r.server.warnings)
	const kept = 3 * 20 // more than the stream sends at its start
	for i := range kept {
		log.Warn().Msg(fmt.Sprintf("number %d.", i))
	}
	b := newBrowser(t, r.base)
	b.open("/")
	b.until("document.querySelectorAll('#l-warnings li').length === %d", kept)
	if !js[bool](b, "[...document.querySelectorAll('#l-warnings b')].every((e, i) => e.textContent === "+
		"`number ${%d - i}.`)", kept-1) {
		t.Error("the warnings are not in their order: " + js[string](b,
			"document.getElementById('l-warnings').textContent"))
	}
	log.Warn().Msg("the last")
	b.shows("#l-warnings li:first-child", "the last")

	// The stream starts again with a daemon that has started since, and has been up for longer than
	// the former one.
	b.hide(r)
	r.server.warnings = NewWarnings()
	log = zerolog.New(r.server.warnings)
	log.Warn().Msg("of another daemon")
	b.seen(true)
	b.until("document.querySelectorAll('#l-warnings li').length === 1")
	b.shows("#l-warnings", "of another daemon")
}

// The keyboard focus in a row stays there when rows move. If the row disappears, it moves to the
// table.
func TestDashboardKeepsTheFocus(t *testing.T) {
	r := newRig(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	got := js[[]string](b, `(async () => {
		const {rows, make} = await import("/assets/ui.js");
		const table = make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "a"))), make("tbody"));
		document.body.append(make("div", {tabIndex: 0, id: "around"}, table));
		const fill = (...list) => rows(table.tBodies[0], list, (x) => x, (x) => {
			const row = make("tr", {}, make("td", {}, make("button", {id: "b-" + x}, x)));
			row.fill = () => {};
			return row;
		}, "None.");
		const seen = [];
		fill("x", "y", "z");
		document.getElementById("b-z").focus();
		for (const list of [["z", "x", "y"], ["y", "z"], ["x", "y"], []]) {
			fill(...list);
			seen.push(document.activeElement.id);
		}
		return seen;
	})()`)
	if want := []string{"b-z", "b-z", "around", "around"}; !slices.Equal(got, want) {
		t.Errorf("the focus is at %q; want %q", got, want)
	}
}

func TestDashboardLogin(t *testing.T) {
	r := newCrawl(t, setup{token: "secret"})
	b := newBrowser(t, r.base)
	b.open("/")
	b.until("location.pathname === '/login'")
	b.accessible("login page")
	b.shoot("login", 800, 1, false)
	b.allow("status of 403")
	b.fill("#token", "wrong"+kb.Enter)
	b.shows("#fault", "not the token")
	b.allow("")
	b.fill("#token", "secret"+kb.Enter)
	b.until("location.pathname === '/'")
	b.shows("#state", "Ready")
	if cookie := js[string](b, "document.cookie"); cookie != "" {
		t.Errorf("scripts see the cookie %q", cookie)
	}
	paused := func() bool {
		a := r.ask("GET", "/api/status", "", "Authorization", "Bearer secret")
		return strings.Contains(a.body, `"paused":true`)
	}
	b.click("#pause")
	b.click("#ask-pause button[value=pause]")
	b.shows("#state", "Paused")
	if !paused() {
		t.Error("the daemon is not paused")
	}

	// A page of another server on this machine can do nothing, although the browser sends the
	// cookie.
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<iframe name="f"></iframe><form method="post" action="%s/api/resume" target="f"></form>`, r.base)
	}))
	defer evil.Close()
	b.allow("") // from here on its requests to others are refused
	b.elsewhere()
	in(b, chromedp.Navigate(evil.URL))
	tried := js[string](b, `(async () => {
		let seen = "";
		for (const path of ["/api/resume", "/docindex/urls", "/logout"]) {
			try { seen += (await fetch(%[1]q + path, {method: "POST", body: "http://127.0.9.9/", mode: "no-cors", credentials: "include"})).type + " "; } catch (e) { seen += e; }
		}
		try { await fetch(%[1]q + "/api/status", {credentials: "include"}); seen += "read"; } catch { seen += "closed"; }
		document.forms[0].submit();
		await new Promise((done) => { document.querySelector("iframe").onload = done; });
		return seen;
	})()`, r.base)
	if !strings.HasSuffix(tried, "closed") {
		t.Errorf("another site's page: %s", tried)
	}
	if !paused() {
		t.Error("another site's page has resumed sending")
	}
	if a := r.ask("GET", "/api/hosts/127.0.9.9", "", "Authorization", "Bearer secret"); a.StatusCode != 404 {
		t.Errorf("another site's page has put a URL: %s", a.body)
	}

	b.open("/")
	b.shows("#state", "Paused")
	b.click("#logout button")
	b.until("location.pathname === '/login'")
	b.open("/")
	b.until("location.pathname === '/login'")
}

// A hidden page requests nothing. When it is visible again it continues.
func TestDashboardOutOfSight(t *testing.T) {
	r := newCrawl(t, setup{})
	b := newBrowser(t, r.base)
	b.open("/")
	b.shows("#state", "Ready")
	b.hide(r)
	held := r.status().Held
	r.put("http://127.0.2.1/1", "http://127.0.2.1/2")
	b.seen(true)
	b.shows("#f-held", fmt.Sprint(held+2))
}

// seen makes the page visible or hidden.
func (b *browser) seen(is bool) {
	b.t.Helper()
	js[bool](b, `(Object.defineProperty(document, "hidden", {value: %v, configurable: true}), document.dispatchEvent(new Event("visibilitychange")))`, !is)
}

// hide hides the page, and waits until the stream has no subscriber.
func (b *browser) hide(r *rig) {
	b.t.Helper()
	b.seen(false)
	for end := time.Now().Add(testTimeout); ; time.Sleep(10 * time.Millisecond) {
		n, err := r.server.feed.Subscribers(b.t.Context())
		if err != nil || time.Now().After(end) {
			b.t.Fatalf("%d viewers: %v", n, err)
		}
		if n == 0 {
			return
		}
	}
}
