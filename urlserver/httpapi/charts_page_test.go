package httpapi

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"

	"urlserver/urlserver/httpapi/livefeed"
)

// keepPlots makes the next page keep each of its charts in window.plots, by the id of its element.
const keepPlots = `(() => {
	window.plots = {};
	let make;
	Object.defineProperty(window, "uPlot", {
		configurable: true,
		get: () => make && function (options, data, target) { return window.plots[target.id] = new make(options, data, target); },
		set: (v) => { make = v; },
	});
})()`

// history is the history of the API.
type history struct {
	Every   float64 `json:"every_s"`
	Samples []apiSample
}

// apiSample is a sample of the API; null: there was none.
type apiSample struct {
	At         float64
	Sent       float64
	Outcomes   []float64
	Statuses   []float64
	Delay      []*float64
	Index, DNS *float64
	Fetch      *float64
}

// charted returns the data that the charts must have for a history: for each the times, and then
// the values of its lines, with a gap where samples are missing.
func (h history) charted() map[string][][]*float64 {
	lines := map[string][]func(s apiSample) *float64{
		"plot-rates": {func(s apiSample) *float64 { return &s.Sent },
			func(s apiSample) *float64 { return &s.Outcomes[0] }},
		"plot-latency": {
			func(s apiSample) *float64 { return s.Fetch }, func(s apiSample) *float64 { return s.Index },
			func(s apiSample) *float64 { return s.DNS },
		},
	}
	for upTo := range 6 { // stacked, the highest line first
		lines["plot-statuses"] = append([]func(s apiSample) *float64{func(s apiSample) *float64 {
			sum, others := 0.0, 0.0
			for _, n := range s.Statuses[5:] {
				others += n
			}
			for _, n := range append(s.Statuses[:5:5], others)[:upTo+1] {
				sum += n
			}
			return &sum
		}}, lines["plot-statuses"]...)
	}
	all := map[string][][]*float64{}
	for id, values := range lines {
		data := make([][]*float64, 1+len(values))
		add := func(at float64, value func(i int) *float64) {
			data[0] = append(data[0], &at)
			for i := range values {
				data[1+i] = append(data[1+i], value(i))
			}
		}
		for n, s := range h.Samples {
			if n > 0 && s.At-h.Samples[n-1].At > 2.5*h.Every {
				add(h.Samples[n-1].At+h.Every, func(int) *float64 { return nil })
			}
			add(s.At, func(i int) *float64 { return values[i](s) })
		}
		all[id] = data
	}
	return all
}

// charts waits until the charts have the API's data, and want returns true.
func (b *browser) charts(r *rig, what string, want func(h history) bool) history {
	b.t.Helper()
	for end := time.Now().Add(testTimeout); ; time.Sleep(50 * time.Millisecond) {
		var h history
		r.into(&h, "GET", "/api/history", "")
		wanted, err := json.Marshal(h.charted())
		if err != nil {
			b.t.Fatal(err)
		}
		var held map[string][][]*float64
		if err := json.Unmarshal([]byte(js[string](b,
			"JSON.stringify(Object.fromEntries(Object.entries(window.plots).map(([id, p]) => [id, "+
				"p.data])))")), &held); err != nil {
			b.t.Fatal(err)
		}
		got, err := json.Marshal(held)
		if err != nil {
			b.t.Fatal(err)
		}
		if string(got) == string(wanted) && want(h) {
			return h
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: the charts hold\n%s; the API has\n%s", what, got, wanted)
		}
	}
}

// The charts have the samples of the API, and each new one as it arrives.
func TestDashboardCharts(t *testing.T) {
	r := newRig(t, setup{})
	r.crawl(0)
	b := newBrowser(t, r.base)
	call(b, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: keepPlots})
	b.open("/")
	before := b.charts(r, "at first", func(h history) bool { return len(h.Samples) > 0 })
	if before.Every != livefeed.Every.Seconds() {
		t.Errorf("a sample each %v s; want %v", before.Every, livefeed.Every)
	}
	js[bool](b, "(window.mark = true)")
	for i := range 8 { // some are sent and done at once, some need a look-up
		r.put(fmt.Sprintf("http://127.0.2.%d/1", i), fmt.Sprintf("http://%d.invalid/", i))
	}
	sent := 0
	after := b.charts(r, "once more was sent", func(h history) bool {
		sent = -1
		dns := false
		for i, s := range h.Samples {
			dns = dns || s.DNS != nil
			if s.Sent > 0 && s.Outcomes[0] > 0 && s.Delay[1] != nil && s.At > before.Samples[len(before.Samples)-1].At {
				sent = i
			}
		}
		return sent >= 0 && dns
	})
	if !js[bool](b, "window.mark === true") {
		t.Error("the page was loaded anew")
	}
	if len(after.Samples) <= len(before.Samples) {
		t.Errorf("%d samples, and %d before", len(after.Samples), len(before.Samples))
	}
	b.until("document.getElementById('v-statuses-0').textContent !== '–'")
	for _, id := range []string{"statuses", "rates", "latency"} {
		if !js[bool](b, `(() => { const c = document.querySelector("#plot-%s canvas");
			return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v > 0); })()`, id) {
			t.Errorf("chart %s is blank", id)
		}
	}
}
