// Package rounds counts the pages of a crawl's registered domains, and says which of them are to wait.
//
// A round of a domain is the time in which a crawl hands out budget pages of it. A domain overruns if
// the other domains of its crawl that have work have had less than half as many pages meanwhile, on
// average. Then it waits until they have had as many: that ends the round. Each time that it overruns
// again the length of its next round doubles, up to maxStretch times. A round in which it does not
// overrun halves the length again. (BEAST, in IRLbot: Scaling to 6 Billion Pages and Beyond, 2008.)
//
// Pages of a crawl are counted as its domains' are: a costly page counts as several.
package rounds

const maxStretch = 6

// Domain counts the pages of a domain of a crawl.
type Domain struct {
	Pages uint64 // that were handed out
	Begun uint64 // pages of the other domains when the round began
	Used  uint32 // pages of the round
}

// Begin begins a round with the crawl's next page.
func (d *Domain) Begin(ofCrawl uint64) { d.Used, d.Begun = 0, ofCrawl-d.Pages }

// End returns how many pages of its crawl a domain has to wait for that has had its budget; 0: it does
// not overrun. withWork is the number of domains with work, round how often it overran before.
func (d *Domain) End(ofCrawl, budget, withWork uint64, round uint32) (wait uint64) {
	others := ofCrawl - d.Pages - d.Begun
	length := budget * (max(withWork, 1) - 1) << min(round, maxStretch)
	if 2*others >= length {
		return 0
	}
	return length - others
}

// Overrun is the state of a domain that has overrun its budget.
type Overrun struct {
	Round uint32 // times that it overran, less the rounds in which it did not
	Next  uint64 // pages of the crawl with which its next round begins; 0: it has a round
	Wait  uint64 // pages from its overrun to Next
	Since int64  // ms; when it overran
}

// Waits begins to wait for so many pages of the crawl.
func (o *Overrun) Waits(ofCrawl, wait uint64, now int64) {
	o.Round++
	o.Next, o.Wait, o.Since = ofCrawl+wait, wait, now
}

// Waited returns for how long the domain has waited at the crawl's last page, ms; 0: it does not wait.
func (o *Overrun) Waited(ofCrawl uint64, lastPage int64) int64 {
	if ofCrawl >= o.Next {
		return 0
	}
	return max(0, lastPage-o.Since)
}

// IsOver ends the wait if the crawl has had the pages, and reports whether it did so. Rounds in
// which the domain had nothing to hand out count as rounds in which it did not overrun.
func (o *Overrun) IsOver(ofCrawl uint64) bool {
	if ofCrawl < o.Next {
		return false
	}
	if ofCrawl > o.Next {
		o.Round -= uint32(min(uint64(o.Round), (ofCrawl-o.Next)/o.Wait))
	}
	o.Next = 0
	return true
}
