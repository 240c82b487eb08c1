package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"
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
		`{"weight":0}`:                        "weight: it has to be above 0",
	} {
		r := httptest.NewRequest("PUT", "/api/crawls/x", strings.NewReader(body))
		if _, err := readCrawl(httptest.NewRecorder(), r); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v; want %s", body, err, want)
		}
	}
}
