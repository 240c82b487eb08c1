package httpapi

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"urlserver/docindex/scoped"
)

// What is wrong with the scope in a request is named with its place.
func TestBadScope(t *testing.T) {
	for body, want := range map[string]string{
		`{"scope":{"until":"nope"}}`: `scope.until: "nope" is no date and time as in RFC 3339, ` +
			"for instance 2030-01-01T00:00:00Z",
		`{"scope":{"domains":["http://a/"]}}`: "scope.domains[0]: ",
		`{"scope":{"domains":["a",2]}}`:       "scope.domains[1]: a JSON number is of the wrong type",
		`{"scope":{"max_pages":"many"}}`:      "scope.max_pages: a JSON string is of the wrong type",
		`{"scope":[]}`:                        "scope: a JSON array; an object is wanted",
		`null`:                                "body: a JSON null; an object is wanted",
		`{"weight":0}`:                        "weight: it has to be from 0.001 to 1000",
		`{"weight":"1"}`:                      "body: weight: a JSON string is of the wrong type",
	} {
		r := httptest.NewRequest("PUT", "/api/crawls/x", strings.NewReader(body))
		if _, err := readCrawl(httptest.NewRecorder(), r); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v; want %s", body, err, want)
		}
	}
}

// Null says nothing, as clients write it for what they do not set.
func TestNullScope(t *testing.T) {
	r := httptest.NewRequest("PUT", "/api/crawls/x", strings.NewReader(`{"scope":null,"weight":4}`))
	to, err := readCrawl(httptest.NewRecorder(), r)
	if err != nil || to.Scope != nil || to.Weight != 4 {
		t.Errorf("%+v, %v; want a weight and no scope", to, err)
	}
}

// A crawl ID is text that URL Frontier clients and settings can say, too.
func TestBadCrawlID(t *testing.T) {
	s := &Server{scopes: &scoped.Store{}}
	for id, good := range map[string]bool{
		"news": true, "ü \x01": true, strings.Repeat("x", maxCrawlID): true,
		"a\x00b": false, "\x00": false, "\xff": false, strings.Repeat("x", maxCrawlID+1): false,
	} {
		r := httptest.NewRequest("GET", "/api/crawls/x", nil)
		r.SetPathValue("crawl", id)
		_, err := s.crawlID(r)
		if bad, is := errors.AsType[httpError](err); good != (err == nil) || is && bad.status != 400 {
			t.Errorf("%.20q: %v; want it taken: %v", id, err, good)
		}
	}
}
