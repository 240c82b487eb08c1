// Package login decides who may use the HTTP side of a daemon that has a token: programs
// that send it with each request, and people who have given it once, on a page, and whose
// browser keeps a session's cookie since.
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

// Gate knows the token and its sessions, which end with the process. Safe for concurrent use.
type Gate struct {
	token  [sha256.Size]byte // its hash
	open   sessions
	failed attempts
}

// New returns a gate that the given token opens.
func New(token string) *Gate {
	return &Gate{token: sha256.Sum256([]byte(token)), open: sessions{by: map[[sha256.Size]byte]time.Time{}}}
}

// Bearer tells whether a request brings the token itself.
func (g *Gate) Bearer(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && g.Opens(strings.TrimSpace(token))
}

// Opens compares in constant time, whatever the length.
func (g *Gate) Opens(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// Session tells whether a request comes with the cookie of a session that goes on.
func (g *Gate) Session(r *http.Request, now time.Time) bool {
	c, err := r.Cookie(Cookie)
	return err == nil && g.open.goesOn(c.Value, now)
}

// Begin begins a session: no script reads its cookie, no other site's page sends it.
func (g *Gate) Begin(w http.ResponseWriter, r *http.Request, now time.Time) {
	http.SetCookie(w, cookie(r, g.open.begin(now.Add(Lasting)), int(Lasting/time.Second)))
}

// End ends the session that a request comes with, if any, and has the browser forget it.
func (g *Gate) End(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(Cookie); err == nil {
		g.open.end(c.Value)
	}
	http.SetCookie(w, cookie(r, "", -1))
}

// cookie is for TLS only where the browser's own word is that it speaks TLS, also to a proxy before this server.
func cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: Cookie, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://"),
	}
}

// OwnPage tells whether a browser says that a page of this very server is behind a request.
// A request with a cookie is a browser's, and what changes something has to pass this: each
// browser sends one of the two headers with it.
func OwnPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	_, host, ok := strings.Cut(r.Header.Get("Origin"), "://")
	return ok && host != "" && strings.EqualFold(host, r.Host)
}

// Try tells whether a token that somebody at addr gives on the page is right; wait is how
// long that address is not listened to, since it was wrong too often. Where wait is not 0 the
// token was not looked at.
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
