package robots

import (
	"net/http"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// maxRedirects is how many RFC 9309, section 2.3.1.2, asks to follow at least, across authorities.
const maxRedirects = 5

// Trip follows the robots.txt of one origin through its redirects. The rules at its end bind the
// origin where it began. It is a value: methods change nothing.
type Trip struct {
	origin string
	url    string
	hops   int
}

// NewTrip starts at the robots.txt of origin, "http://host[:port]".
func NewTrip(origin string) Trip {
	return Trip{origin: origin, url: origin + "/robots.txt"}
}

// Origin returns whom the rules are for.
func (t Trip) Origin() string { return t.origin }

// URL returns the next request. Its host is another one after a redirect, to be resolved and
// checked like any.
func (t Trip) URL() string { return t.url }

// Answer takes the response to the request for URL. Either done is false and next says how to go
// on, or final is the response for [Policy.Settle]. A redirect too many, or to what is not http or
// https, is final as it is, which leaves robots.txt unavailable.
func (t Trip) Answer(resp Response) (next Trip, final Response, done bool) {
	if !isRedirect(resp.Status) || !isWeb(resp.Location) || t.hops == maxRedirects {
		return t, resp, true
	}
	return Trip{origin: t.origin, url: resp.Location, hops: t.hops + 1}, Response{}, false
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

// maxLocation bounds a redirect's target: what fits a line of the spider's protocol.
const maxLocation = 8 << 10

// resolveLocation returns where a Location header of url leads, as the WHATWG URL standard
// serialises it, without fragment and credentials; "" where it is unusable.
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
