// Package budgetmodel is a slow and simple model of the budgets that registered domains have in a
// crawl. Tests show it each page that an index hands out; it says which were not right.
package budgetmodel

import "fmt"

// Crawl is what the model knows of a crawl. Budget is the pages of a round; 0: no budget.
type Crawl struct {
	Budget int

	pages   int // that were handed out; a costly one counts as several
	domains map[string]*domain
}

type domain struct {
	pages int // that were handed out
	used  int // of these, in this round
	begun int // pages of all other domains when the round began
	round int // how often it overran, less the rounds in which it did not
	waits bool
	next  int // pages of the crawl at which it goes on
	wait  int // of these from its overrun on
}

// maxDoublings is how often a round doubles: up to 64 times.
const maxDoublings = 6

// Known says that a page of a domain was stored. The first one begins the domain's first round.
func (c *Crawl) Known(name string) { c.of(name) }

// Page says that a page of a domain was handed out, which counts as so many. ready has
// the domains of the crawl of which a page could be handed out then, this one included; active is how
// many have pages that are scheduled or in transit. The result says what is wrong with it; "": nothing.
func (c *Crawl) Page(name string, pages int, ready func() map[string]bool, active int) (wrong string) {
	d := c.of(name)
	switch {
	case d.waits && c.pages < d.next:
		wrong = c.outOfTurn(name, d, ready())
		d.next += pages // its own pages do not bring its round nearer
	case d.waits:
		d.round = max(0, d.round-(c.pages-d.next)/d.wait)
		c.begin(d)
	}
	c.pages += pages
	d.pages += pages
	if d.waits {
		return wrong
	}
	if d.used += pages; c.Budget > 0 && d.used >= c.Budget {
		c.end(d, active)
	}
	return ""
}

// outOfTurn says what is wrong with a page of a domain that waits.
func (c *Crawl) outOfTurn(name string, d *domain, ready map[string]bool) (wrong string) {
	for other := range ready {
		switch o := c.of(other); {
		case !o.waits || c.pages >= o.next:
			wrong = fmt.Sprintf("%s is over its budget for %d pages more, and %s is not", name,
				d.next-c.pages, other)
		case o.next < d.next:
			wrong = fmt.Sprintf("%s goes on in %d pages, and %s in %d", name, d.next-c.pages, other,
				o.next-c.pages)
		}
	}
	return wrong
}

// end ends a round of a domain that has had its budget.
func (c *Crawl) end(d *domain, active int) {
	others := c.pages - d.pages - d.begun
	length := c.Budget * (active - 1) << min(d.round, maxDoublings)
	if 2*others >= length {
		c.begin(d)
		d.round = max(0, d.round-1)
		return
	}
	d.round++
	d.waits, d.wait = true, length-others
	d.next = c.pages + d.wait
}

func (c *Crawl) begin(d *domain) {
	d.waits, d.used, d.begun = false, 0, c.pages-d.pages
}

func (c *Crawl) of(name string) *domain {
	if c.domains == nil {
		c.domains = map[string]*domain{}
	}
	d := c.domains[name]
	if d == nil {
		d = &domain{}
		c.domains[name] = d
		c.begin(d)
	}
	return d
}

// Waits returns the round of a domain, from 1 on, and the pages after which it goes on; 0, 0: it is
// within its budget.
func (c *Crawl) Waits(name string) (round, pages int) {
	if d := c.of(name); d.waits && d.next > c.pages {
		return d.round + 1, d.next - c.pages
	}
	return 0, 0
}

// SetBudget changes the budget. With another one rounds begin anew.
func (c *Crawl) SetBudget(pages int) {
	if pages != c.Budget && (c.Budget > 0 || pages == 0) {
		for _, d := range c.domains {
			d.round = 0
			c.begin(d)
		}
	}
	c.Budget = pages
}
