package demo

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// syntheticSite is a host with prepared answers. It records each page that robots.txt forbids, so
// nobody needs to parse the file.
type syntheticSite struct {
	name      string
	port      uint16
	answers   map[string]answer // by target
	forbidden map[string]bool   // targets
	closed    bool              // robots.txt forbids everything
	crawl     time.Duration
	slow      time.Duration // before each answer
	linked    []string      // targets that the front page links to, in addition to those of fill
	rng       *rand.Rand
}

func (s *syntheticSite) forbids(target string) bool { return s.closed || s.forbidden[target] }

func (s *syntheticSite) delay() time.Duration { return s.crawl }

func (s *syntheticSite) answer(target string) answer {
	a, ok := s.answers[target]
	if !ok {
		a = plain(http.StatusNotFound)
	}
	a.takes = s.slow
	return a
}

// add sets the answer for target.
func (s *syntheticSite) add(target string, a answer) { s.answers[target] = a }

// front is add, with a link from the front page.
func (s *syntheticSite) front(target string, a answer) {
	s.add(target, a)
	s.linked = append(s.linked, target)
}

// robots sets the text of robots.txt.
func (s *syntheticSite) robots(lines ...string) {
	s.add("/robots.txt", answer{status: http.StatusOK, kind: "text/plain",
		body: []byte(strings.Join(lines, "\n") + "\n")})
}

// crawlDelay sets a robots.txt that has only a Crawl-delay.
func (s *syntheticSite) crawlDelay(d time.Duration) {
	s.crawl = d
	s.robots("User-agent: *", fmt.Sprintf("Crawl-delay: %g", d.Seconds()))
}

// forbid adds pages that robots.txt forbids, with links from the front page.
func (s *syntheticSite) forbid(targets ...string) {
	for _, t := range targets {
		s.forbidden[t] = true
		s.front(t, page("Forbidden", "<p>Who reads this has not read robots.txt."))
	}
}

func (s *syntheticSite) url(target string) string { return origin(s.name, s.port) + target }

// page returns an HTML page.
func page(title, body string) answer {
	text := fmt.Sprintf("<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta "+
		"charset=\"utf-8\"><title>%[1]s</title></head>\n<body>\n<h1>%[1]s</h1>\n%[2]s\n</body>\n</html>\n",
		title, body)
	return answer{status: http.StatusOK, kind: "text/html; charset=utf-8", body: []byte(text)}
}

// goTo returns a redirect.
func goTo(status int, location string) answer { return answer{status: status, location: location} }

// tryLater returns an error answer with Retry-After.
func tryLater(status, seconds int) answer {
	a := plain(status)
	a.retryAfter = seconds
	return a
}

// fill adds a front page and n-1 other pages. The pages form a tree of links, with more links
// between them.
func (s *syntheticSite) fill(n int) {
	targets := make([]string, n)
	for i := range targets {
		targets[i] = pageTarget(i)
	}
	for i, t := range targets {
		refs := []string{}
		for _, next := range []int{2*i + 1, 2*i + 2, s.rng.IntN(n), s.rng.IntN(n)} {
			if next < n {
				refs = append(refs, s.reference(t, targets[next]))
			}
		}
		if i == 0 {
			for _, to := range s.linked {
				refs = append(refs, s.reference(t, to))
			}
		}
		s.add(t, page(s.name+t, s.text()+list(refs)))
	}
}

var sections = []string{"news", "people", "archive/old", "a/b/c"}

func pageTarget(i int) string {
	if i == 0 {
		return "/"
	}
	return fmt.Sprintf("/%s/%d.html", sections[i%len(sections)], i)
}

// reference returns one of the ways to write a link from page from to target to.
func (s *syntheticSite) reference(from, to string) string {
	if to[0] != '/' { // on another host
		return to
	}
	up := strings.Repeat("../", strings.Count(from, "/")-1)
	forms := []string{
		to,
		s.url(to),
		strings.TrimPrefix(s.url(to), "http:"),
		"./" + up + to[1:],
		to + "#part",
		" " + to + "\n",
		"/./x/../" + to[1:],
		strings.Replace(s.url(to), "http://"+s.name, "HTTP://"+strings.ToUpper(s.name), 1),
	}
	return forms[s.rng.IntN(len(forms))]
}

var words = strings.Fields("a crawler asks each host in turn and waits between two requests so that " +
	"nobody who serves pages has to notice that it was there at all")

// text returns some paragraphs of random words.
func (s *syntheticSite) text() string {
	var b strings.Builder
	for range 3 + s.rng.IntN(6) {
		b.WriteString("<p>")
		for range 20 + s.rng.IntN(60) {
			b.WriteString(words[s.rng.IntN(len(words))])
			b.WriteByte(' ')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// list returns an HTML list of links. Some lead nowhere.
func list(refs []string) string {
	var b strings.Builder
	b.WriteString("<ul>\n")
	for _, ref := range refs {
		fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a>\n", ref, strings.TrimSpace(ref))
	}
	b.WriteString("</ul>\n<p><a href=\"#top\">top</a> <a href=\"mailto:nobody@www.test\">mail</a> <a " +
		"href=\"javascript:void(0)\">nothing</a> <a name=\"part\">end</a>\n")
	return b.String()
}
