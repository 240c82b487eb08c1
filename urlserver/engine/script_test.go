package engine

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/internal/robots"
	"urlserver/protocol"
)

// script plays a conversation with an engine: "> event", "< what it has others
// do" with the time, "+ virtual time". The engine is stepped after events and
// at the moments that it names itself, never else. "daemon KEY=VALUE ..." starts
// a new one with settings as in a file. events_test.go tells the words.
type script struct {
	e       *Engine
	cfg     configs.Config
	now     time.Duration
	wake    time.Duration // negative: not before the next event
	wall    time.Duration // what the wall clock is ahead by
	dns     map[string]answer
	spiders map[string]uint32
	names   map[uint32]string
	stuck   map[string]bool
	flying  map[string]bool
	fetches map[string][]uint32 // by URL
	own     netip.Addr          // that this machine has
	out     []string
}

type answer struct {
	addr netip.Addr
	err  error
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p *script
	did := "the start"
	finish := func(line int) {
		if p != nil && len(p.out) > 0 {
			t.Fatalf("%s:%d: before this, after %s, unexpected:\n%s", file, line, did, strings.Join(p.out, "\n"))
		}
	}
	for n, line := range strings.Split(string(text), "\n") {
		if line, _, _ = strings.Cut(line, "  # "); line == "" || line[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if verb == "<" {
			if len(p.out) == 0 || p.out[0] != rest {
				t.Fatalf("%s:%d: after %s\n got: %s\nwant: %s", file, n+1, did, strings.Join(p.out, "\n      "), rest)
			}
			p.out = p.out[1:]
			continue
		}
		finish(n + 1)
		did = line
		switch verb {
		case "daemon":
			p = newScript(t, rest)
		case "+":
			p.pass(t, span(rest))
		case ">":
			p.event(strings.Fields(rest))
			p.step(t)
		default:
			t.Fatalf("%s:%d: %q is no line of a script", file, n+1, line)
		}
	}
	finish(0)
}

func settings(t *testing.T, words string) configs.Config {
	t.Helper()
	usual := "Queue_Count=4 Queue_Len=8 Req_Host_Per_Sec=1.0 robots.enabled=false docindex.quarantine=\"30s\" "
	values := map[string]string{}
	for _, word := range strings.Fields(usual + words) {
		key, value, _ := strings.Cut(word, "=")
		values[key] = value
	}
	var text []byte
	for key, value := range values {
		text = fmt.Appendf(text, "%s = %s\n", key, value)
	}
	cfg, err := configs.Parse("script", text)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func newScript(t *testing.T, words string) *script {
	p := &script{
		cfg: settings(t, strings.TrimSuffix(words, "exact")), dns: map[string]answer{}, spiders: map[string]uint32{},
		names: map[uint32]string{}, stuck: map[string]bool{}, flying: map[string]bool{}, fetches: map[string][]uint32{},
	}
	p.e = New(p.cfg, Options{
		Cached: p.cached, Own: func(a netip.Addr) bool { return a == p.own }, Exact: strings.HasSuffix(words, "exact"),
		ForNow: func(err error) bool { return err == errServfail },
		Down:   func(err error) bool { return err == errDown },
	})
	p.step(t)
	return p
}

// cached answers IP literals, and names of which "dns" told.
func (p *script) cached(host []byte) (netip.Addr, error, bool) {
	if addr, err := netip.ParseAddr(string(host)); err == nil {
		return addr, nil, true
	}
	a, ok := p.dns[string(host)]
	return a.addr, a.err, ok
}

func span(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// pass lets time pass as the daemon's owner would: it sleeps until the engine
// wants to be woken.
func (p *script) pass(t *testing.T, d time.Duration) {
	until := p.now + d
	for p.wake >= 0 && p.wake <= until {
		p.now = max(p.now, p.wake)
		p.step(t)
	}
	p.now = until
}

// step has the engine do what is due.
func (p *script) step(t *testing.T) {
	p.e.Advance(p.now, start.Add(p.now+p.wall))
	for range 1000 {
		wait := p.e.Step(func() time.Duration { return p.now })
		p.collect()
		if wait < 0 {
			p.wake = -1
			return
		}
		if wait > 0 {
			p.wake = p.now + wait
			return
		}
	}
	t.Fatalf("at %v: the engine is never through", p.now)
}

func (p *script) say(format string, args ...any) {
	p.out = append(p.out, fmt.Sprintf("%v ", p.now)+fmt.Sprintf(format, args...))
}

// collect writes down what the engine has others do.
func (p *script) collect() {
	out := &p.e.Out
	for _, id := range out.Drop {
		p.say("drop %s", p.names[id])
	}
	for i := range out.Outcomes.Len() {
		o := out.Outcomes.At(i)
		p.say("outcome %s %s %v status=%d attempts=%d%s", o.DocID, o.URL, o.Kind, o.Status, o.Attempts, p.date(o.At))
	}
	for i := range out.Returns.Len() {
		p.say("return %s %s", out.Returns.At(i).DocID, out.Returns.At(i).URL)
	}
	p.journeys()
	for _, name := range out.Lookups {
		p.say("lookup %s", name)
	}
	for _, f := range out.Fetches {
		p.say("fetch %s from %v", f.URL, f.Addr)
		p.fetches[f.URL] = append(p.fetches[f.URL], f.ID)
	}
	if out.Ask != nil {
		p.say("%s", strings.TrimSpace(fmt.Sprintf("ask %d %s", out.Ask.Max, strings.Join(out.Ask.Reject, " "))))
	}
	dirty := out.Dirty
	*out = Out{}
	for _, id := range dirty {
		p.read(p.names[id])
	}
}

// date tells an outcome's date where it is not what the script's clock says.
func (p *script) date(at time.Time) string {
	if at.Equal(start.Add(p.now)) {
		return ""
	}
	return " at=" + at.Format(time.RFC3339)
}

// read takes a spider's lines, unless it is stuck.
func (p *script) read(name string) {
	if p.stuck[name] || p.flying[name] {
		return
	}
	if p.take(name) {
		p.written(name)
	}
}

func (p *script) take(name string) (some bool) {
	lines := p.e.Output(p.spiders[name], nil)
	for line := range bytes.Lines(lines) {
		p.say("%s: %s", name, bytes.TrimSpace(line))
	}
	return lines != nil
}

func (p *script) written(name string) {
	p.flying[name] = false
	p.e.Written(p.spiders[name])
	p.read(name)
}

// index answers what the engine asked: words ID=URL or ID=URL!PRIORITY, both with @SPIDERID or not,
// "bad" for a line without DOC_ID, "invalid:ID" for one without URL, and "error" for a failure.
func (p *script) index(words []string) {
	a := &Prepared{Ports: p.cfg.Resolver.AllowPorts}
	for _, word := range words {
		word, spider, _ := strings.Cut(word, "@")
		id, url, _ := strings.Cut(word, "=")
		url, priority, _ := strings.Cut(url, "!")
		switch {
		case word == "error":
			a.Err = errors.New("index failed")
		case word == "bad":
			a.Batch.Skip()
		case strings.HasPrefix(word, "invalid:"):
			a.Batch.AddInvalid([]byte(strings.TrimPrefix(word, "invalid:")), nil)
		default:
			if priority == "" {
				priority = "0"
			}
			a.Batch.AddFor([]byte(id), []byte(url), int32(number(priority)), spider, "")
		}
	}
	a.Prepare()
	p.e.Answered(a)
}

// line has a spider say something.
func (p *script) line(name, text string) {
	if n, ok := protocol.ParseRoom([]byte(text)); ok {
		p.e.Lines(p.spiders[name], []Line{{IsRoom: true, Room: n}})
		return
	}
	status, err := protocol.ParseStatus([]byte(text))
	p.e.Lines(p.spiders[name], []Line{{Status: status, Bad: err != nil}})
}

// robots answers the oldest open fetch of a URL: status, then words "to=URL",
// "retry=SPAN", and the body with "|" for line ends and "_" for spaces.
func (p *script) robots(url string, words []string) {
	resp := robots.Response{Status: number(words[0])}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok && key == "to":
			resp.Location = value
		case ok && key == "retry":
			resp.RetryAfter = span(value)
		default:
			resp.Body = []byte(strings.NewReplacer("|", "\n", "_", " ").Replace(word))
		}
	}
	id := p.fetches[url][0]
	p.fetches[url] = p.fetches[url][1:]
	p.e.Fetched(id, resp)
}

func lookedUp(text string) answer {
	switch text {
	case "fail":
		return answer{err: errNoHost}
	case "servfail":
		return answer{err: errServfail}
	case "down":
		return answer{err: errDown}
	}
	return answer{addr: netip.MustParseAddr(text)}
}
