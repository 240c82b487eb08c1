package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"urlserver/configs"
)

func TestRefusals(t *testing.T) {
	r := newRig(t, setup{})
	long := `{"until": "` + strings.Repeat("2", maxBody) + `"}`
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		text                     string
	}{
		{name: "unknown path", method: "GET", path: "/nothing", status: 404, text: "no such path"},
		{name: "unknown path below api", method: "POST", path: "/api/", status: 404, text: "no such path"},
		{name: "host without name", method: "GET", path: "/api/hosts/", status: 404, text: "no such path"},
		{name: "unknown path below docindex", method: "POST", path: "/docindex/x", status: 404, text: "no such path"},
		{name: "unknown host", method: "GET", path: "/api/hosts/a.example", status: 404,
			text: "a.example is not known"},
		{name: "no host", method: "GET", path: "/api/hosts/a%20b", status: 400, text: `"a b" is no host`},
		{name: "host with port", method: "GET", path: "/api/hosts/a.example:80", status: 400, text: "without port"},
		{name: "host with path", method: "GET", path: "/api/hosts/a%2Fb", status: 400, text: "is no host"},
		{name: "offset is no number", method: "GET", path: "/api/slots?offset=x", status: 400, text: "offset"},
		{name: "offset is empty", method: "GET", path: "/api/slots?offset=", status: 400, text: "offset"},
		{name: "offset is negative", method: "GET", path: "/api/slots?offset=-1", status: 400, text: "from 0"},
		{name: "limit is 0", method: "GET", path: "/api/slots?limit=0", status: 400, text: "from 1 to 1000"},
		{name: "limit is too large", method: "GET", path: "/api/slots?limit=1001", status: 400, text: "from 1 to 1000"},
		{name: "limit does not fit", method: "GET", path: "/api/slots?limit=99999999999999999999",
			status: 400, text: "limit"},
		{name: "query is no query", method: "GET", path: "/api/slots?limit=%zz", status: 400, text: "query"},
		{name: "block without body", method: "POST", path: "/api/hosts/a.example/block", status: 400, text: "body"},
		{name: "block without time", method: "POST", path: "/api/hosts/a.example/block", body: `{}`,
			status: 400, text: "until"},
		{name: "block until null", method: "POST", path: "/api/hosts/a.example/block",
			body: `{"until":null}`, status: 400, text: "until"},
		{name: "block until a number", method: "POST", path: "/api/hosts/a.example/block",
			body: `{"until":1}`, status: 400, text: "until: a JSON number is of the wrong type"},
		{name: "block until nonsense", method: "POST", path: "/api/hosts/a.example/block",
			body: `{"until":"soon"}`, status: 400, text: `"until" is wanted, as in {"until": "20`},
		{name: "block with another key", method: "POST", path: "/api/hosts/a.example/block",
			body: `{"till":"2030-01-01T00:00:00Z"}`, status: 400, text: "till"},
		{name: "block with more", method: "POST", path: "/api/hosts/a.example/block",
			body: `{"until":"2030-01-01T00:00:00Z"} {}`, status: 400, text: "more"},
		{name: "block with a long body", method: "POST", path: "/api/hosts/a.example/block", body: long,
			status: 400, text: "body: it has more than 4096 bytes"},
		{name: "block of no host", method: "POST", path: "/api/hosts/%2e%2e%40/block",
			body: `{"until":"2030-01-01T00:00:00Z"}`, status: 400, text: "is no host"},
		{name: "reload without a file", method: "POST", path: "/api/reload", status: 404, text: "no settings file"},
		{name: "candidates without body", method: "POST", path: "/docindex/candidates", status: 400, text: "max"},
		{name: "broken outcomes", method: "POST", path: "/docindex/outcomes", body: "x", status: 400, text: "line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := *r
			r.t = t
			r.ask(c.method, c.path, c.body).wantError(t, c.status, c.text)
		})
	}
}

func TestMethods(t *testing.T) {
	r := newRig(t, setup{})
	for path, allow := range map[string]string{
		"/":                          "GET, HEAD",
		"/login":                     "GET, HEAD, POST",
		"/logout":                    "POST",
		"/assets/app.js":             "GET, HEAD",
		"/api/live":                  "GET, HEAD",
		"/api/top":                   "GET, HEAD",
		"/api/history":               "GET, HEAD",
		"/api/warnings":              "GET, HEAD",
		"/api/settings":              "GET, HEAD",
		"/api/slots/map":             "GET, HEAD",
		"/api/slots/1":               "GET, HEAD",
		"/api/hosts/a.example/delay": "POST",
		"/healthz":                   "GET, HEAD",
		"/readyz":                    "GET, HEAD",
		"/metrics":                   "GET, HEAD",
		"/api/reload":                "POST",
		"/api/status":                "GET, HEAD",
		"/api/slots":                 "GET, HEAD",
		"/api/hosts/a.example":       "GET, HEAD",
		"/api/hosts/a.example/block": "POST",
		"/api/pause":                 "POST",
		"/api/resume":                "POST",
		"/docindex/candidates":       "POST",
		"/docindex/outcomes":         "POST",
		"/docindex/urls":             "GET, HEAD, POST",
		"/docindex/counts":           "GET, HEAD",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			if strings.Contains(allow, method) {
				continue
			}
			a := r.ask(method, path, "")
			a.wantError(t, http.StatusMethodNotAllowed, method)
			if got := a.Header.Get("Allow"); got != allow {
				t.Errorf("%s %s: Allow is %q; want %q", method, path, got, allow)
			}
		}
	}
	for _, path := range []string{"/", "/healthz", "/metrics", "/api/status", "/api/slots",
		"/api/slots/map", "/api/live", "/assets/app.js"} {
		if a := r.ask("HEAD", path, ""); a.StatusCode != 200 || a.body != "" {
			t.Errorf("HEAD %s: %d with body %q; want 200 without", path, a.StatusCode, a.body)
		}
	}
}

func TestHeaders(t *testing.T) {
	r := newRig(t, setup{})
	for _, path := range []string{"/", "/healthz", "/api/status", "/nothing", "/metrics"} {
		h := r.ask("GET", path, "").Header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") ||
			h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("GET %s: headers %v", path, h)
		}
	}
}

func TestRemoteIndexIsNotServed(t *testing.T) {
	r := newRig(t, setup{remote: true})
	for _, path := range []string{"/docindex/candidates", "/docindex/outcomes", "/docindex/urls", "/docindex/x"} {
		r.ask("POST", path, "{}").wantError(t, 404, "docindex.kind")
	}
	var s status
	if r.into(&s, "GET", "/api/status", ""); s.Index.Embedded {
		t.Error("the index counts as embedded")
	}
}

func TestStoppedDaemon(t *testing.T) {
	r := newRig(t, setup{})
	r.stop()
	for _, path := range []string{"/metrics", "/api/status", "/api/slots", "/api/slots/map", "/api/top",
		"/api/slots/1", "/api/hosts/a.example"} {
		r.ask("GET", path, "").wantError(t, 503, "stopped")
	}
	r.ask("POST", "/api/pause", "").wantError(t, 503, "stopped")
	r.ask("POST", "/api/hosts/a.example/block", `{"until":"2030-01-01T00:00:00Z"}`).wantError(t, 503, "stopped")
	if a := r.ask("GET", "/readyz", ""); a.StatusCode != 503 || !strings.Contains(a.body, "stopped") {
		t.Errorf("readyz: %d %s", a.StatusCode, a.body)
	}
	if a := r.ask("GET", "/healthz", ""); a.StatusCode != 200 {
		t.Errorf("healthz: %d %s", a.StatusCode, a.body)
	}
}

// The embedded index is one that another daemon can use.
func TestDocIndex(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) { c.DocIndex.Batch = 1 }})
	r.ask("POST", "/api/pause", "")
	var up struct{ New, Known, Invalid int }
	r.into(&up, "POST", "/docindex/urls", "http://127.0.0.1/a\nhttp://127.0.0.1/b\nnope\nhttp://127.0.0.1/a\n")
	if up.New != 2 || up.Known != 1 || up.Invalid != 1 {
		t.Errorf("put: %+v; want 2 new, 1 known, 1 invalid", up)
	}
	if a := r.ask("POST", "/docindex/candidates",
		`{"max": 10, "reject": ["127.0.0.1"]}`); a.StatusCode != 200 || a.body != "" {
		t.Errorf("candidates of a rejected host: %s %q", a.Status, a.body)
	}
	if a := r.ask("POST", "/docindex/outcomes", `{"doc_id":"1","outcome":"done"}`); a.StatusCode != 204 {
		t.Errorf("outcomes: %s %q", a.Status, a.body)
	}
}
