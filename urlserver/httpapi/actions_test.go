package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// brokenActions cannot do anything now.
type brokenActions struct{ err error }

func (b brokenActions) Do(context.Context, [][]byte) ([]crawlcontrol.Reply, int, error) {
	return nil, 0, b.err
}

func TestActions(t *testing.T) {
	r := newRig(t, setup{})
	const info = `{"action":"info","appid":"testapp","uuid":"u","spiderid":"link"}`
	if got := r.ask("POST", "/api/actions", info); got.StatusCode != http.StatusNotFound ||
		!strings.Contains(got.body, "keeps no crawls") {
		t.Errorf("without crawl control: %s %s", got.Status, got.body)
	}
	controller := crawlcontrol.NewController(memory.New(), r.daemon, zerolog.Nop())
	r.server.actions = crawlcontrol.New(controller, 10)
	for _, c := range []struct {
		name, method, body string
		status             int
		want               string
	}{
		{"info", "POST", info, http.StatusOK, `"uuid":"u","appid":"testapp","spiderid":"link","total_pending":0,`},
		{"crawl", "POST", `{"url":"http://a.test/","appid":"testapp","crawlid":"c"}`, http.StatusOK, `"status":"new"`},
		{"stop", "POST", `{"action":"stop","appid":"testapp","uuid":"u","spiderid":"link","crawlid":"c"}`,
			http.StatusOK, `"total_purged":1`},
		{"refused", "POST", `{"action":"stop","appid":"testapp","uuid":"u"}`, http.StatusBadRequest,
			`{"error":"stop: spiderid is missing","uuid":"u","appid":"testapp"}`},
		{"nothing", "POST", "", http.StatusBadRequest, `{"error":"message is not a JSON object`},
		{"another method", "GET", "", http.StatusMethodNotAllowed, "use POST"},
	} {
		if got := r.ask(c.method, "/api/actions", c.body); got.StatusCode != c.status ||
			!strings.Contains(got.body, c.want) {
			t.Errorf("%s: %s %s; want %d %s", c.name, got.Status, got.body, c.status, c.want)
		}
	}
	for err, status := range map[error]int{
		errors.New("the store is away"):                        http.StatusServiceUnavailable,
		fmt.Errorf("the memory index is %w", docindex.ErrFull): http.StatusInsufficientStorage,
	} {
		r.server.actions = brokenActions{err}
		if got := r.ask("POST", "/api/actions", info); got.StatusCode != status ||
			!strings.Contains(got.body, err.Error()) {
			t.Errorf("while %v: %s %s; want %d", err, got.Status, got.body, status)
		}
	}
}

// leaving is a store in which a crawl is refused just as somebody leaves.
type leaving struct {
	*memory.Store
	leave func()
}

func (l leaving) StopCrawl(ctx context.Context, id docindex.CrawlID, why docindex.Kind) error {
	err := l.Store.StopCrawl(ctx, id, why)
	l.leave()
	return err
}

// A stop is done to its end though its client has gone.
func TestStopWithoutClient(t *testing.T) {
	r := newRig(t, setup{})
	ctx, leave := context.WithCancel(t.Context())
	r.server.actions = crawlcontrol.New(crawlcontrol.NewController(leaving{memory.New(), leave}, r.daemon,
		zerolog.Nop()), 10)
	r.ask("POST", "/api/actions", `{"url":"http://a.test/","appid":"testapp","crawlid":"c"}`)
	stop := `{"action":"stop","appid":"testapp","uuid":"u","spiderid":"link","crawlid":"c"}`
	err := r.server.serveActions(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST",
		"/api/actions", strings.NewReader(stop)))
	if err != nil || ctx.Err() == nil {
		t.Errorf("stop: %v; its client: %v", err, ctx.Err())
	}
	got := r.ask("POST", "/api/actions", `{"action":"info","appid":"testapp","uuid":"u","spiderid":"link"}`)
	if !strings.Contains(got.body, `"total_pending":0,`) {
		t.Errorf("after the stop: %s", got.body)
	}
}
