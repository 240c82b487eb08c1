package login

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func request(header ...string) *http.Request {
	r := httptest.NewRequest("POST", "http://crawl.example:8080/api/pause", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// session is the cookie that a gate gives, as its header.
func session(g *Gate) string {
	w := httptest.NewRecorder()
	g.Begin(w, request(), noon)
	return w.Header().Get("Set-Cookie")
}

func TestSession(t *testing.T) {
	g := New("secret")
	header := session(g)
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", fmt.Sprint("Max-Age=", 12*3600)} {
		if !strings.Contains(header, want) {
			t.Errorf("Set-Cookie: %s; want %s in it", header, want)
		}
	}
	pair, _, _ := strings.Cut(header, ";")
	name, value, _ := strings.Cut(pair, "=")
	for _, c := range []struct {
		name, cookie string
		gate         *Gate
		at           time.Time
		good         bool
	}{
		{name: "at once", cookie: pair, gate: g, at: noon, good: true},
		{name: "at its last second", cookie: pair, gate: g, at: noon.Add(Lasting - time.Second), good: true},
		{name: "over", cookie: pair, gate: g, at: noon.Add(Lasting)},
		{name: "of another start", cookie: pair, gate: New("secret"), at: noon},
		{name: "changed", cookie: name + "=x" + value[1:], gate: g, at: noon},
		{name: "cut", cookie: pair[:len(pair)-2], gate: g, at: noon},
		{name: "empty", cookie: name + "=", gate: g, at: noon},
		{name: "the token", cookie: name + "=secret", gate: g, at: noon},
		{name: "none", cookie: "other=" + value, gate: g, at: noon},
	} {
		if got := c.gate.Session(request("Cookie", c.cookie), c.at); got != c.good {
			t.Errorf("%s: Session = %v; want %v", c.name, got, c.good)
		}
	}
}

func TestEnd(t *testing.T) {
	g := New("secret")
	one, _, _ := strings.Cut(session(g), ";")
	other, _, _ := strings.Cut(session(g), ";") // of the same second
	w := httptest.NewRecorder()
	g.End(w, request("Cookie", one))
	if got := w.Header().Get("Set-Cookie"); !strings.Contains(got, Cookie+"=;") ||
		!strings.Contains(got, "Max-Age=0") {
		t.Errorf("End sets %s", got)
	}
	if g.Session(request("Cookie", one), noon) {
		t.Error("a session that was ended goes on")
	}
	if !g.Session(request("Cookie", other), noon) {
		t.Error("another session has ended, too")
	}
	g.End(httptest.NewRecorder(), request()) // without one nothing happens
}

// However often somebody logs in, the memory for that is bounded: the oldest session ends.
func TestSessionsAreBounded(t *testing.T) {
	g := New("secret")
	var pairs []string
	for i := range maxSessions + 1 {
		w := httptest.NewRecorder()
		g.Begin(w, request(), noon.Add(time.Duration(i)*time.Millisecond))
		pair, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
		pairs = append(pairs, pair)
	}
	for i, pair := range pairs {
		if got := g.Session(request("Cookie", pair), noon.Add(time.Hour)); got != (i > 0) {
			t.Errorf("session %d goes on: %v", i, got)
		}
	}
}

// The cookie is for TLS only where the browser speaks that, to whomever; what a proxy says about it
// does not count.
func TestSecure(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		secure bool
	}{
		{name: "plain", header: []string{"Origin", "http://crawl.example:8080"}},
		{name: "a proxy with TLS", header: []string{"Origin", "https://crawl.example"}, secure: true},
		{name: "an old browser"},
		{name: "only a proxy says so", header: []string{"X-Forwarded-Proto", "https", "Forwarded",
			"proto=https"}},
	} {
		w := httptest.NewRecorder()
		New("secret").Begin(w, request(c.header...), noon)
		if got := strings.Contains(w.Header().Get("Set-Cookie"), "Secure"); got != c.secure {
			t.Errorf("%s: Secure = %v; want %v", c.name, got, c.secure)
		}
	}
}

func TestOwnPage(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		good   bool
	}{
		{name: "same origin", header: []string{"Sec-Fetch-Site", "same-origin"}, good: true},
		{name: "old browser", header: []string{"Origin", "http://crawl.example:8080"}, good: true},
		{name: "no browser says nothing", header: nil},
		{name: "typed in", header: []string{"Sec-Fetch-Site", "none"}},
		{name: "sister site", header: []string{"Sec-Fetch-Site", "same-site", "Origin",
			"http://crawl.example:8080"}},
		{name: "other site", header: []string{"Sec-Fetch-Site", "cross-site"}},
		{name: "other origin", header: []string{"Origin", "http://evil.example"}},
		{name: "other port", header: []string{"Origin", "http://crawl.example"}},
		{name: "sandbox", header: []string{"Origin", "null"}},
	} {
		if got := OwnPage(request(c.header...)); got != c.good {
			t.Errorf("%s: OwnPage = %v; want %v", c.name, got, c.good)
		}
	}
}

func TestAttempts(t *testing.T) {
	g := New("secret")
	try := func(addr, token string, at time.Time, ok bool, wait time.Duration) {
		t.Helper()
		if gotOK, gotWait := g.Try(addr, token, at); gotOK != ok || gotWait != wait {
			t.Errorf("Try(%s, %s) = %v, %v; want %v, %v", addr, token, gotOK, gotWait, ok, wait)
		}
	}
	for range maxAttempts {
		try("192.0.2.1:1", "wrong", noon, false, 0)
	}
	try("192.0.2.1:2", "secret", noon.Add(time.Second), false, window-time.Second) // though it is right
	try("192.0.2.2:1", "secret", noon.Add(time.Second), true, 0)                   // somebody else
	try("192.0.2.1:3", "secret", noon.Add(window), true, 0)
	for range 2 * maxAttempts { // who gets in begins anew
		try("192.0.2.1:3", "secret", noon.Add(window), true, 0)
	}
	for i := range maxAttempts { // one holder, many addresses
		try(fmt.Sprintf("[2001:db8::%x]:1", i), "wrong", noon, false, 0)
	}
	try("[2001:db8::ff]:1", "secret", noon, false, window)
	try("[2001:db8:0:1::1]:1", "secret", noon, true, 0)
}

// However many addresses try, the memory for them is bounded, and they get no further.
func TestAttemptsOfMany(t *testing.T) {
	g := New("secret")
	looked := 0
	for i := range 5 * maxAddrs {
		if _, wait := g.Try(fmt.Sprintf("10.1.%d.%d:1", i/256, i%256), "wrong", noon); wait == 0 {
			looked++
		}
	}
	if looked != maxAddrs+maxAttempts || len(g.failed.by) > maxAddrs+1 {
		t.Errorf("%d attempts looked at, %d addresses remembered; want %d and at most %d", looked,
			len(g.failed.by), maxAddrs+maxAttempts, maxAddrs+1)
	}
	if ok, _ := g.Try("192.0.2.1:1", "secret", noon.Add(window)); !ok {
		t.Error("a minute later nobody gets in")
	}
}
