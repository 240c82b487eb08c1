package demo

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// syntheticSize sets how large and how slow a synthetic web is.
type syntheticSize struct {
	pages int           // of an ordinary host
	tick  time.Duration // Crawl-delays are 2 and 3 ticks; the slow host answers after 2.5
	again int           // seconds of Retry-After
}

var (
	wholeSize = syntheticSize{pages: 24, tick: 100 * time.Millisecond, again: 1}
	deadAddr  = 6 // no server listens there
)

// syntheticAddrs is the number of addresses with a web server. One more address has none.
const syntheticAddrs = 5

// syntheticWeb returns a web of 20 hosts on 6 addresses with most of what a crawler meets. The same
// size and port give the same pages.
func syntheticWeb(size syntheticSize, port uint16) *web {
	m := &maker{size: size, port: port, rng: rand.New(rand.NewPCG(1, 2))}
	for _, name := range []string{"blog", "docs", "forum", "news", "shop", "wiki"} {
		m.host(1, name).fill(size.pages)
	}
	m.patient()
	m.ruled()
	m.troubled()
	m.slow()
	m.hosts = append(m.hosts, host{name: "dead.test", addr: loopback(deadAddr)})
	www := m.host(1, "www")
	for _, h := range m.hosts {
		www.linked = append(www.linked, origin(h.name, port)+"/")
	}
	m.traps(www)
	www.fill(size.pages)
	w := newWeb("made web", port, m.hosts)
	w.seeds = []string{www.url("/")}
	return w
}

type maker struct {
	size  syntheticSize
	port  uint16
	rng   *rand.Rand
	hosts []host
}

// host adds a host at an address.
func (m *maker) host(addr int, name string) *syntheticSite {
	s := &syntheticSite{
		name: name + ".test", port: m.port, rng: m.rng,
		answers: map[string]answer{}, forbidden: map[string]bool{},
	}
	m.hosts = append(m.hosts, host{name: s.name, addr: loopback(addr), site: s})
	return s
}

// patient adds hosts at one address. Two have a Crawl-delay; the longest one applies to all.
func (m *maker) patient() {
	calm, patient, quick := m.host(2, "calm"), m.host(2, "patient"), m.host(2, "quick")
	calm.crawlDelay(2 * m.size.tick)
	patient.crawlDelay(3 * m.size.tick)
	for _, s := range []*syntheticSite{calm, patient, quick} {
		s.fill(m.size.pages / 2)
	}
}

// ruled adds hosts with rules in their robots.txt.
func (m *maker) ruled() {
	rules := m.host(3, "rules")
	rules.robots("User-agent: *", "Disallow: /", "",
		"User-agent: otherbot", "User-agent: "+agent, "Disallow: /private/", "Allow: /private/open/",
		"Disallow: /*.pdf$",
		"Disallow: /search?", "Allow: /search?q=all$", "Disallow: /*/draft",
		"Disallow: /caf%C3%A9/", "this is no line")
	rules.forbid("/private/", "/private/1.html", "/private/opening.html", "/files/a.pdf", "/search?q=1",
		"/search?q=all&page=2",
		"/x/draft-1.html", "/caf%C3%A9/menu.html")
	for _, target := range []string{"/private/open/1.html", "/files/a.pdf?download=1", "/search",
		"/search?q=all", "/draft.html", "/cafe/menu.html"} {
		rules.front(target, page("Allowed", ""))
	}
	rules.fill(m.size.pages / 2)

	closed := m.host(3, "closed")
	closed.closed = true
	closed.robots("User-agent: *", "Disallow: /")
	closed.fill(4)

	unready := m.host(3, "unready") // its error forbids everything
	unready.closed = true
	unready.add("/robots.txt", tryLater(http.StatusServiceUnavailable, m.size.again))
	unready.fill(4)

	moved := m.host(3, "moved")
	moved.add("/robots.txt", goTo(http.StatusFound, origin("plain.test", m.port)+"/rules/moved.txt"))
	moved.forbid("/hidden/1.html")
	moved.fill(m.size.pages / 2)
}

// troubled adds hosts that redirect, refuse and fail.
func (m *maker) troubled() {
	broken := m.host(4, "broken")
	broken.linked = append(broken.linked, "/missing/1.html", "/missing/2.html", "/missing/3.html?a=b&c=d")
	broken.front("/gone.html", plain(http.StatusGone))
	broken.front("/error.html", plain(http.StatusInternalServerError))
	broken.front("/busy.html", tryLater(http.StatusTooManyRequests, m.size.again))
	broken.front("/down.html", tryLater(http.StatusServiceUnavailable, m.size.again))
	broken.fill(m.size.pages / 2)

	turns := m.host(4, "turns")
	turns.add("/robots.txt", goTo(http.StatusMovedPermanently, turns.url("/rules/robots.txt")))
	turns.add("/rules/robots.txt", answer{status: http.StatusOK, kind: "text/plain",
		body: []byte("User-agent: *\nDisallow: /never/\n")})
	turns.forbid("/never/1.html")
	turns.front("/start.html", goTo(http.StatusMovedPermanently, "middle.html"))
	turns.add("/middle.html", goTo(http.StatusFound, turns.url("/end.html")))
	turns.add("/end.html", page("End", ""))
	turns.front("/round/a", goTo(http.StatusTemporaryRedirect, "/round/b"))
	turns.add("/round/b", goTo(http.StatusPermanentRedirect, "/round/a"))
	turns.front("/away", goTo(http.StatusSeeOther, origin("blog.test", m.port)+"/from-turns.html"))
	turns.front("/into-nothing", goTo(http.StatusFound, origin("dead.test", m.port)+"/page.html"))
	turns.front("/nowhere", goTo(http.StatusFound, origin("nowhere.test", m.port)+"/"))
	turns.front("/forbidden", goTo(http.StatusFound, origin("rules.test", m.port)+"/private/1.html"))
	turns.fill(m.size.pages / 3)

	quiet := m.host(4, "plain")
	quiet.add("/rules/moved.txt", answer{status: http.StatusOK, kind: "text/plain",
		body: []byte("User-agent: *\nDisallow: /hidden/\n")})
	quiet.fill(m.size.pages / 2)
}

// slow adds a host with slow answers, and one at the same address with fast answers.
func (m *maker) slow() {
	s := m.host(5, "slow")
	s.slow = 5 * m.size.tick / 2
	s.fill(m.size.pages / 2)
	m.host(5, "archive").fill(m.size.pages / 2)
}

// traps adds pages to s that link to others in unusual ways, or to traps: only links that must not
// be followed lead to /trap/.
func (m *maker) traps(s *syntheticSite) {
	link := func(ref string) string { return `<a href="` + ref + `">link</a>` }
	shy := page("Shy", `<meta name="robots" content="noindex, nofollow">`+link("/trap/meta.html"))
	tagged := page("Tagged", link("/trap/header.html"))
	tagged.robotsTag = "nofollow"
	s.front("/shy.html", shy)
	s.front("/tagged.html", tagged)
	s.front("/rel.html", page("Rel", `<a rel="external nofollow" href="/trap/rel.html">trap</a>`))
	s.front("/based/page.html", page("Based", `<base href="/other/place/">`+link("x.html")))
	s.add("/other/place/x.html", page("X", ""))
	s.add("/based/x.html", page("Trap", ""))
	s.front("/refresh.html", page("Refresh",
		`<meta http-equiv="refresh" content="0; url='/refreshed.html'">`))
	s.add("/refreshed.html",
		page("Refreshed", `<iframe src="framed.html"></iframe><map><area href="/area.html"></map>`))
	s.add("/framed.html", page("Framed", ""))
	s.add("/area.html", page("Area", link("/häuser/größe.html?ü=ß")))
	s.add("/h%C3%A4user/gr%C3%B6%C3%9Fe.html?%C3%BC=%C3%9F", page("Umlauts", ""))
	s.front("/links.txt", answer{status: http.StatusOK, kind: "text/plain",
		body: []byte(link("/trap/text.html"))})
	for _, kind := range []string{"meta", "header", "rel", "text"} {
		s.add("/trap/"+kind+".html", page("Trap", ""))
	}
}
