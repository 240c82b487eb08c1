package httpapi

import (
	"bufio"
	"context"
	_ "embed" // for axe
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// testTimeout is how long an action of a browser may take on a busy machine.
const testTimeout = 5 * time.Minute

// shots is the folder for screenshots.
const shots = "screenshots"

//go:embed testdata/axe.min.js
var axe string

// browser is a page in a real Chromium. An error on its console, or a request to another server,
// fails the test.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu      sync.Mutex // guards all below
	faults  []string
	allowed string // part of an error that is expected
	roams   bool   // it is on pages of other sites: no error fails the test
	beats   int    // statuses received from the stream
}

// chromium is the browser of all tests. It starts with the first one.
var chromium struct {
	once sync.Once
	ctx  context.Context
	end  func() error
	err  error
}

func startChromium(path string) {
	dir, err := os.MkdirTemp("", "dashboard")
	if err != nil {
		chromium.err = err
		return
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.UserDataDir(dir),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(testTimeout))
	ctx, _ = chromedp.NewContext(ctx) // ends with the one above
	chromium.ctx, chromium.err = ctx, chromedp.Do(ctx)
	chromium.end = func() error {
		err := chromedp.Cancel(ctx)
		cancel()
		// Its last processes may still write.
		for end := time.Now().Add(testTimeout); os.RemoveAll(dir) != nil &&
			time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		}
		return err
	}
}

func TestMain(m *testing.M) {
	status := m.Run()
	if chromium.end != nil {
		if err := chromium.end(); err != nil {
			fmt.Fprintln(os.Stderr, "close chromium:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// newBrowser opens a page in a profile of its own.
func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: the dashboard is not tried in a browser")
	}
	chromium.once.Do(func() { startChromium(path) })
	if chromium.err != nil {
		t.Fatalf("start chromium: %v", chromium.err)
	}
	ctx, _ := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the page: %v", err)
		}
	})
	b := &browser{t: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("open a page: %v", err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Error(f)
		}
	})
	return b
}

func (b *browser) hear(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			fault += " " + x.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			fault = fmt.Sprintf("console %s: %s", e.Type, e.Args[0].Value)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			fault = fmt.Sprintf("log %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.base) {
			fault = "request to " + e.Request.URL
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := event.(*network.EventEventSourceMessageReceived); ok && e.EventName == "status" {
		b.beats++
	}
	if fault != "" && !b.roams && (b.allowed == "" || !strings.Contains(fault, b.allowed)) {
		b.faults = append(b.faults, fault)
	}
}

// told returns the number of statuses received from the stream.
func (b *browser) told() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beats
}

// allow sets the text of an error that is expected from now on.
func (b *browser) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = text
}

// in runs an action of the browser, and waits for it.
func in[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	return v
}

// call makes a call of the DevTools protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	return in(b, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, params) })
}

// elsewhere allows the browser to open pages of other sites.
func (b *browser) elsewhere() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.roams = true
}

func (b *browser) open(path string) {
	b.t.Helper()
	in(b, chromedp.Navigate(b.base+path))
}

// js returns the value of an expression. It waits for a promise.
func js[T any](b *browser, format string, args ...any) T {
	b.t.Helper()
	return in(b, chromedp.Evaluate[T](fmt.Sprintf(format, args...), chromedp.EvalAwaitPromise))
}

// until waits until an expression is true. It is not while the page changes to another.
func (b *browser) until(format string, args ...any) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testTimeout)
	defer cancel()
	for ; ; time.Sleep(20 * time.Millisecond) {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf("Boolean("+format+")", args...),
			chromedp.EvalAwaitPromise))
		if is {
			return
		}
		if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "navigated") &&
			!strings.Contains(err.Error(), "context") {
			b.t.Fatalf("browser: %v", err)
		}
		if ctx.Err() != nil {
			b.t.Fatalf("waited in vain for "+format+"; the page says:\n%s",
				append(args, js[string](b, "document.body.innerText"))...)
		}
	}
}

// shows waits until an element contains a text.
func (b *browser) shows(selector, text string) {
	b.t.Helper()
	b.until("document.querySelector(%q)?.textContent.includes(%q)", selector, text)
}

// keepToasts makes the page keep the messages that it shows for some seconds.
func (b *browser) keepToasts() {
	b.t.Helper()
	js[bool](b, `(() => {
		const toast = document.getElementById("toast");
		window.toasts = [];
		new MutationObserver(() => window.toasts.push(toast.textContent)).observe(toast, {childList: true});
		return true;
	})()`)
}

// toasted waits until the page has shown a message since keepToasts.
func (b *browser) toasted(text string) {
	b.t.Helper()
	b.until("window.toasts.some((said) => said.includes(%q))", text)
}

// click clicks an element when it is visible and nothing covers it. Both happen in one task of the
// page, because it may move with any new data.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.until(`(() => {
		const e = document.querySelector(%q);
		if (!e?.checkVisibility()) return false;
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect();
		if (!e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2))) return false;
		setTimeout(() => e.click()); // after this is answered, since the click may open another page
		return true;
	})()`, selector)
}

// fill empties a field and types text into it.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	js[bool](b, "(document.querySelector(%q).value = '', true)", selector)
	in(b, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// screen sets the size and the colours of the screen.
func (b *browser) screen(width, height int64, scale float64, phone, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: scale, Mobile: phone,
	})
	call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: phone})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// shoot takes a screenshot of the whole page, on a screen as high as the page.
func (b *browser) shoot(name string, width int64, scale float64, phone bool) {
	b.t.Helper()
	height := js[int64](b, "(scrollTo(0, 0), document.documentElement.scrollHeight)")
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: scale, Mobile: phone,
	})
	// It is painted twice for this screen.
	js[bool](b, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
	picture := in(b, chromedp.CaptureScreenshot())
	if len(picture) < 10_000 {
		b.t.Errorf("the picture %s has %d bytes", name, len(picture))
	}
	file, err := filepath.Abs(filepath.Join(shots, name+".png"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(shots, 0o755), os.WriteFile(file, picture, 0o644)); err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("screenshot: %s", file)
}

// accessible runs axe-core on the page. It must find nothing serious.
func (b *browser) accessible(what string) {
	b.t.Helper()
	in(b, chromedp.Evaluate[chromedp.Void](axe))
	text := js[string](b, `axe.run().then((r) => JSON.stringify(r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => ({id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 5).map((n) => n.html + " " + n.failureSummary)}))))`)
	var found []json.RawMessage
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		b.t.Errorf("%s: %s", what, f)
	}
}

// crawl is a spider that ends each document with 200 at once, except the last keep ones.
func (r *rig) crawl(keep int) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.spiders)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	go func() {
		var waiting []string
		for in := bufio.NewScanner(conn); in.Scan(); {
			trans, _, _ := strings.Cut(in.Text(), " ")
			if waiting = append(waiting, trans); len(waiting) > keep {
				fmt.Fprintf(conn, "%s DONE 200\n", waiting[0])
				waiting = waiting[1:]
			}
		}
	}()
}
