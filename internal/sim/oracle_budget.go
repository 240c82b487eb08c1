package sim

import (
	"slices"

	"urlserver/docindex"
	"urlserver/internal/budgetmodel"
)

// budgetView is what the oracle knows of the turns of a crawl's domains.
type budgetView struct {
	model     budgetmodel.Crawl
	ahead     docindex.Ahead
	scheduled map[string]int // documents by host that the index may hand out
	live      map[string]int // by domain, those and the documents that are handed out
	out       map[string]int // by domain, these alone
}

func newBudgetView(sc *Scenario) budgetView {
	budget, ahead := sc.turns()
	return budgetView{model: budgetmodel.Crawl{Budget: budget}, ahead: ahead, scheduled: map[string]int{},
		live: map[string]int{}, out: map[string]int{}}
}

// schedule records that a document is stored, or that one that ended is scheduled again.
func (b *budgetView) schedule(host string) {
	b.model.Known(registered(host))
	b.live[registered(host)]++
	b.scheduled[host]++
}

func less(counts map[string]int, key string) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

func (v *crawlViews) urlOf(n uint32) string {
	_, url := v.world.url(n)
	return url
}

// enough reports whether the slots have as many documents of a domain as they take ahead.
func (b *budgetView) enough(domain string) bool {
	most := b.ahead.Domain
	if _, pages := b.model.Waits(domain); pages > 0 {
		most = b.ahead.Waiting
	}
	return most > 0 && b.out[domain] >= most
}

// handedOut checks that the index hands out a document in the turn of its domain.
func (o *oracle) handedOut(n uint32, reject []string) {
	c, d := o.crawls.of(n), &o.crawls.docs[n]
	host, _ := partsOfURL(o.crawls.urlOf(n))
	if !d.stored || d.ended || d.out {
		o.wrong(RuleBudget, "document %d is handed out, and is not scheduled", n)
		return
	}
	ready := func() map[string]bool {
		domains := map[string]bool{}
		for host := range c.budget.scheduled {
			if domain := registered(host); !slices.Contains(reject, host) && !c.budget.enough(domain) {
				domains[domain] = true
			}
		}
		return domains
	}
	domain := registered(host)
	if c.budget.enough(domain) {
		o.wrong(RuleAhead, "document %d on %s is handed out, and the slots have %d of its domain", n, host,
			c.budget.out[domain])
	}
	if wrong := c.budget.model.Page(domain, 1, ready, len(c.budget.live)); wrong != "" {
		o.wrong(RuleBudget, "document %d on %s is handed out: %s", n, host, wrong)
	}
	o.takesTurn(n, host)
	d.out = true
	c.budget.out[domain]++
	less(c.budget.scheduled, host)
}

// comesBack records that the daemon returns a document to the index.
func (v *crawlViews) comesBack(n uint32) {
	if d := &v.docs[n]; d.stored && d.out && !d.ended {
		d.out = false
		host, _ := partsOfURL(v.urlOf(n))
		v.of(n).budget.scheduled[host]++
		v.of(n).shapes.waits(host, v.shapeOf(n), d.link, 1)
		less(v.of(n).budget.out, registered(host))
	}
}

// endsIn records that a document ends in the index.
func (v *crawlViews) endsIn(n uint32) {
	d, b := &v.docs[n], &v.of(n).budget
	host, _ := partsOfURL(v.urlOf(n))
	if d.out {
		less(b.out, registered(host))
	} else {
		less(b.scheduled, host)
		v.of(n).shapes.waits(host, v.shapeOf(n), d.link, -1)
	}
	d.out = false
	less(b.live, registered(host))
}
