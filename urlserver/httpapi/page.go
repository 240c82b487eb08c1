package httpapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	loginPath  = "/login"
	assetsPath = "/assets/"

	// closedPolicy is the Content-Security-Policy of all that is no page.
	closedPolicy = "default-src 'none'; frame-ancestors 'none'"

	// pagePolicy lets a page load this server's own files, and nothing inline.
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

//go:embed web
var web embed.FS

// Placeholders in pages.
const (
	// in login.html: for the reason of a failed login
	noFault  = `<p id="fault" hidden></p>`
	noLogout = `<form id="logout" method="post" action="/logout" hidden>` // in index.html: shown in a session only
)

// serveDashboard serves the dashboard's page; its scripts fetch the data.
func (s *Server) serveDashboard(w http.ResponseWriter, r *http.Request) error {
	if s.gate != nil && s.gate.Session(r, time.Now()) {
		return page(w, http.StatusOK, "index.html", noLogout, strings.Replace(noLogout, " hidden", "", 1))
	}
	return page(w, http.StatusOK, "index.html", "", "")
}

// page answers with a page of web, in which text replaces old.
func page(w http.ResponseWriter, status int, name, old, text string) error {
	body, err := web.ReadFile("web/" + name)
	if err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	if old != "" {
		body = bytes.Replace(body, []byte(old), []byte(text), 1)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Referrer-Policy", "same-origin") // forms need an Origin header
	w.WriteHeader(status)
	_, _ = w.Write(body) // who has gone needs no answer
	return nil
}

// mediaTypes are the media types of assets, independent of the machine's own table.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// serveAsset serves styles, scripts and images, which need no token.
func serveAsset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	body, err := web.ReadFile("web/" + name)
	media, ok := mediaTypes[path.Ext(name)]
	if err != nil || !ok {
		return httpError{http.StatusNotFound, "no such path"}
	}
	sum := sha256.Sum256(body)
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache") // browsers keep it and ask whether it has changed
	h.Set("ETag", fmt.Sprintf(`"%x"`, sum[:16]))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	return nil
}

func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request) error {
	if s.gate == nil || s.gate.Session(r, time.Now()) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return nil
	}
	return page(w, http.StatusOK, "login.html", "", "")
}

// login checks the token of the login page's form and begins a session.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	if s.gate == nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return badRequestf("body: %v", err)
	}
	ok, wait := s.gate.Try(r.RemoteAddr, strings.TrimSpace(r.PostForm.Get("token")), time.Now())
	switch {
	case wait > 0:
		seconds := strconv.Itoa(int(wait/time.Second) + 1)
		w.Header().Set("Retry-After", seconds)
		s.failedLogin(r.RemoteAddr)
		return page(w, http.StatusTooManyRequests, "login.html", noFault,
			faultText("Too many attempts. Try again in "+seconds+" s."))
	case !ok:
		s.failedLogin(r.RemoteAddr)
		return page(w, http.StatusForbidden, "login.html", noFault,
			faultText("This is not the token. It stands in the settings, as http.token."))
	}
	s.gate.Begin(w, r, time.Now())
	s.log.Info().Str("by", r.RemoteAddr).Msg("operator logs in")
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// failedLogin logs failed logins, at most one line a minute, so that they do not drive other
// warnings out of the list.
func (s *Server) failedLogin(by string) {
	if n, tell := s.failed.count(time.Now()); tell {
		s.log.Warn().Str("by", by).Int("not_shown", n).Msg("somebody tried to log in with a wrong token, or too often")
	}
}

// failures counts events that are logged once a minute.
type failures struct {
	mu       sync.Mutex
	reported time.Time
	hidden   int
}

// count counts one event. tell: log it, with the number of those that were not logged since the
// last.
func (f *failures) count(now time.Time) (hidden int, tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.reported.IsZero() && now.Sub(f.reported) < time.Minute {
		f.hidden++
		return 0, false
	}
	hidden, f.hidden, f.reported = f.hidden, 0, now
	return hidden, true
}

func faultText(why string) string { return `<p id="fault" role="alert">` + why + `</p>` }

func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if s.gate != nil {
		s.gate.End(w, r)
	}
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
	return nil
}
