package engine

import (
	"fmt"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/robots"
)

// exchangeNotes plays the doc index, which keeps notes if there is a map for them.
func (w *robotsWeb) exchangeNotes() {
	if w.notes == nil {
		return
	}
	for _, l := range w.e.Out.Learned {
		if text, ok := l.Entry.AppendNote(nil, l.Agent, start.Add(w.later+w.now)); ok {
			w.notes[l.Origin] = text
		}
	}
	for _, r := range w.e.Out.NoteRequests {
		resp, at, found := robots.ReadNote(w.notes[r.Origin], r.Agent, r.Targets)
		w.e.NoteFound(r, resp, at, found)
	}
}

// newKept returns an engine whose index keeps notes, some time after the first one started.
func newKept(t *testing.T, later time.Duration, notes map[string][]byte, change func(c *configs.Config)) *robotsWeb {
	w := newRobotsWeb(t, change)
	w.e.opt.Notes, w.notes, w.later = true, notes, later
	w.file = []byte("user-agent: *\ncrawl-delay: 20\ndisallow: /no\n")
	return w
}

// TestKeptRobots: after a restart no robots.txt is fetched again while the answer from before is in
// force. After that it is fetched at the pace that the old answer asks for. Rules and Crawl-delay
// hold all the time. Of an answer from a clock that has been set back since, the age is not known: it is in
// force only if it is ahead by less than robots.ttl.
func TestKeptRobots(t *testing.T) {
	const hosts, delay = 5, 20 * second
	notes := map[string][]byte{}
	first := newKept(t, 0, notes, nil)
	first.putAll("10.8", hosts, "/1", "/no")
	first.put("10.1", hosts)
	first.run(60 * second)
	if first.fetches != 2*hosts || len(notes) != 2*hosts {
		t.Fatalf("%d requests for robots.txt, %d notes; want %d of both", first.fetches, len(notes), 2*hosts)
	}
	ttl := first.e.cfg.Robots.TTL
	for _, c := range []struct {
		name    string
		later   time.Duration
		change  func(*configs.Config)
		fetches int
	}{
		{"at once", 60 * second, nil, 0},
		{"within its time", ttl - 200*second, nil, 0},
		{"later", ttl + 60*second, nil, 2 * hosts},
		{"much later", 30 * ttl, nil, 2 * hosts},
		{"the clock was set back by less", -ttl / 2, nil, 0},
		{"the clock was set back by more", -30 * ttl, nil, 2 * hosts},
		{"another agent", 60 * second, func(c *configs.Config) { c.Robots.UserAgent = "other" }, 2 * hosts},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := map[string][]byte{}
			for name, text := range notes {
				own[name] = text
			}
			w := newKept(t, c.later, own, c.change)
			w.putAll("10.8", hosts, "/1", "/no", "/2")
			w.put("10.1", hosts)
			w.run(100 * second)
			if w.fetches != c.fetches {
				t.Errorf("%d requests for robots.txt; want %d", w.fetches, c.fetches)
			}
			for i := range hosts {
				host := fmt.Sprintf("10.8.0.%d", i)
				if at, asked := w.asked[host]; asked && at < delay && c.change == nil {
					t.Errorf("the robots.txt of %s was fetched after %v; its Crawl-delay is %v", host, at, delay)
				}
				if kind := w.ended[fmt.Sprintf("10.8-%d-1", i)]; kind != docindex.Robots {
					t.Errorf("/no of %s ended as %v; want robots", host, kind)
				}
				if kind, ok := w.ended[fmt.Sprintf("10.8-%d-2", i)]; !ok || kind != docindex.Done {
					t.Errorf("/2 of %s ended as %v, %t; want done", host, kind, ok)
				}
				x, _ := w.e.Explain([]byte(host))
				if x.HostDelay != delay {
					t.Errorf("%s has Crawl-delay %v; want %v", host, x.HostDelay, delay)
				}
			}
		})
	}
}

// TestKeptRobotsThatFail: where the robots.txt cannot be fetched again, the rules from before the
// restart stay in force.
func TestKeptRobotsThatFail(t *testing.T) {
	policy := robots.Policy{Agent: configs.Default().Robots.UserAgent}
	body := []byte("user-agent: *\ndisallow: /no\n")
	old := policy.Settle(robots.Entry{}, 0, robots.Response{Status: 200, Body: body})
	note, _ := old.AppendNote(nil, policy.Agent, start)
	w := newKept(t, 48*time.Hour, map[string][]byte{"http://10.9.0.0": note}, nil)
	w.putAll("10.9", 1, "/no", "/yes")
	w.run(60 * second)
	kind, ok := w.ended["10.9-0-0"]
	if !ok || kind != docindex.Robots || w.sent["10.9.0.0"] != 1 || w.fetches == 0 {
		t.Errorf("/no ended as %v, %t; %d sent, %d requests for robots.txt; want robots, one sent",
			kind, ok, w.sent["10.9.0.0"], w.fetches)
	}
}

// TestKeptRulesThatDoNotFit: rules that were dropped for want of memory are read from the index,
// not fetched again.
func TestKeptRulesThatDoNotFit(t *testing.T) {
	const hosts = 6
	for _, file := range [][]byte{longFile(400_000), dearFile()} {
		w := newKept(t, 0, map[string][]byte{}, func(c *configs.Config) { c.Robots.Memory = 1 << 18 })
		w.file = file
		var paths []string
		for i := range 40 {
			paths = append(paths, dearPath(i, 2000))
		}
		paths[1] = "/no" + paths[1]
		w.putAll("10.8", hosts, paths...)
		w.run(300 * second)
		if w.fetches != hosts || w.e.stats.RobotsFound == 0 {
			t.Errorf("%d requests for robots.txt, %d read from the index; want %d requests", w.fetches,
				w.e.stats.RobotsFound, hosts)
		}
		for i := range hosts {
			for j := range paths {
				want := docindex.Done
				if j == 1 {
					want = docindex.Robots
				}
				if got, ok := w.ended[fmt.Sprintf("10.8-%d-%d", i, j)]; !ok || got != want {
					t.Fatalf("document %d of host %d: %v, ended %t; want %v", j, i, got, ok, want)
				}
			}
		}
	}
}
