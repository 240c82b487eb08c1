package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var updateAPI = flag.Bool("update", false, "write testdata/api and the replies in docs/reference/http-api.md anew")

// apiCall is a call of the HTTP API. Its golden file has the request and a reply.
type apiCall struct {
	name   string
	method string
	path   string // {slot} stands for the number of a slot in use
	body   string
	until  string // asked again until the reply has these texts, with " & " between them
	status int    // 0: 200
	before func(*asking)
}

// apiCalls are all calls, in the order in which TestAPI makes them.
var apiCalls = []apiCall{
	{name: "urls", method: "POST", path: "/docindex/urls",
		body: "http://127.0.0.1/\nhttp://127.0.0.1/lost\nhttp://127.0.0.9/1\nhttp://127.0.0.9/2\nftp://127.0.0.1/\n"},
	{name: "actions-submit", method: "POST", path: "/api/actions",
		body: `{"url":"http://127.0.0.9/3","appid":"myapp","crawlid":"news","priority":5}`},
	{name: "actions-info", method: "POST", path: "/api/actions",
		body: `{"action":"info","appid":"myapp","crawlid":"news","uuid":"1","spiderid":"link"}`},
	{name: "status", method: "GET", path: "/api/status", until: `"done":2,`},
	{name: "urls-find", method: "GET", path: "/docindex/urls?url=http://127.0.0.1/lost&crawl=DEFAULT",
		until: `"completed"`},
	{name: "urls-doc-id", method: "GET", path: "/docindex/urls/1", until: `"completed"`},
	{name: "counts", method: "GET", path: "/docindex/counts?crawl=DEFAULT"},
	{name: "urls-unknown", method: "GET", path: "/docindex/urls?url=http://127.0.0.1/other", status: 404},
	{name: "slots", method: "GET", path: "/api/slots?offset=0&limit=100", until: `"127.0.0.9"`},
	{name: "slot", method: "GET", path: "/api/slots/{slot}"},
	{name: "map", method: "GET", path: "/api/slots/map"},
	{name: "host", method: "GET", path: "/api/hosts/127.0.0.1", until: `"status 404"`},
	{name: "hosts", method: "GET", path: "/api/hosts?text=127&sort=done&limit=2", until: `"2xx":1`},
	{name: "block", method: "POST", path: "/api/hosts/127.0.0.7/block", body: `{"until":"2090-01-01T00:00:00Z"}`},
	{name: "delay", method: "POST", path: "/api/hosts/127.0.0.9/delay", body: `{"delay_s":10}`},
	{name: "top", method: "GET", path: "/api/top", until: `"127.0.0.7" & "busiest":[{ & "slowest":[{`},
	{name: "crawls", method: "GET", path: "/api/crawls?text=news", until: `"crawlid":"news"`},
	{name: "crawl-set", method: "PUT", path: "/api/crawls/books",
		body: `{"scope":{"domains":["example.org"],"deny":["/calendar/"],"max_depth":3},"weight":1}`},
	{name: "crawl-refused", method: "PUT", path: "/api/crawls/books", body: `{"scope":{"deny":["ok","("]}}`, status: 400},
	{name: "crawl-urls", method: "POST", path: "/docindex/urls?crawl=books",
		body: "http://example.net/\nhttp://www.example.org/calendar/1\n"},
	{name: "crawl", method: "GET", path: "/api/crawls/books"},
	{name: "crawl-end", method: "DELETE", path: "/api/crawls/books"},
	{name: "warnings", method: "GET", path: "/api/warnings", until: "bad line"},
	{name: "settings", method: "GET", path: "/api/settings"},
	{name: "pause", method: "POST", path: "/api/pause"},
	{name: "resume", method: "POST", path: "/api/resume"},
	{name: "reload", method: "POST", path: "/api/reload"},
	{name: "live", method: "GET", path: "/api/live"},
	{name: "candidates", method: "POST", path: "/docindex/candidates",
		body: `{"max":1000,"reject":["127.0.0.9"]}`, before: (*asking).fillSlots},
	{name: "outcomes", method: "POST", path: "/docindex/outcomes",
		body: `{"doc_id":"1","url":"http://127.0.0.1/","outcome":"done","status":200,"attempts":1}`, status: 204},
	{name: "dump", method: "GET", path: "/docindex/dump"},
	{name: "dump-put", method: "POST", path: "/docindex/dump", body: "\x00dump"},
	{name: "actions-stop", method: "POST", path: "/api/actions",
		body: `{"action":"stop","appid":"myapp","crawlid":"news","uuid":"2","spiderid":"link"}`},
	{name: "history", method: "GET", path: "/api/history", until: `"at":`}, // a sample comes each ten seconds
	{name: "healthz", method: "GET", path: "/healthz"},
	{name: "readyz", method: "GET", path: "/readyz"},
	{name: "metrics", method: "GET", path: "/metrics"},
}

// TestAPI makes each call of the HTTP API to a daemon, and compares the request, the status and the
// names of all members with a golden file. The reference page has the same requests and replies.
//
//	go test ./cmd/urlserver -run TestAPI -update   # writes both
func TestAPI(t *testing.T) {
	t.Parallel() // it mostly waits
	d := startDaemon(t, settings(t,
		"Queue_Count = 2\n[[rules]]\nhosts = [\"127.0.0.9\", \"127.0.0.10\"]\nper_sec = 0.1\n"))
	answering(t, d)
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	a := asking{t: t, d: d, page: string(page)}
	for _, c := range apiCalls {
		t.Run(c.name, func(t *testing.T) {
			a.t = t
			a.compare(&c)
		})
	}
	if *updateAPI {
		if err := os.WriteFile(referencePage, []byte(a.page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const referencePage = "../../docs/reference/http-api.md"

// answering is a spider that does what it is sent, except at the slow hosts, and sends a bad line.
func answering(t *testing.T, d *daemon) {
	sp := dialSpider(t, d.spiders)
	go func() {
		for lines := bufio.NewScanner(sp.conn); lines.Scan(); {
			f := strings.Fields(lines.Text())
			switch {
			case f[2] == "127.0.0.9", f[2] == "127.0.0.10":
			case strings.HasSuffix(f[3], "/lost"):
				fmt.Fprintf(sp.conn, "%s DONE 404\n1.1.1 NONSENSE\n", f[0])
			default:
				fmt.Fprintf(sp.conn, "%s DONE 200\n", f[0])
			}
		}
	}()
}

// asking makes the calls.
type asking struct {
	t    *testing.T
	d    *daemon
	page string
	slot string // one in use
	dump []byte
}

// compare makes a call until the reply is complete, and compares it with its golden file.
func (a *asking) compare(c *apiCall) {
	a.t.Helper()
	if c.before != nil {
		c.before(a)
	}
	status, media, raw := a.make(c)
	for late := time.Now().Add(patience); !c.complete(raw); status, media, raw = a.make(c) {
		if time.Now().After(late) {
			a.t.Fatalf("the reply has no %s: %s", c.until, raw)
		}
		time.Sleep(20 * time.Millisecond)
	}
	want := c.status
	if want == 0 {
		want = 200
	}
	if status != want {
		a.t.Fatalf("status is %d; want %d: %s", status, want, raw)
	}
	a.note(c, raw)
	shown := c.request() + "\n" + strings.TrimSpace(fmt.Sprint(status, " ", media)) + "\n" + shownReply(media, raw)
	file := filepath.Join("testdata", "api", c.name+".txt")
	block := regexp.MustCompile("(?s)(<!-- reply " + c.name + " -->\n```\n).*?(```\n)")
	if *updateAPI {
		if err := os.WriteFile(file, []byte(shown), 0o644); err != nil {
			a.t.Fatal(err)
		}
		a.page = block.ReplaceAllStringFunc(a.page, func(old string) string {
			parts := block.FindStringSubmatch(old)
			return parts[1] + shown + parts[2]
		})
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		a.t.Fatal(err)
	}
	if got, want := outline(shown), outline(string(golden)); got != want {
		a.t.Errorf("the call is\n%s\nwant\n%s\nIf that is meant: go test ./cmd/urlserver -run TestAPI -update, "+
			"and describe it in %s", got, want, referencePage)
	}
	if in := block.FindString(a.page); !strings.Contains(in, string(golden)) {
		a.t.Errorf("%s does not have this call as %s does; run the test with -update", referencePage, file)
	}
}

// complete reports whether a reply has what it is to have.
func (c *apiCall) complete(raw []byte) bool {
	for text := range strings.SplitSeq(c.until, " & ") {
		if !strings.Contains(string(raw), text) {
			return false
		}
	}
	return true
}

// fillSlots gives both slots to hosts that may not be asked for a while, so that what is put then
// stays in the index.
func (a *asking) fillSlots() {
	command(a.t, "http://127.0.0.10/\n", "put", "--at", a.d.at, "-").want(a.t, 0, `"new":1`, "")
	a.d.shows("/api/status", `"used":2,`)
	command(a.t, "http://127.0.0.8/\n", "put", "--at", a.d.at, "-").want(a.t, 0, `"new":1`, "")
}

// make makes a call.
func (a *asking) make(c *apiCall) (status int, media string, body []byte) {
	a.t.Helper()
	sent := []byte(c.body)
	if c.body == "\x00dump" {
		sent = a.dump
	}
	req, err := http.NewRequestWithContext(a.t.Context(), c.method,
		a.d.at+strings.Replace(c.path, "{slot}", a.slot, 1), bytes.NewReader(sent))
	if err != nil {
		a.t.Fatal(err)
	}
	if strings.HasPrefix(c.path, "/docindex/urls") && c.method == "POST" {
		req.Header.Set("Content-Type", "text/plain")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	media, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	if media == "text/event-stream" { // its first event is enough
		for in := bufio.NewReader(resp.Body); ; {
			line, err := in.ReadBytes('\n')
			if body = append(body, line...); err != nil || len(bytes.TrimSpace(line)) == 0 && len(body) > 1 {
				return resp.StatusCode, media, body
			}
		}
	}
	if body, err = io.ReadAll(resp.Body); err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, media, body
}

// note keeps what later calls need.
func (a *asking) note(c *apiCall, raw []byte) {
	switch c.name {
	case "slots":
		var x struct{ Slots []struct{ Slot int } }
		if err := json.Unmarshal(raw, &x); err != nil || len(x.Slots) == 0 {
			a.t.Fatalf("slots %s: %v", raw, err)
		}
		a.slot = fmt.Sprint(x.Slots[0].Slot)
	case "dump":
		a.dump = raw
	}
}

// request returns how a call is shown.
func (c *apiCall) request() string {
	body := c.body
	if body == "\x00dump" {
		body = "the reply of GET /docindex/dump"
	}
	if body != "" {
		body = strings.TrimSuffix(body, "\n") + "\n"
	}
	return c.method + " " + strings.Replace(c.path, "{slot}", "N", 1) + "\n" + body
}

const (
	shownWidth = 130 // columns
	shownLines = 6   // of replies that are no JSON
)

// shownReply returns a reply as the page shows it: lists have two elements at most, texts six
// lines.
func shownReply(media string, raw []byte) string {
	switch media {
	case "application/json":
		return pretty(raw, "") + "\n"
	case "application/octet-stream":
		return fmt.Sprintf("(%d bytes)\n", len(raw))
	}
	lines := strings.SplitAfter(string(raw), "\n")
	if media == "text/plain" { // metrics: one of them
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return !strings.Contains(line, "urlserver_sent_total")
		})
	}
	var out strings.Builder
	for _, line := range lines[:min(shownLines, len(lines))] {
		if data, is := strings.CutPrefix(line, "data: "); is && json.Valid([]byte(data)) {
			line = "data: " + pretty([]byte(data), "") + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// pretty returns JSON with as much on a line as fits.
func pretty(raw []byte, indent string) string {
	var flat bytes.Buffer
	if err := json.Compact(&flat, cut(raw)); err != nil {
		return string(raw)
	}
	if flat.Len() <= shownWidth-len(indent) {
		return flat.String()
	}
	in := json.NewDecoder(&flat)
	open, _ := in.Token()
	if open != json.Delim('{') && open != json.Delim('[') {
		return string(raw)
	}
	var parts []string
	for in.More() {
		name := ""
		if open == json.Delim('{') {
			key, _ := in.Token()
			name = fmt.Sprintf("%q:", key)
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return string(raw)
		}
		parts = append(parts, indent+"  "+name+pretty(value, indent+"  "))
	}
	end := map[json.Token]string{json.Delim('{'): "}", json.Delim('['): "]"}[open]
	return fmt.Sprintf("%v\n%s\n%s%s", open, strings.Join(parts, ",\n"), indent, end)
}

// cut returns raw, or the first two elements of a longer list.
func cut(raw []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) <= 2 {
		return raw
	}
	text, err := json.Marshal(list[:2])
	if err != nil {
		return raw
	}
	return text
}

// outline returns what a golden file pins: the request, the status, the type, and the names of all
// members of a reply in JSON.
func outline(shown string) string {
	at := replyLine.FindStringIndex(shown)
	if at == nil {
		return shown
	}
	head, reply := shown[:at[1]], shown[at[1]:]
	_, data, is := strings.Cut(reply, "data: ")
	if is {
		reply = data
	}
	names := map[string]bool{}
	for in := json.NewDecoder(strings.NewReader(reply)); ; {
		var v any
		if in.Decode(&v) != nil {
			break
		}
		members(v, "", names)
	}
	return head + strings.Join(slices.Sorted(maps.Keys(names)), "\n")
}

var replyLine = regexp.MustCompile(`(?m)^\d{3}( .*)?\n`)

// members adds the names of all members in v.
func members(v any, path string, names map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			names[path+"."+name] = true
			members(value, path+"."+name, names)
		}
	case []any:
		for _, value := range v {
			members(value, path+"[]", names)
		}
	}
}

// TestAPIIsWhole looks for the paths that the sources name: each of them has a call.
func TestAPIIsWhole(t *testing.T) {
	pattern := regexp.MustCompile(`"(/(?:api|docindex|healthz|readyz|metrics)[^"]*)":\s+\{(http\.Method.*)\},\n`)
	method := regexp.MustCompile(`http\.Method(\w+):`)
	hole := regexp.MustCompile(`\\\{\w+\\\}`)
	found := 0
	for _, file := range []string{"../../urlserver/httpapi/routes.go", "../../docindex/httpserver/handler.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			path := regexp.MustCompile("^" + hole.ReplaceAllString(regexp.QuoteMeta(m[1]), "[^/]+") + "$")
			for _, by := range method.FindAllStringSubmatch(m[2], -1) {
				found++
				if !slices.ContainsFunc(apiCalls, func(c apiCall) bool {
					asked, _, _ := strings.Cut(c.path, "?")
					return c.method == strings.ToUpper(by[1]) && path.MatchString(asked)
				}) {
					t.Errorf("apiCalls has no %s %s", strings.ToUpper(by[1]), m[1])
				}
			}
		}
	}
	if found < 24 {
		t.Errorf("the sources name %d calls; want 24 at least", found)
	}
}
