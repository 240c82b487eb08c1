package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// playing is a page of a stranger's site that sends all that a page can send to the spider port:
// requests with a body that looks like a spider's lines, forms, and what it takes for pictures.
const playing = `<!doctype html><title>a page</title><script>
const port = "http://%s/";
let begun = 0, over = 0;
const lines = "AUTH x\n0.0.0 DONE 200\n0.0.0 WORKING\n".repeat(50);
async function post() {
	for (;;) {
		begun++;
		try { await fetch(port + begun, {method: "POST", mode: "no-cors", body: lines}); } catch {}
		over++;
		await new Promise((go) => setTimeout(go, 20));
	}
}
function form() {
	const frame = document.createElement("iframe"), f = document.createElement("form"), field = document.createElement("textarea");
	frame.name = "f" + Math.random();
	f.method = "POST"; f.enctype = "text/plain"; f.action = port; f.target = frame.name;
	field.name = "0.0.0 DONE"; field.value = lines;
	f.append(field);
	document.body.append(frame, f);
	f.submit();
	setTimeout(() => { frame.remove(); f.remove(); }, 500);
	new Image().src = port + Math.random();
	try { new WebSocket(port.replace("http", "ws")); } catch {}
}
addEventListener("load", () => { for (let i = 0; i < 8; i++) post(); form(); setInterval(form, 300); });
</script><body></body>`

// TestWebPageCannotPlayTheSpider has a page in the operator's browser post to the spider port for
// as long as it takes: each document is fetched by the honest spider that comes later, and none
// ends for what the page did.
func TestWebPageCannotPlayTheSpider(t *testing.T) {
	const urls = 240
	r := newRig(t, setup{config: func(c *configs.Config) { c.TimeoutSpiderStatus = 2 * time.Second }})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, playing, r.spiders)
	}))
	defer page.Close()
	b := newBrowser(t, page.URL)
	b.elsewhere()
	b.open("/")
	b.until("begun >= 8")
	var p docindex.Puts
	for i := range urls {
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://127.0.1.%d/%d", i%120+1, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.store.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	// The page is alone with the daemon for longer than three attempts take, each with its timeout.
	time.Sleep(8 * time.Second)
	r.crawl(0)
	got := r.store.Stats()
	for end := time.Now().Add(testTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		total := 0
		got = r.store.Stats()
		for _, n := range got.Outcomes {
			total += n
		}
		if total >= urls {
			break
		}
	}
	t.Logf("the page began %d requests, %d of them ended", js[int](b, "begun"), js[int](b, "over"))
	if done := got.Outcomes[docindex.Done]; done != urls {
		t.Errorf("%d of %d documents were fetched, %d ended as timeout; want all and none", done, urls,
			got.Outcomes[docindex.Timeout])
	}
}
