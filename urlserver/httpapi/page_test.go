package httpapi

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"urlserver/urlserver/httpapi/login"
)

// What pages need comes from this server, and its policy allows nothing else.
func TestPages(t *testing.T) {
	r := newRig(t, setup{token: "secret"})
	for path, header := range map[string]string{"/": "Bearer secret", "/login": ""} {
		a := r.ask("GET", path, "", "Authorization", header)
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("GET %s: %s, %s", path, a.Status, a.Header.Get("Content-Type"))
		}
		policy := a.Header.Get("Content-Security-Policy")
		for _, bad := range []string{"unsafe", "*", "http:", "data:"} {
			if strings.Contains(policy, bad) {
				t.Errorf("GET %s: policy %q is lax", path, policy)
			}
		}
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'",
			"base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("GET %s: policy %q; want %s in it", path, policy, want)
			}
		}
		for _, bad := range []string{"style=", "<style", "<iframe", "javascript:"} {
			if strings.Contains(strings.ToLower(tags(a.body)), bad) {
				t.Errorf("GET %s: the page has %q", path, bad)
			}
		}
		if m := regexp.MustCompile(` on[a-z]+=`).FindString(tags(a.body)); m != "" {
			t.Errorf("GET %s: the page has %s", path, m)
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
			if !strings.HasPrefix(m[1], "/") && !strings.HasPrefix(m[1], "#") {
				t.Errorf("GET %s: the page refers to %s", path, m[1])
			}
			if !strings.HasPrefix(m[1], assetsPath) {
				continue
			}
			asset := r.ask("GET", m[1], "")
			if asset.StatusCode != 200 || asset.body == "" {
				t.Errorf("GET %s: %s", m[1], asset.Status)
			}
			again := r.ask("GET", m[1], "", "If-None-Match", asset.Header.Get("ETag"))
			if again.StatusCode != http.StatusNotModified {
				t.Errorf("GET %s again: %s", m[1], again.Status)
			}
		}
	}
}

// tags is the markup of a page without the text between.
func tags(body string) string {
	return strings.Join(regexp.MustCompile(`<[^>]*>`).FindAllString(body, -1), "")
}

func TestAssets(t *testing.T) {
	r := newRig(t, setup{})
	files, err := web.ReadDir("web")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		a := r.ask("GET", assetsPath+f.Name(), "")
		if page := strings.HasSuffix(f.Name(), ".html"); page != (a.StatusCode == 404) || !page && a.StatusCode != 200 {
			t.Errorf("GET %s: %s", f.Name(), a.Status)
		}
	}
	for _, name := range []string{"", "none.js", "..%2fpage.go", "%2e%2e/page.go"} {
		if a := r.ask("GET", assetsPath+name, ""); a.StatusCode == 200 {
			t.Errorf("GET %s: %s", name, a.Status)
		}
	}
}

func TestLogin(t *testing.T) {
	r := newRig(t, setup{token: "secret"})
	own := []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}
	if a := r.ask("GET", "/", "", "Accept", "text/html,*/*"); a.StatusCode != 303 ||
		a.Header.Get("Location") != "/login" {
		t.Fatalf("a browser without session: %s to %q", a.Status, a.Header.Get("Location"))
	}
	if a := r.ask("POST", "/login", "token=wrong", own...); a.StatusCode != 403 ||
		!strings.Contains(a.body, "not the token") || a.Header.Get("Set-Cookie") != "" {
		t.Errorf("wrong token: %s", a.Status)
	}
	r.ask("POST", "/login", "token=secret", "Content-Type", own[1], "Sec-Fetch-Site",
		"cross-site").wantError(t, 403, "another site")
	a := r.ask("POST", "/login", "token=secret", own...)
	if a.StatusCode != 303 || a.Header.Get("Location") != "/" {
		t.Fatalf("right token: %s %s", a.Status, a.body)
	}
	cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(cookie, login.Cookie+"=") {
		t.Fatalf("Set-Cookie: %q", a.Header.Get("Set-Cookie"))
	}
	for _, path := range []string{"/", "/api/status", "/metrics"} {
		if a := r.ask("GET", path, "", "Cookie", cookie); a.StatusCode != 200 {
			t.Errorf("GET %s with the session: %s", path, a.Status)
		}
	}
	if a := r.ask("GET", "/", "", "Cookie", cookie); strings.Contains(a.body, noLogout) {
		t.Error("nobody can log out")
	}
	for _, c := range []struct {
		name   string
		header []string
		status int
	}{
		{name: "own page", header: []string{"Sec-Fetch-Site", "same-origin"}, status: 200},
		{name: "own page, old browser", header: []string{"Origin", r.base}, status: 200},
		{name: "nothing said", status: 403},
		{name: "sister site", header: []string{"Sec-Fetch-Site", "same-site"}, status: 403},
		{name: "other site", header: []string{"Sec-Fetch-Site", "cross-site"}, status: 403},
		{name: "other origin", header: []string{"Origin", "http://evil.example"}, status: 403},
	} {
		for _, path := range []string{"/api/pause", "/docindex/urls"} {
			if a := r.ask("POST", path, "", append([]string{"Cookie", cookie},
				c.header...)...); a.StatusCode != c.status {
				t.Errorf("%s: POST %s: %s %s", c.name, path, a.Status, a.body)
			}
		}
	}
	out := r.ask("POST", "/logout", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	if out.StatusCode != 303 || !strings.Contains(out.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("log out: %s, %s", out.Status, out.Header.Get("Set-Cookie"))
	}
	r.ask("GET", "/api/status", "", "Cookie", cookie).wantError(t, 401, "Bearer")
}

func TestLoginIsLimited(t *testing.T) {
	r := newRig(t, setup{token: "secret"})
	form := []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}
	for range 5 {
		r.ask("POST", "/login", "token=wrong", form...)
	}
	a := r.ask("POST", "/login", "token=secret", form...)
	if a.StatusCode != 429 || a.Header.Get("Retry-After") == "" || a.Header.Get("Set-Cookie") != "" {
		t.Errorf("the sixth attempt: %s", a.Status)
	}
	if a := r.ask("GET", "/api/status", "", "Authorization", "Bearer secret"); a.StatusCode != 200 {
		t.Errorf("a program meanwhile: %s", a.Status)
	}
}

// TestFailedLoginsLeaveRoom: they are one line a minute in the log, so that other warnings stay on
// the dashboard.
func TestFailedLoginsLeaveRoom(t *testing.T) {
	recent := NewWarnings()
	r := newRig(t, setup{token: "secret", recent: recent})
	r.server.log.Warn().Msg("the disk is nearly full")
	for range 2 * keptWarnings {
		r.ask("POST", "/login", "token=wrong", "Content-Type", "application/x-www-form-urlencoded",
			"Sec-Fetch-Site", "same-origin")
	}
	list, _ := recent.after(0, keptWarnings)
	// 3: over a minute
	if len(list) < 2 || len(list) > 3 || list[0].Text != "the disk is nearly full" ||
		!strings.Contains(list[1].Text, "log in") {
		t.Errorf("warnings are %+v; want the one of before, and one of attempts to log in", list)
	}
	var f failures
	noon := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	told := 0
	for i := range 600 {
		if hidden, tell := f.count(noon.Add(time.Duration(i) * time.Second)); tell {
			if told++; told > 1 && hidden != 59 {
				t.Errorf("line %d says %d more; want 59", told, hidden)
			}
		}
	}
	if told != 10 {
		t.Errorf("%d lines in ten minutes; want 10", told)
	}
}

func TestLoginWithoutToken(t *testing.T) {
	r := newRig(t, setup{})
	for _, method := range []string{"GET", "POST"} {
		if a := r.ask(method, "/login", ""); a.StatusCode != 303 || a.Header.Get("Location") != "/" {
			t.Errorf("%s: %s", method, a.Status)
		}
	}
}
