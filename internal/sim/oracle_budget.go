package sim

import (
	"slices"

	"urlserver/internal/budgetmodel"
)

// budgetView is what the oracle knows of the turns of a crawl's domains.
type budgetView struct {
	model     budgetmodel.Crawl
	scheduled map[string]int // documents by host that the index may hand out
	live      map[string]int // by domain, those and the documents that are handed out
}

func newBudgetView() budgetView {
	return budgetView{model: budgetmodel.Crawl{Budget: scopedBudget}, scheduled: map[string]int{},
		live: map[string]int{}}
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
			if !slices.Contains(reject, host) {
				domains[registered(host)] = true
			}
		}
		return domains
	}
	if wrong := c.budget.model.Page(registered(host), ready, len(c.budget.live)); wrong != "" {
		o.wrong(RuleBudget, "document %d on %s is handed out: %s", n, host, wrong)
	}
	d.out = true
	less(c.budget.scheduled, host)
}

// comesBack records that the daemon returns a document to the index.
func (v *crawlViews) comesBack(n uint32) {
	if d := &v.docs[n]; d.stored && d.out && !d.ended {
		d.out = false
		host, _ := partsOfURL(v.urlOf(n))
		v.of(n).budget.scheduled[host]++
	}
}

// endsIn records that a document ends in the index.
func (v *crawlViews) endsIn(n uint32) {
	d, b := &v.docs[n], &v.of(n).budget
	host, _ := partsOfURL(v.urlOf(n))
	if !d.out {
		less(b.scheduled, host)
	}
	d.out = false
	less(b.live, registered(host))
}
