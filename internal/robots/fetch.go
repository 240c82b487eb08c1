package robots

import (
	"net/http"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// maxRedirects is the least number that RFC 9309, section 2.3.1.2, requires, across authorities.
const maxRedirects = 5

// Fetch is the state of fetching the robots.txt of an origin, redirects included. The rules at the
// end of the redirects apply to the origin at their beginning. A Fetch is a value: its methods do
// not change it.
type Fetch struct {
	origin string
	url    string
	hops   int
}

// NewFetch starts at the robots.txt of origin, "http://host[:port]".
func NewFetch(origin string) Fetch {
	return Fetch{origin: origin, url: origin + "/robots.txt"}
}

// Origin returns the origin to which the rules apply.
func (t Fetch) Origin() string { return t.origin }

// Redirected reports whether the fetch has followed a redirect.
func (t Fetch) Redirected() bool { return t.hops > 0 }

// URL returns the URL of the next request. After a redirect the host may differ; the caller
// resolves and checks it as any other.
func (t Fetch) URL() string { return t.url }

// Answer processes the response to the request for URL. If done is false, next is the Fetch after a
// redirect. Otherwise final is the response for [Policy.Settle]. One redirect too many, or one to
// another scheme than http and https, is final: the robots.txt is then unavailable.
func (t Fetch) Answer(resp Response) (next Fetch, final Response, done bool) {
	if !isRedirect(resp.Status) || !isWeb(resp.Location) || t.hops == maxRedirects {
		return t, resp, true
	}
	return Fetch{origin: t.origin, url: resp.Location, hops: t.hops + 1}, Response{}, false
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

func isWeb(url string) bool {
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}

// maxLocation bounds the URL of a redirect in bytes, to what fits in a line of the line protocol.
const maxLocation = 8 << 10

// resolveLocation resolves the Location header of a response from url by the WHATWG URL standard.
// It removes fragment and credentials. It returns "" for an unusable location.
func resolveLocation(url, location string) string {
	if location == "" || len(location) > maxLocation {
		return ""
	}
	u, err := whatwg.ParseRef(url, location)
	if err != nil {
		return ""
	}
	u.SetUsername("")
	u.SetPassword("")
	target := u.Href(true)
	if len(target) > maxLocation || !isWeb(target) || strings.ContainsFunc(target, isNotVisible) {
		return ""
	}
	return target
}

func isNotVisible(r rune) bool { return r <= ' ' || r > '~' }
