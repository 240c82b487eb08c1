package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/urlserver"
	"urlserver/urlserver/engine"
	"urlserver/urlserver/httpapi/livefeed"
)

func TestSlotAndTop(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) { c.QueueCount, c.ReqHostPerSec = 7, 0.01 }})
	r.put("http://127.0.0.1/1", "http://127.0.0.1/2", "http://127.0.0.2/1")
	for end := time.Now().Add(testTimeout); r.status().Slots.Used < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("slots: %+v", r.status().Slots)
		}
	}
	var top livefeed.Top
	if r.into(&top, "GET", "/api/top", ""); len(top.Busiest) != 2 || len(top.Slowest) != 2 {
		t.Fatalf("top: %+v", top)
	}
	first := top.Busiest[0]
	if first.Group != "127.0.0.1" || first.Held != 2 || first.Gap != 100 || len(first.Hosts) != 1 ||
		first.NextSend == nil {
		t.Errorf("busiest: %+v", first)
	}
	var s slot
	r.into(&s, "GET", fmt.Sprintf("/api/slots/%d", first.Slot), "")
	if s.Group != first.Group || s.Queued != 2 {
		t.Errorf("slot: %+v", s)
	}
	r.ask("GET", "/api/slots/6", "").wantError(t, 404, "slot 6 is empty")
	for _, n := range []string{"7", "-1", "x", "99999999999"} {
		r.ask("GET", "/api/slots/"+n, "").wantError(t, 400, "from 0 to 6")
	}
	a := r.ask("GET", "/api/slots/map", "")
	if a.StatusCode != 200 || len(a.body) != 4 {
		t.Errorf("map: %s, %q", a.Status, a.body)
	}
}

func TestDelay(t *testing.T) {
	r := newRig(t, setup{})
	r.put("http://127.0.0.1/1")
	var d struct {
		Delay int `json:"delay_s"`
	}
	if r.into(&d, "POST", "/api/hosts/127.0.0.1/delay", `{"delay_s": 7}`); d.Delay != 7 {
		t.Errorf("answer: %+v", d)
	}
	// When the delay is over, the index gives the host's next URL to the slots, and other hosts' at
	// once.
	r.into(&d, "POST", "/api/hosts/127.0.0.2/delay", `{"delay_s": 3600}`)
	r.put("http://127.0.0.2/1", "http://127.0.0.2/2", "http://127.0.0.3/1", "http://127.0.0.3/2")
	for end := time.Now().Add(testTimeout); r.store.Stats().InTransit != 4; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			break
		}
	}
	if s := r.store.Stats(); s.InTransit != 4 || s.Scheduled != 1 {
		t.Errorf("%d given out, %d not; want 4 and 1", s.InTransit, s.Scheduled)
	}
	for body, want := range map[string]string{``: "body", `[]`: "body", `"x"`: "body", `{"delay_s": 1, "x": 1}`: "body",
		`{"delay_s": "1"}`: "body", `{}`: "from 0 to", `{"delay_s": -1}`: "from 0 to", `{"delay_s": 1.5}`: "from 0 to",
		`{"delay_s": 2592001}`: "from 0 to"} {
		r.ask("POST", "/api/hosts/127.0.0.1/delay", body).wantError(t, 400, want)
	}
	r.ask("POST", "/api/hosts/no%20host/delay", `{"delay_s": 1}`).wantError(t, 400, "no host")
	newRig(t, setup{remote: true}).ask("POST", "/api/hosts/a.example/delay", `{"delay_s": 1}`).wantError(t,
		404, "docindex.kind")
}

func TestSettings(t *testing.T) {
	r := newRig(t, setup{token: "secret"})
	r.server.file = "my.toml"
	a := r.ask("GET", "/api/settings", "", "Authorization", "Bearer secret")
	for _, want := range []string{
		`{"name":"Req_Host_Per_Sec","value":"1000","source":"my.toml","live":true}`,
		`{"name":"Queue_Count","value":"4096","source":"default","live":false}`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s in %s", want, a.body)
		}
	}
}

func TestWarnings(t *testing.T) {
	w := NewWarnings("geheim", "")
	log := zerolog.New(w).With().Timestamp().Logger()
	log.Info().Msg("not this")
	log.Warn().Str("url", "http://a.example/?t=geheim").Err(errors.New("odd")).Msg("this geheim")
	log.Error().Str("long", strings.Repeat("é", maxField)).Msg(strings.Repeat("x", 2*maxField))
	list, last := w.after(0, 10)
	if len(list) != 2 || last != 2 {
		t.Fatalf("%d warnings, the last is %d: %+v", len(list), last, list)
	}
	if one := list[0]; one.Text != "this ***" || one.More != "error: odd, url: http://a.example/?t=***" ||
		one.Level != "warn" || one.Number != 1 {
		t.Errorf("%+v", one)
	}
	if one := list[1]; len(one.Text) > maxField+3 || len(one.More) > maxField+3 ||
		strings.ContainsRune(one.More, '\ufffd') {
		t.Errorf("%+v", one)
	}
	for range 2 * keptWarnings {
		log.Warn().Msg("again")
	}
	if list, last := w.after(0, 1000); len(list) != keptWarnings || list[0].Number != last-keptWarnings+1 {
		t.Errorf("%d warnings kept, from %d to %d", len(list), list[0].Number, last)
	}
	if list, _ := w.after(last+2*keptWarnings-3, 1000); len(list) != 3 {
		t.Errorf("%d warnings after all but three", len(list))
	}
	if list, _ := w.after(0, 5); len(list) != 5 || list[4].Number != 2+2*keptWarnings {
		t.Errorf("of five: %+v", list)
	}
}

// The stream consists of server-sent events, and ends with the server.
func TestLive(t *testing.T) {
	r := newRig(t, setup{})
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.base+"/api/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	in, seen := bufio.NewReader(resp.Body), map[string]bool{}
	for !seen["status"] || !seen["top"] || !seen["warnings"] || !seen["slots"] {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("after %v: %v", seen, err)
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			seen[strings.TrimSpace(name)] = true
		}
	}
	r.end()
	if _, err := io.Copy(io.Discard, in); err != nil {
		t.Errorf("the server waited for its viewer, and broke off: %v", err)
	}
}

// The status for a viewer has a bounded size, for any number of spiders.
func TestLiveIsSmall(t *testing.T) {
	var s urlserver.Status
	for i := range 1000 {
		s.Spiders = append(s.Spiders, engine.SpiderStats{Addr: fmt.Sprintf("192.0.2.1:%d", i)})
	}
	l := New(Config{Daemon: newRig(t, setup{}).daemon, Log: zerolog.Nop()}).liveOf(s).(live)
	if len(l.Spiders) != liveSpiders || l.MoreSpiders != 1000-liveSpiders || len(l.Ready) != 0 {
		t.Errorf("%d spiders and %d more; not ready: %v", len(l.Spiders), l.MoreSpiders, l.Ready)
	}
}
