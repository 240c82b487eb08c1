package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// longFile has rules that take some n bytes, and forbids /no.
func longFile(n int) []byte {
	file := []byte("User-agent: *\nDisallow: /no\n")
	for i := 0; len(file) < n; i++ {
		file = fmt.Appendf(file, "Disallow: /page/%d/\n", i)
	}
	return file
}

// TestRulesThatDoNotFitAreFetchedAgain: hosts at work have many times the rules that fit, and even
// one file may not. All documents end as they should, at a cost of some more requests.
func TestRulesThatDoNotFitAreFetchedAgain(t *testing.T) {
	const hosts, budget = 20, 1 << 18
	paths := []string{"/", "/no/1", "/page/1/", "/page/1"}
	for i := len(paths); i < 40; i++ {
		paths = append(paths, fmt.Sprintf("/yes/%d", i))
	}
	for _, size := range []int{100, 10_000, 100_000, 400_000} {
		t.Run(fmt.Sprintf("bytes=%d", size), func(t *testing.T) {
			w := newRobotsWeb(t, func(c *configs.Config) { c.Robots.Memory = budget })
			w.file = longFile(size)
			w.putAll("10.8", hosts, paths...)
			w.run(300 * second)
			for j, path := range paths {
				want := docindex.Done
				if size > 100 && (path == "/no/1" || path == "/page/1/") {
					want = docindex.Robots
				}
				if size == 100 {
					want = map[bool]docindex.Kind{true: docindex.Robots,
						false: docindex.Done}[path == "/no/1" || path == "/page/1/"]
				}
				for i := range hosts {
					if got, ok := w.ended[fmt.Sprintf("10.8-%d-%d", i, j)]; !ok || got != want {
						t.Fatalf("%s of host %d: %v, ended %t; want %v", path, i, got, ok, want)
					}
				}
			}
			most := hosts * (len(paths)/maxTargets + 2)
			if size*hosts < budget {
				most = hosts
			}
			if w.fetches > most || w.fetches < hosts {
				t.Errorf("%d requests for robots.txt; want %d at most", w.fetches, most)
			}
			t.Logf("%d requests, %d bytes kept", w.fetches, w.e.robots.cache.bytes)
		})
	}
}

// TestLessMemory: a reload that leaves less memory has what is beyond it dropped.
func TestLessMemory(t *testing.T) {
	w := newRobotsWeb(t, nil)
	w.file = longFile(10_000)
	w.putAll("10.8", 1000, "/", "/a")
	w.run(10 * second)
	before, cfg := w.e.robots.cache.bytes, w.e.cfg
	if cfg.Robots.Memory = 1 << 20; before < 2*cfg.Robots.Memory {
		t.Fatalf("rules take %d bytes", before)
	}
	w.e.Reconfigure(cfg)
	w.run(w.now + 10*second) // which looks at the memory after each step
	if w.e.stats.RobotsDropped == 0 {
		t.Error("nothing was dropped")
	}
}

// TestSmallRulesThatDoNotFit: so many hosts have a small file that not all of them fit, and each is
// dropped before its host is due. The document that was next is judged in time.
func TestSmallRulesThatDoNotFit(t *testing.T) {
	const hosts = 2000
	w := newRobotsWeb(t, func(c *configs.Config) { c.Robots.Memory = 1 << 20 })
	w.file = longFile(1500)
	w.putAll("10.8", hosts, "/", "/no", "/a", "/b")
	w.run(120 * second)
	for i := range hosts {
		for j, want := range []docindex.Kind{docindex.Done, docindex.Robots, docindex.Done, docindex.Done} {
			if got, ok := w.ended[fmt.Sprintf("10.8-%d-%d", i, j)]; !ok || got != want {
				t.Fatalf("document %d of host %d: %v, ended %t; want %v", j, i, got, ok, want)
			}
		}
	}
	if w.e.stats.RobotsDropped == 0 || w.fetches > 5*hosts {
		t.Errorf("%d requests for robots.txt, %d dropped", w.fetches, w.e.stats.RobotsDropped)
	}
}

// TestSmallDearRulesThatDoNotFit: rules that are dropped at once are few and cost much. The engine
// makes no verdict that takes long when it drops them, and each fetch brings documents on all the
// same.
func TestSmallDearRulesThatDoNotFit(t *testing.T) {
	const hosts = 100
	w := newRobotsWeb(t, func(c *configs.Config) { c.Robots.Memory = 1000 })
	w.file = []byte("User-agent: *\nDisallow: /*no\n")
	for i := range 100 {
		w.file = fmt.Appendf(w.file, "Disallow: /*%d*%d*~\n", i/10, i%10)
	}
	long := "/" + strings.Repeat("0123456789", 200)
	w.putAll("10.8", hosts, long, long+"/no", long+"/a")
	w.run(120 * second)
	for i := range hosts {
		for j, want := range []docindex.Kind{docindex.Done, docindex.Robots, docindex.Done} {
			if got, ok := w.ended[fmt.Sprintf("10.8-%d-%d", i, j)]; !ok || got != want {
				t.Fatalf("document %d of host %d: %v, ended %t; want %v", j, i, got, ok, want)
			}
		}
	}
	if w.e.stats.RobotsDropped == 0 || w.fetches > 2*hosts {
		t.Errorf("%d requests for robots.txt, %d dropped", w.fetches, w.e.stats.RobotsDropped)
	}
}

// dearFile has so many rules with wildcards, all to be compared with dearPath, that a verdict takes
// a millisecond and more. It forbids /no.
func dearFile() []byte {
	file := []byte("User-agent: *\nDisallow: /*no\n")
	for i := 1 << 16; len(file) < 200_000; i++ {
		file = append(file, "Disallow: /*c*"...)
		for bit := range 16 {
			file = append(file, 'a'+byte(i>>bit&1))
		}
		file = append(file, '\n')
	}
	return file
}

func dearPath(n, octets int) string {
	return fmt.Sprintf("/%d/", n) + strings.Repeat("aaababbb", octets/8)
}

// TestDearVerdictsAreMadeElsewhere: hosts whose verdicts take long have documents that end as they
// should, and others are sent as often as without them. All that takes long is asked for, one
// question at a time, and takes half the time at most.
func TestDearVerdictsAreMadeElsewhere(t *testing.T) {
	const dear, good, docs = 20, 50, 30
	w := newRobotsWeb(t, nil)
	w.file = dearFile()
	paths := make([]string, docs)
	for i := range paths {
		paths[i] = dearPath(i, 2000)
	}
	paths[1] += "/no"
	w.putAll("10.8", dear, paths...)
	w.putAll("10.1", good, paths...)
	w.run(70 * second)
	if w.work < dear*1_000_000 {
		t.Fatalf("questions took %v: nothing was dear", time.Duration(w.work))
	}
	if time.Duration(w.work) > w.now/2 {
		t.Errorf("questions took %v of %v", time.Duration(w.work), w.now)
	}
	for j := range paths {
		for i := range good {
			if got, ok := w.ended[fmt.Sprintf("10.1-%d-%d", i, j)]; !ok || got != docindex.Done {
				t.Fatalf("document %d of good host %d has not ended within its host's pace", j, i)
			}
		}
	}
	w.run(600 * second)
	for j := range paths {
		want := docindex.Done
		if j == 1 {
			want = docindex.Robots
		}
		for i := range dear {
			if got, ok := w.ended[fmt.Sprintf("10.8-%d-%d", i, j)]; !ok || got != want {
				t.Fatalf("document %d of dear host %d: %v, ended %t; want %v", j, i, got, ok, want)
			}
		}
	}
	if n := w.e.robots.verdicts.queue.Len(); n > 0 || len(w.e.robots.cache.remembered) > dear {
		t.Errorf("%d questions and verdicts of %d hosts are left", n, len(w.e.robots.cache.remembered))
	}
}

// TestDearHostsWaitInProportion: a host is asked about again only when it has waited a hundred
// times as long as the last question took.
func TestDearHostsWaitInProportion(t *testing.T) {
	w := newRobotsWeb(t, func(c *configs.Config) { c.ReqHostPerSec = 1000 })
	w.file = dearFile()
	paths := make([]string, 200)
	for i := range paths {
		paths[i] = dearPath(i, 2000)
	}
	w.putAll("10.8", 1, paths...)
	w.run(2 * second)
	if most := w.now/chargeTimes + w.now/10; w.work == 0 || time.Duration(w.work) > most {
		t.Errorf("questions about one host took %v of %v; want %v at most", time.Duration(w.work), w.now, most)
	}
	if x, ok := w.e.Explain([]byte("10.8.0.0")); !ok || !strings.Contains(x.Why, "takes long to tell") {
		t.Errorf("explain says %q", x.Why)
	}
	w.run(400 * second)
	if len(w.ended) != len(paths) {
		t.Errorf("%d of %d documents have ended", len(w.ended), len(paths))
	}
}

// TestDearVerdictsOfAnotherAgent: an answer that comes when the agent is another one counts for
// nothing.
func TestDearVerdictsOfAnotherAgent(t *testing.T) {
	w := newRobotsWeb(t, func(c *configs.Config) { c.ReqHostPerSec = 1000 })
	w.file = dearFile()
	paths := make([]string, 60)
	for i := range paths {
		paths[i] = dearPath(i, 2000)
	}
	w.putAll("10.8", 1, paths...)
	for len(w.answers) == 0 && w.now < 60*second {
		w.run(w.now + 1)
	}
	if len(w.answers) == 0 {
		t.Fatal("nothing was asked")
	}
	before := w.fetches
	cfg := w.e.cfg
	cfg.Robots.UserAgent = "another"
	w.e.Reconfigure(cfg)
	w.run(w.now + 100*second)
	if w.fetches == before || len(w.ended) != len(paths) {
		t.Errorf("%d more requests for robots.txt, %d of %d documents have ended", w.fetches-before,
			len(w.ended), len(paths))
	}
}
