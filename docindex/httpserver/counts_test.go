package httpserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

func TestCounts(t *testing.T) {
	s := memory.New()
	call(s, "POST", "urls", `{"url":"http://a.example/"}`+"\n"+`{"url":"http://a.example/","crawl":"c d"}`)
	call(s, "POST", "candidates", `{"max":1}`)
	for query, want := range map[string]docindex.Progress{
		"": {Scheduled: 1, InFlight: 1}, "?crawl=none": {},
	} {
		a := call(s, "GET", "counts"+query, "")
		var got docindex.Progress
		if err := json.Unmarshal(a.Body.Bytes(), &got); a.Code != http.StatusOK || err != nil || got != want {
			t.Errorf("counts%s: %d %s; want %+v", query, a.Code, a.Body, want)
		}
	}
	sum := docindex.Progress{}
	for _, crawl := range []string{"c+d", "DEFAULT"} {
		var one docindex.Progress
		json.Unmarshal(call(s, "GET", "counts?crawl="+crawl, "").Body.Bytes(), &one)
		if one.Scheduled+one.InFlight != 1 {
			t.Errorf("crawl %s: %+v; want one document", crawl, one)
		}
		sum.Scheduled, sum.InFlight = sum.Scheduled+one.Scheduled, sum.InFlight+one.InFlight
	}
	if sum != (docindex.Progress{Scheduled: 1, InFlight: 1}) {
		t.Errorf("both crawls: %+v", sum)
	}
	wantError(t, call(s, "POST", "counts", ""), http.StatusMethodNotAllowed, "GET")
}
