package httpserver_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex/memory"
)

// TestMembers puts URLs with unique, payload, depth and due, looks them up, and hands them out.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		body := strings.Join([]string{
			`{"url":"http://a.example/1","doc_id":"a","unique":"ü","payload":"+/8","depth":3}`,
			`{"url":"http://b.example/","unique":"\u00fc","depth":9}`, // known
			`{"url":"http://c.example/","due":"2000-01-01T00:01:00.5Z","payload":"-_8="}`,
			`{"url":"http://d.example/","due":"now","depth":65535}`,
			`{"url":"http://e.example/","depth":-1}`,
			`{"url":"http://e.example/","depth":65536}`,
			`{"url":"http://e.example/","depth":"1"}`,
			`{"url":"http://e.example/","due":"soon"}`,
			`{"url":"http://e.example/","due":1}`,
			`{"url":"http://e.example/","payload":"?"}`,
			`{"url":"http://e.example/","payload":["x"]}`,
			`{"url":"http://e.example/","unique":7}`,
			`{"url":"http://e.example/","unique":"` + strings.Repeat("u", 513) + `"}`,
			`{"url":"http://e.example/","payload":"` + strings.Repeat("AAAA", 2731) + `"}`,
		}, "\n")
		w := call(s, "POST", "urls", body, "Content-Type", "application/x-ndjson")
		var answer struct {
			New, Known, Invalid int
			Errors              []string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.New != 3 || answer.Known != 1 {
			t.Fatalf("%s, %v; want 3 new and 1 known", w.Body, err)
		}
		for i, want := range []string{"depth is not from 0 to 65535", "depth is not from 0 to 65535", "depth is not an integer", `due is "soon"`, "due is not a string",
			"payload is not base64", "payload is not a string", "unique is not a string", "unique has 513 bytes",
			"payload has 8193 bytes"} {
			if !strings.Contains(answer.Errors[i], want) {
				t.Errorf("error %q; want %q", answer.Errors[i], want)
			}
		}
		for _, c := range []struct{ url, want string }{
			{"http://a.example/1", `"due":"2000-01-01T00:00:00Z" "unique":"ü","depth":3,"payload":"+/8="}`},
			{"http://c.example/", `"due":"2000-01-01T00:01:01Z" "metadata":{},"payload":"+/8="}`},
			{"http://d.example/", `"due":"2000-01-01T00:00:00Z" "metadata":{},"depth":65535}`},
		} {
			got := call(s, "GET", "urls?url="+c.url, "").Body.String()
			for part := range strings.SplitSeq(c.want, " ") {
				if !strings.Contains(got, part) {
					t.Errorf("%s is %s; want %s", c.url, got, part)
				}
			}
		}
		wantLine := func(want string) {
			t.Helper()
			if got := strings.TrimSpace(call(s, "POST", "candidates", `{"max":1}`).Body.String()); got != want {
				t.Errorf("candidate %s; want %s", got, want)
			}
		}
		wantLine(`{"doc_id":"a","url":"http://a.example/1","payload":"+/8="}`)
		wantLine(`{"doc_id":"3","url":"http://d.example/"}`)
		wantLine("")
		again := call(s, "POST", "urls", `{"url":"http://c.example/","due":"2000-01-01T00:00:30Z"}`).Body.String()
		if !strings.HasPrefix(again, `{"new":0,"known":1,`) {
			t.Errorf("brought forward: %s", again)
		}
		time.Sleep(30 * time.Second)
		wantLine(`{"doc_id":"2","url":"http://c.example/","payload":"+/8="}`)
	})
}
