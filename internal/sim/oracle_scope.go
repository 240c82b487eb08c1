package sim

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"urlserver/docindex"
)

// crawlViews is what the oracle knows of crawls and of what is stored of them. It judges scopes by
// itself: nothing of packages scope and scoped is used.
type crawlViews struct {
	sc       *Scenario
	world    *world
	list     []crawlView
	docs     []filed // by number
	live     int     // stored documents without outcome
	stopping bool    // a crawl is being stopped: its documents end before that is acknowledged
}

type crawlView struct {
	budget    budgetView
	shapes    shapeView
	scope     scopeView
	stopped   bool
	isOver    bool           // the daemon has had the time to notice that scope.Until has passed
	changedAt time.Duration  // when the last change was acknowledged
	docs      int            // stored
	domains   map[string]int // likewise by registered domain
}

// scopeView is a scope as an operator writes it.
type scopeView struct {
	Domains        []string
	Hosts          []string
	SURTs          []string `json:"surts"`
	Allow          []string
	Deny           []string
	DenyExtensions []string `json:"deny_extensions"`
	MaxDepth       *int     `json:"max_depth"`
	MaxPages       int      `json:"max_pages"`
	MaxPagesDomain int      `json:"max_pages_domain"`
	Until          time.Time
}

// filed is what the index has of a document.
type filed struct {
	stored   bool
	ended    bool
	out      bool // handed out
	link     bool // it takes turns by its shape
	recalled bool // the daemon may return it
	kind     docindex.Kind
	depth    int
}

func newCrawlViews(sc *Scenario, w *world) *crawlViews {
	v := &crawlViews{sc: sc, world: w, list: make([]crawlView, sc.Crawls), docs: make([]filed, sc.Documents)}
	for i := range v.list {
		v.list[i].domains = map[string]int{}
		v.list[i].budget, v.list[i].shapes = newBudgetView(sc), shapeView{}
	}
	return v
}

func (v *crawlViews) of(n uint32) *crawlView { return &v.list[int(n)%v.sc.Crawls] }

// refuses returns the word of the first rule that refuses a URL at a depth and a time; "": none. Of
// a URL that is not stored yet, it looks at the counts, too.
func (c *crawlView) refuses(url string, depth int, wall time.Time, isNew bool) string {
	s := &c.scope
	host, path := partsOfURL(url)
	matches := func(p string) bool { return regexp.MustCompile(p).MatchString(url) }
	near := len(s.Domains)+len(s.Hosts)+len(s.SURTs) == 0 || slices.Contains(s.Hosts, host) ||
		slices.ContainsFunc(s.Domains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) }) ||
		slices.ContainsFunc(s.SURTs, func(p string) bool { return strings.HasPrefix(surtOf(url), p) })
	name, _, _ := strings.Cut(strings.ToLower(path), "?")
	switch {
	case !s.Until.IsZero() && !wall.Before(s.Until):
		return "until"
	case s.MaxDepth != nil && depth > *s.MaxDepth:
		return "depth"
	case !near:
		return "domain"
	case slices.ContainsFunc(s.DenyExtensions, func(e string) bool { return strings.HasSuffix(name, "."+e) }):
		return "extension"
	case slices.ContainsFunc(s.Deny, matches):
		return "deny"
	case len(s.Allow) > 0 && !slices.ContainsFunc(s.Allow, matches):
		return "allow"
	case isNew && s.MaxPages > 0 && c.docs >= s.MaxPages:
		return "pages"
	case isNew && s.MaxPagesDomain > 0 && c.domains[registered(host)] >= s.MaxPagesDomain:
		return "pages_domain"
	}
	return ""
}

// partsOfURL returns the host, without port, and the path with the query.
func partsOfURL(url string) (host, path string) {
	at := targetAt(url)
	return hostOf(url[:at]), url[at:]
}

// surtOf returns the SURT form of a URL whose host is a name; of others "".
func surtOf(url string) string {
	host, path := partsOfURL(url)
	if strings.Contains(host, ":") || strings.Trim(host, "0123456789.") == "" {
		return ""
	}
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	_, port, _ := strings.Cut(strings.TrimSuffix(url[strings.Index(url, "://")+3:], path), ":")
	if port != "" {
		port = ":" + port
	}
	return "http://(" + strings.Join(labels, ",") + "," + port + ")" + strings.ToLower(path)
}

// registered returns the registered domain of a host: in the simulation its last two labels.
func registered(host string) string {
	labels := strings.Split(host, ".")
	if len(labels) < 2 || strings.Trim(host, "0123456789.:abcdef") == "" {
		return host
	}
	return strings.Join(labels[len(labels)-2:], ".")
}

// setsScope records that a crawl is about to get another scope, hasScope that it has got it.
func (o *oracle) setsScope(c int, text string) {
	view := &o.crawls.list[c]
	view.scope, view.isOver = scopeView{}, false
	if err := json.Unmarshal([]byte(text), &view.scope); err != nil {
		o.wrong(RuleScope, "%s: %v", text, err)
	}
}

func (o *oracle) hasScope(c int) {
	o.crawls.list[c].changedAt = o.now
	for n := range o.crawls.docs {
		d := &o.crawls.docs[n]
		if n%o.crawls.sc.Crawls != c || !d.ended || d.kind != docindex.OutOfScope {
			continue
		}
		if o.refusedNow(uint32(n)) == "" {
			o.wrong(RuleScopeLost, "document %d ended as out_of_scope; it is in scope again, and not scheduled", n)
		}
	}
}

func (o *oracle) stoppedCrawl(c int) {
	o.crawls.list[c].stopped, o.crawls.list[c].changedAt = true, o.now
}

// over records that the daemon has noticed that a crawl's time has passed.
func (o *oracle) over(c int) {
	view := &o.crawls.list[c]
	view.isOver = !view.scope.Until.IsZero() && !o.wall.Before(view.scope.Until)
	if view.isOver {
		view.changedAt = o.now
	}
}

// refusedNow returns the rule that refuses a stored document now.
func (o *oracle) refusedNow(n uint32) string {
	_, url := o.crawls.world.url(n)
	return o.crawls.of(n).refuses(url, o.crawls.docs[n].depth, o.wall, false)
}

// put checks what became of links and seeds that were put together.
func (o *oracle) put(list []put, verdicts []docindex.Verdict, res docindex.PutResult) {
	rules := map[string]int{}
	for i, p := range list {
		want, rule := o.wanted(p)
		if rule != "" {
			rules[rule]++
		}
		if verdicts[i] != want {
			_, url := o.crawls.world.url(p.doc)
			o.wrong(RuleScope, "%s, put with page %d: verdict %v; want %v %s of %+v", url, p.via, verdicts[i], want,
				rule, o.crawls.of(p.doc).scope)
			return
		}
	}
	got := map[string]int{}
	for rule, n := range res.Rules {
		if n > 0 {
			got[scopeWords[rule]] = n
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(rules) {
		o.wrong(RuleScope, "refused by rule: %v; want %v", got, rules)
	}
}

// scopeWords are the contract's words of the rules, in its order.
var scopeWords = []string{"", "until", "depth", "domain", "extension", "deny", "allow", "pages", "pages_domain"}

// wanted returns the verdict that a put has to get, and the rule that refuses it.
func (o *oracle) wanted(p put) (docindex.Verdict, string) {
	c, d, depth := o.crawls.of(p.doc), &o.crawls.docs[p.doc], 0
	if p.via >= 0 {
		page := &o.crawls.docs[p.via]
		if !page.stored {
			return docindex.Refused, ""
		}
		depth = page.depth + 1
	}
	if c.stopped {
		return docindex.Dropped, ""
	}
	_, url := o.crawls.world.url(p.doc)
	if rule := c.refuses(url, depth, o.wall, !d.stored); rule != "" {
		return docindex.Outside, rule
	}
	if d.stored {
		return docindex.Same, ""
	}
	host, _ := partsOfURL(url)
	*d = filed{stored: true, depth: depth, link: p.via >= 0 && c.budget.scheduled[host] >= shapedFrom}
	c.budget.schedule(host)
	c.shapes.waits(host, o.crawls.shapeOf(p.doc), d.link, 1)
	c.docs++
	c.domains[registered(host)]++
	o.crawls.live++
	return docindex.New, ""
}

// stored records that an outcome of a document reaches the index. bySelf: the index ends it itself,
// as its scope has changed; the daemon must not have it then.
func (o *oracle) stored(n uint32, kind docindex.Kind, bySelf bool) {
	d := &o.crawls.docs[n]
	switch {
	case !d.stored || d.ended:
		o.wrong(RuleOutcome, "document %d ends in the index as %v, and has no end to get", n, kind)
		return
	case bySelf && o.docs[n].held:
		o.wrong(RuleOutcome, "document %d ends in the index as %v, and the daemon has it", n, kind)
	case bySelf || kind == docindex.OutOfScope: // by the scope of now, whatever it was when it was taken
		o.refused(n, kind)
	}
	o.crawls.endsIn(n)
	d.ended, d.kind = true, kind
	o.crawls.live--
}

// refused checks that the index ends a document rightly instead of handing it out.
func (o *oracle) refused(n uint32, kind docindex.Kind) {
	rule, stopped := o.refusedNow(n), o.crawls.of(n).stopped
	switch kind {
	case docindex.Stopped:
		if stopped || o.crawls.stopping {
			return
		}
	case docindex.OutOfScope:
		if rule != "" || stopped {
			return
		}
	}
	o.wrong(RuleScopeLost, "document %d ends as %v; rule %q refuses it, stopped: %v", n, kind, rule, stopped)
}

// again records that the index schedules a document again that had ended as out_of_scope.
func (o *oracle) again(n uint32) {
	d := &o.crawls.docs[n]
	if !d.ended || d.kind != docindex.OutOfScope || o.refusedNow(n) != "" {
		o.wrong(RuleScope, "document %d is scheduled again; it ended: %v, as %v; %q refuses it", n, d.ended, d.kind,
			o.refusedNow(n))
		return
	}
	d.ended = false
	host, _ := partsOfURL(o.crawls.urlOf(n))
	o.crawls.of(n).budget.schedule(host)
	o.crawls.live++
}

// recalled records that the index wants a document back.
func (o *oracle) recalled(n uint32) { o.crawls.docs[n].recalled = true }

// wantsBack reports whether the index wants a document back, and ends that wish.
func (v *crawlViews) wantsBack(id string) bool {
	if v == nil {
		return false
	}
	d := &v.docs[numberOf([]byte(id))]
	was := d.recalled
	d.recalled = false
	return was
}

// inScope checks that a document may be sent. since is the earliest moment at which the daemon may
// have decided on it.
func (o *oracle) inScope(id string, since time.Duration) {
	if o.crawls == nil {
		return
	}
	n := numberOf([]byte(id))
	c, d := o.crawls.of(n), &o.crawls.docs[n]
	if !d.stored || d.ended {
		o.wrong(RuleScope, "document %d is sent, which the index does not have, or has ended", n)
	}
	if since < c.changedAt {
		return
	}
	rule := o.refusedNow(n)
	if rule == "until" && !c.isOver {
		return
	}
	if rule != "" || c.stopped {
		o.wrong(RuleScope, "document %d is sent; rule %q refuses it, since %v; stopped: %v", n, rule, c.changedAt,
			c.stopped)
	}
}

// allEnded checks, when the run is over, that what is in scope has not ended as out_of_scope.
func (o *oracle) allEnded() {
	if o.crawls == nil {
		return
	}
	for n := range o.crawls.docs {
		d, c := &o.crawls.docs[n], o.crawls.of(uint32(n))
		if d.ended && d.kind == docindex.OutOfScope && !c.stopped && o.refusedNow(uint32(n)) == "" {
			o.wrong(RuleScopeLost, "document %d ended as out_of_scope, and is in scope", n)
		}
	}
}
