package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestToken(t *testing.T) {
	r := newRig(t, setup{token: "secret"})
	for _, c := range []struct {
		name, header string
		good         bool
	}{
		{name: "right", header: "Bearer secret", good: true},
		{name: "scheme in another case", header: "bearer secret", good: true},
		{name: "two spaces", header: "Bearer  secret", good: true},
		{name: "none", header: ""},
		{name: "wrong", header: "Bearer secrex"},
		{name: "only its beginning", header: "Bearer secre"},
		{name: "more", header: "Bearer secrets"},
		{name: "empty", header: "Bearer "},
		{name: "no scheme", header: "secret"},
		{name: "another scheme", header: "Basic c2VjcmV0"},
	} {
		for _, path := range []string{"/", "/readyz", "/metrics", "/api/status", "/api/slots",
			"/api/hosts/a", "/docindex/urls", "/nothing"} {
			a := r.ask("GET", path, "", "Authorization", c.header)
			if good := a.StatusCode != 401; good != c.good {
				t.Errorf("%s: GET %s: %s", c.name, path, a.Status)
			}
			if a.StatusCode == 401 {
				a.wantError(t, 401, "Bearer")
				if a.Header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s: no WWW-Authenticate", c.name)
				}
			}
		}
	}
	for _, path := range []string{"/api/pause", "/docindex/urls"} {
		r.ask("POST", path, "http://127.0.0.1/").wantError(t, 401, "token")
	}
	if n := r.store.Stats().Scheduled + r.store.Stats().InTransit; n != 0 {
		t.Errorf("%d URLs came in without a token", n)
	}
	if a := r.ask("GET", "/healthz", ""); a.StatusCode != 200 {
		t.Errorf("healthz without token: %s", a.Status)
	}
}

func TestCrossSite(t *testing.T) {
	r := newRig(t, setup{listen: "crawl.example:8080"})
	own := r.base
	for _, c := range []struct {
		name   string
		header []string
		good   bool
	}{
		{name: "no browser", good: true},
		{name: "own page", header: []string{"Sec-Fetch-Site", "same-origin", "Origin", own}, good: true},
		{name: "typed in", header: []string{"Sec-Fetch-Site", "none"}, good: true},
		{name: "own page, old browser", header: []string{"Origin", own}, good: true},
		{name: "other site", header: []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://evil.example"}},
		{name: "sister site", header: []string{"Sec-Fetch-Site", "same-site"}},
		{name: "other site, old browser", header: []string{"Origin", "http://evil.example"}},
		{name: "sandboxed page", header: []string{"Origin", "null"}},
	} {
		for _, path := range []string{"/api/pause", "/api/hosts/a.example/block", "/docindex/urls",
			"/docindex/candidates"} {
			// requests that forms can send without a preflight
			a := r.ask("POST", path, `{"max":1,"x":1}`, append([]string{"Content-Type", "text/plain"}, c.header...)...)
			if good := a.StatusCode != 403; good != c.good {
				t.Errorf("%s: POST %s: %s %s", c.name, path, a.Status, a.body)
			}
			if !c.good {
				a.wantError(t, 403, "another site")
			}
		}
	}
}

func TestHostHeader(t *testing.T) {
	for _, c := range []struct {
		host string
		good bool
	}{
		{host: "localhost", good: true},
		{host: "LOCALHOST:8080", good: true},
		{host: "localhost.", good: true},
		{host: "127.0.0.1:1", good: true},
		{host: "10.1.2.3", good: true},
		{host: "[::1]:8080", good: true},
		{host: "[::1]", good: true},
		{host: "crawl.example:8080", good: true},
		{host: "Crawl.Example", good: true},
		{host: "evil.example"},
		{host: "evil.example:8080"},
		{host: "127.0.0.1.evil.example"},
		{host: "localhost.evil.example"},
		{host: "xcrawl.example"},
	} {
		t.Run(c.host, func(t *testing.T) {
			open := newRig(t, setup{listen: "crawl.example:8080"})
			a := open.ask("GET", "/api/status", "", "Host", c.host)
			if good := a.StatusCode == 200; good != c.good {
				t.Errorf("without token: %s", a.Status)
			}
			if !c.good {
				a.wantError(t, 403, "Host header")
			}
			if a := open.ask("GET", "/healthz", "", "Host", c.host); a.StatusCode != 200 {
				t.Errorf("healthz: %s", a.Status)
			}
		})
	}
	guarded := newRig(t, setup{token: "secret"})
	if a := guarded.ask("GET", "/api/status", "", "Host", "crawler.corp.example", "Authorization",
		"Bearer secret"); a.StatusCode != 200 {
		t.Errorf("with a token: %s", a.Status)
	}
}

// TestHostHeaderElsewhere: a listener without token answers no request whose Host or Origin is a
// name that an attacker's DNS can map to it, whatever its address is. Names in http.hosts are the
// operator's own.
func TestHostHeaderElsewhere(t *testing.T) {
	l, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		t.Skip("no listener on all addresses: ", err)
	}
	r := newRig(t, setup{web: l, hosts: []string{"crawler.corp.example."}})
	port := l.Addr().(*net.TCPAddr).Port
	r.base = fmt.Sprintf("http://127.0.0.1:%d", port)
	evil := fmt.Sprintf("evil.example:%d", port)
	r.ask("POST", "/api/pause", "", "Host", evil, "Origin", "http://"+evil).wantError(t, 403, "http.hosts")
	if r.status().Paused {
		t.Error("a foreign Host and Origin paused the daemon")
	}
	own := fmt.Sprintf("Crawler.corp.example:%d", port)
	if a := r.ask("POST", "/api/pause", "", "Host", own, "Origin", "http://"+own); a.StatusCode != 200 {
		t.Errorf("a name of http.hosts: %s %s", a.Status, a.body)
	}
	r.ask("POST", "/api/resume", "", "Host", own, "Origin", "http://"+evil).wantError(t, 403, "another site")
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), method, url, nil)
}

// A client without the token gets one answer per connection. A client with it keeps the connection.
func TestStrangersAreCutOff(t *testing.T) {
	r := newRig(t, setup{token: "secret"})
	for _, c := range []struct {
		path, header string
		close        bool
	}{
		{path: "/healthz", close: true},
		{path: "/api/status", close: true},
		{path: "/api/status", header: "Bearer wrong", close: true},
		{path: "/healthz", header: "Bearer secret"},
		{path: "/api/status", header: "Bearer secret"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", c.header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Close != c.close {
			t.Errorf("%s with %q: the connection ends: %v; want %v", c.path, c.header, resp.Close, c.close)
		}
	}
}
