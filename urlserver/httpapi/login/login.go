// Package login decides who may use the HTTP interface of a daemon that has a token:
// programs that send the token with each request, and people who have entered it on a page
// and whose browser keeps the cookie of a session.
package login

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
)

const (
	// Cookie is the name of the session's cookie.
	Cookie = "urlserver_session"

	// Lasting is how long a session lasts.
	Lasting = 12 * time.Hour
)

// Gate checks the token and holds the sessions, which end with the process. Safe for concurrent
// use.
type Gate struct {
	token  [sha256.Size]byte // its hash
	open   sessions
	failed attempts
}

// New returns a gate for a token.
func New(token string) *Gate {
	return &Gate{token: sha256.Sum256([]byte(token)), open: sessions{by: map[[sha256.Size]byte]time.Time{}}}
}

// Bearer reports whether a request has the token in its Authorization header.
func (g *Gate) Bearer(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && g.Opens(strings.TrimSpace(token))
}

// Opens reports whether token is the gate's token. It compares in constant time, whatever the
// length.
func (g *Gate) Opens(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// Session reports whether a request has the cookie of a session that has not ended.
func (g *Gate) Session(r *http.Request, now time.Time) bool {
	c, err := r.Cookie(Cookie)
	return err == nil && g.open.goesOn(c.Value, now)
}

// Begin begins a session and sets its cookie. Scripts cannot read the cookie, and pages of other
// sites do not send it.
func (g *Gate) Begin(w http.ResponseWriter, r *http.Request, now time.Time) {
	http.SetCookie(w, cookie(r, g.open.begin(now.Add(Lasting)), int(Lasting/time.Second)))
}

// End ends the session of a request, if it has one, and deletes the cookie in the browser.
func (g *Gate) End(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(Cookie); err == nil {
		g.open.end(c.Value)
	}
	http.SetCookie(w, cookie(r, "", -1))
}

// cookie returns the session's cookie. It is for TLS only if the browser uses TLS: to this server,
// or, by the request's Origin header, to a proxy in front of it.
func cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: Cookie, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil ||
			strings.HasPrefix(r.Header.Get("Origin"), "https://"),
	}
}

// OwnPage reports whether the browser's headers say that a page of this server made the request.
// A request with a cookie that changes something has to pass this test. Such a request comes from
// a browser, and every browser sends one of the two headers with it.
func OwnPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	_, host, ok := strings.Cut(r.Header.Get("Origin"), "://")
	return ok && host != "" && strings.EqualFold(host, r.Host)
}

// Try reports whether a token that somebody at addr entered on the page is right. After too
// many wrong tokens the address has to wait: then wait is above 0 and the token was not compared.
func (g *Gate) Try(addr, token string, now time.Time) (ok bool, wait time.Duration) {
	if wait := g.failed.take(addr, now); wait > 0 {
		return false, wait
	}
	if !g.Opens(token) {
		return false, 0
	}
	g.failed.clear(addr)
	return true, 0
}
