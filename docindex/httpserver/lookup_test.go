package httpserver_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// shown is the answer about a document.
type shown struct {
	DocID                  string `json:"doc_id"`
	URL, State, Crawl, Key string
	Due, At                *time.Time
	Outcome                *string
	Status                 *int
}

// show returns the answer about a URL; form are its crawl and key.
func show(t *testing.T, s docindex.Store, rawURL string, form ...string) shown {
	t.Helper()
	q := url.Values{"url": {rawURL}}
	for i := 0; i+1 < len(form); i += 2 {
		q.Set(form[i], form[i+1])
	}
	w := call(s, "GET", "urls?"+q.Encode(), "")
	var d shown
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != 200 {
		t.Fatalf("%s %q: %d %s", rawURL, form, w.Code, w.Body)
	}
	return d
}

// text returns what changes in the life of a document.
func (d shown) text() string {
	at := func(t *time.Time) string {
		if t == nil {
			return "null"
		}
		return t.Format(time.RFC3339)
	}
	outcome, status := "null", "null"
	if d.Outcome != nil {
		outcome = *d.Outcome
	}
	if d.Status != nil {
		status = fmt.Sprint(*d.Status)
	}
	return fmt.Sprintf("%s, due %s, %s %s at %s", d.State, at(d.Due), outcome, status, at(d.At))
}

func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at 2000-01-01
		s := memory.New()
		const u = "http://a.example/x"
		want := func(text string) {
			t.Helper()
			if got := show(t, s, u).text(); got != text {
				t.Errorf("it is %s; want %s", got, text)
			}
		}
		putBody(t, s, u)
		time.Sleep(time.Minute)
		want("scheduled, due 2000-01-01T00:00:00Z, null null at null")
		call(s, "POST", "candidates", `{"max":1}`)
		want("in transit, due null, null null at null")
		var o docindex.Outcomes
		end := func(out docindex.Outcome) {
			out.DocID, out.URL = []byte("1"), []byte(u)
			o.Reset()
			o.Add(out)
			if err := s.Outcomes(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
		}
		end(docindex.Outcome{Status: 503, Again: time.Now().Unix() + 60})
		want("scheduled, due 2000-01-01T00:02:00Z, done 503 at 2000-01-01T00:01:00Z")
		time.Sleep(time.Minute)
		call(s, "POST", "candidates", `{"max":1}`)
		want("in transit, due null, done 503 at 2000-01-01T00:01:00Z")
		end(docindex.Outcome{Status: 0, Again: 1 << 62})
		want("scheduled, due 9999-12-31T23:59:59Z, done 0 at 2000-01-01T00:02:00Z")
		end(docindex.Outcome{Kind: docindex.Stopped, NoStatus: true})
		want("completed, due null, stopped null at 2000-01-01T00:02:00Z")
	})
}

// TestShowFinds looks for URLs in the forms in which they were put, and in others.
func TestShowFinds(t *testing.T) {
	s := memory.New()
	putBody(t, s, `{"url":"http://a.example/x","doc_id":"plain"}
{"url":"http://a.example/x","doc_id":"crawl","crawl":"news & more"}
{"url":"http://a.example/x","doc_id":"key","key":"k"}
{"url":"http://xn--bcher-kva.example/","doc_id":"idn","metadata":{"spiderid":["link"]}}`)
	var exact docindex.Puts
	for _, put := range []docindex.Put{
		{URL: []byte("HTTP://Odd.example"), DocID: []byte("odd")},
		{URL: []byte("no URL at all"), DocID: []byte("text"), Key: []byte("k")},
	} {
		if err := exact.AddExact(put, docindex.HostOf(put.URL)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &exact); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url    string
		form   []string
		id, in string
	}{
		{url: "http://a.example/x", id: "plain"},
		{url: "HTTP://A.EXAMPLE:80/y/../x#fragment", id: "plain"},
		{url: "http://a.example/x", form: []string{"crawl", "DEFAULT"}, id: "plain"},
		{url: "http://a.example/x", form: []string{"key", "a.example"}, id: "plain"},
		{url: "http://a.example/x", form: []string{"crawl", "news & more"}, id: "crawl", in: "news & more"},
		{url: "http://a.example/x", form: []string{"key", "k"}, id: "key"},
		{url: "http://bücher.example", id: "idn"},
		{url: "HTTP://Odd.example", id: "odd"},
		{url: "no URL at all", form: []string{"key", "k"}, id: "text"},
	} {
		d := show(t, s, c.url, c.form...)
		in := c.in
		if in == "" {
			in = "DEFAULT"
		}
		if d.DocID != c.id || d.Crawl != in {
			t.Errorf("%s %q is %s of crawl %s; want %s of %s", c.url, c.form, d.DocID, d.Crawl, c.id, in)
		}
		if w := call(s, "GET", "urls/"+d.DocID, ""); w.Body.String() != call(s, "GET",
			"urls?"+url.Values{"url": {d.URL}, "crawl": {d.Crawl}, "key": {d.Key}}.Encode(), "").Body.String() {
			t.Errorf("%s: by DOC_ID it is %s", c.id, w.Body)
		}
	}
}

// TestShowFindsBytes looks for a URL in Latin-1, which a put takes.
func TestShowFindsBytes(t *testing.T) {
	s := memory.New()
	const u = "http://a.example/caf\xe9"
	putBody(t, s, u)
	if d := show(t, s, u); d.DocID != "1" {
		t.Errorf("found is %+v; want what was put", d)
	}
}

func TestShowRefuses(t *testing.T) {
	s := memory.New()
	wantError(t, call(s, "GET", "urls", ""), 400, "no url")
	wantError(t, call(s, "GET", "urls?url=ftp://a.example/", ""), 400, "")
	wantError(t, call(s, "GET", "urls?url=http://a.example/x%23y", ""), 404,
		`url "http://a.example/x#y" of crawl "DEFAULT": no such document`)
	wantError(t, call(s, "GET", "urls?url=http://a.example/&crawl=c&key=k", ""), 404,
		`of crawl "c" with key "k": no such document`)
	wantError(t, call(s, "GET", "urls/nobody", ""), 404, "no such document")
	if w := call(s, "HEAD", "urls?url=http://a.example/", ""); w.Code != 404 {
		t.Errorf("HEAD: %d; want 404", w.Code)
	}
	w := call(s, "DELETE", "urls", "")
	if got := w.Header().Get("Allow"); w.Code != 405 || got != "GET, HEAD, POST" {
		t.Errorf("DELETE: %d, Allow %q", w.Code, got)
	}
}
