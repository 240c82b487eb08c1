package demo

import (
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"urlserver/docindex"
	"urlserver/internal/robots"
	"urlserver/internal/weburl"
)

func TestSyntheticWebIsAsLargeAsSaid(t *testing.T) {
	w := syntheticWeb(wholeSize, 8000)
	p := expectedCrawl(w)
	if len(w.hosts) != 20 || len(w.addrs()) != 6 || len(w.names) != 20 {
		t.Errorf("%d hosts on %d addresses, want 20 on 6", len(w.hosts), len(w.addrs()))
	}
	if p.pages < 280 || p.pages > 330 {
		t.Errorf("%d pages, want about 300", p.pages)
	}
	for i, addr := range w.addrs() {
		if (i == syntheticAddrs) != (addr == loopback(deadAddr)) {
			t.Errorf("address %d is %v; the last one has to be the dead one", i, addr)
		}
	}
	if again := expectedCrawl(syntheticWeb(wholeSize, 8000)); !reflect.DeepEqual(p, again) {
		t.Error("the same size and port made another web")
	}
}

// TestPlan checks what expectedCrawl finds in a synthetic web, link by link.
func TestPlan(t *testing.T) {
	w := syntheticWeb(wholeSize, 8000)
	p := expectedCrawl(w)
	const never = docindex.Kind(docindex.Kinds) // no link leads there
	tests := []struct {
		url  string
		want docindex.Kind
	}{
		{"http://www.test:8000/", docindex.Done},
		{"http://slow.test:8000/a/b/c/11.html", docindex.Done},
		{"http://rules.test:8000/private/1.html", docindex.Robots},
		{"http://rules.test:8000/private/open/1.html", docindex.Done},
		{"http://rules.test:8000/caf%C3%A9/menu.html", docindex.Robots},
		{"http://closed.test:8000/", docindex.Robots},
		{"http://closed.test:8000/people/1.html", never},
		{"http://unready.test:8000/", docindex.Robots},
		{"http://moved.test:8000/hidden/1.html", docindex.Robots},
		{"http://turns.test:8000/start.html", docindex.Done},
		{"http://turns.test:8000/end.html", docindex.Done},
		{"http://turns.test:8000/round/b", docindex.Done},
		{"http://blog.test:8000/from-turns.html", docindex.Done},
		{"http://dead.test:8000/page.html", docindex.Robots},
		{"http://nowhere.test:8000/", docindex.DNS},
		{"http://broken.test:8000/missing/3.html?a=b&c=d", docindex.Done},
		{"http://www.test:8000/other/place/x.html", docindex.Done},
		{"http://www.test:8000/based/x.html", never},
		{"http://www.test:8000/area.html", docindex.Done},
		{"http://www.test:8000/h%C3%A4user/gr%C3%B6%C3%9Fe.html?%C3%BC=%C3%9F", docindex.Done},
		{"http://www.test:8000/trap/meta.html", never},
		{"http://www.test:8000/trap/header.html", never},
		{"http://www.test:8000/trap/rel.html", never},
		{"http://www.test:8000/trap/text.html", never},
	}
	for _, test := range tests {
		got, known := p.ends[test.url]
		if !known {
			got = never
		}
		if got != test.want {
			t.Errorf("%s: %v, want %v", test.url, got, test.want)
		}
		if seen := p.requests[test.url] > 0; seen != (test.want == docindex.Done) {
			t.Errorf("%s: to be fetched %t", test.url, seen)
		}
	}
	for robots, want := range map[string]int{
		"http://moved.test:8000/robots.txt": 1, "http://plain.test:8000/rules/moved.txt": 1,
		"http://turns.test:8000/rules/robots.txt": 1,
		"http://unready.test:8000/robots.txt":     3, "http://www.test:8000/robots.txt": 1,
	} {
		if p.requests[robots] != want {
			t.Errorf("%s: planned %d times, want %d", robots, p.requests[robots], want)
		}
	}
}

// TestSyntheticRobots compares the pages that a site calls forbidden with its robots.txt.
func TestSyntheticRobots(t *testing.T) {
	w := syntheticWeb(wholeSize, 8000)
	forbidden := 0
	for _, h := range w.hosts {
		s, ok := h.site.(*syntheticSite)
		if !ok || h.name == "unready.test" {
			continue
		}
		a := s.answer("/robots.txt")
		for a.location != "" {
			u, err := weburl.Parse([]byte(a.location))
			if err != nil {
				t.Fatal(err)
			}
			a = w.find(u).site.answer(string(u.Target()))
		}
		rules := robots.AllowAll()
		if a.status == http.StatusOK {
			rules = robots.Parse(a.body, agent)
		}
		for target := range maps.Keys(s.answers) {
			if strings.HasPrefix(target, "/rules/") || target == "/robots.txt" {
				continue
			}
			if s.forbids(target) {
				forbidden++
			}
			if rules.Allowed([]byte(target)) == s.forbids(target) {
				t.Errorf("%s%s: robots.txt allows %t, the page says forbidden %t", h.name, target,
					rules.Allowed([]byte(target)), s.forbids(target))
			}
		}
		if rules.CrawlDelay() != s.delay() {
			t.Errorf("%s: Crawl-delay %v, want %v", h.name, rules.CrawlDelay(), s.delay())
		}
	}
	if forbidden < 10 {
		t.Errorf("%d forbidden pages, want 10 or more", forbidden)
	}
}

func TestOutside(t *testing.T) {
	w := newWeb("", 80, []host{{name: "a.test"}, {name: "127.77.0.9"}})
	for name, want := range map[string]bool{"a.test": false, "b.test": false, "127.77.0.9": false,
		"127.0.0.1": true, "192.0.2.1": true, "2001:db8::1": true} {
		if got := outside([]byte(name), w); got != want {
			t.Errorf("outside(%s) = %t, want %t", name, got, want)
		}
	}
}
