// Package login decides who may use the HTTP side of a daemon that has a token: programs
// that send it with each request, and people who have given it once, on a page, and whose
// browser keeps a signed cookie since.
package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
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

// Gate knows the token and its sessions, which end with the process: the key that signs
// them is made by New. Safe for concurrent use.
type Gate struct {
	token  [sha256.Size]byte // its hash
	key    [32]byte
	failed attempts
}

// New returns a gate that the given token opens.
func New(token string) *Gate {
	g := &Gate{token: sha256.Sum256([]byte(token))}
	rand.Read(g.key[:])
	return g
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
	if err != nil {
		return false
	}
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(b) != 8+sha256.Size || !hmac.Equal(b[8:], g.sign(b[:8])) {
		return false
	}
	return now.Unix() < int64(binary.BigEndian.Uint64(b))
}

func (g *Gate) sign(text []byte) []byte {
	m := hmac.New(sha256.New, g.key[:])
	m.Write(text)
	return m.Sum(nil)
}

// Begin begins a session: no script reads its cookie, no other site's page sends it.
func (g *Gate) Begin(w http.ResponseWriter, r *http.Request, now time.Time) {
	until := binary.BigEndian.AppendUint64(nil, uint64(now.Add(Lasting).Unix()))
	value := base64.RawURLEncoding.EncodeToString(append(until, g.sign(until)...))
	http.SetCookie(w, cookie(r, value, int(Lasting/time.Second)))
}

// End has the browser forget its session.
func End(w http.ResponseWriter, r *http.Request) { http.SetCookie(w, cookie(r, "", -1)) }

func cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: Cookie, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
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
