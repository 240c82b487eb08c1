package urlserver

import (
	"context"
	"crypto/rand"

	"urlserver/reservation"
	"urlserver/urlserver/engine"
)

// holdingsTTL is the TTL of reported document counts, in lease times.
const holdingsTTL = 2

// reportHoldings reports how many documents are held to a store that counts them. After an error it
// is unknown what the store has taken, so the engine reports all counts again under another
// reporter name.
func (r *Reserver) reportHoldings(ctx context.Context, c *engine.LeaseBatch) {
	counter, counts := r.Store.(reservation.Counter)
	if !counts || len(c.Reports) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.Lease/8) // separate: slow counting must not delay the extension of leases
	defer cancel()
	held := make([]reservation.Holding, len(c.Reports))
	for i, h := range c.Reports {
		held[i] = reservation.Holding{Host: h.Host, Documents: h.Documents}
		for _, c := range h.Crawls {
			held[i].Crawls = append(held[i].Crawls, reservation.CrawlPart{Crawl: c.Crawl, Documents: c.Documents})
		}
	}
	first := r.reporter == ""
	if first {
		r.reporter = r.Holder + "#" + rand.Text()
	}
	known, err := counter.ReportHoldings(ctx, r.reporter, first, holdingsTTL*r.Lease, held)
	r.note(ctx, err)
	if err != nil || !known {
		c.ReportsLost = true
		r.formerReporter, r.reporter = r.reporter, ""
		return
	}
	if r.formerReporter != "" {
		if _, err := counter.ReportHoldings(ctx, r.formerReporter, false, 0, nil); err == nil {
			r.formerReporter = ""
		}
	}
}

// withdrawHoldings ends the validity of all reported counts.
func (r *Reserver) withdrawHoldings(ctx context.Context) {
	counter, counts := r.Store.(reservation.Counter)
	for _, name := range []string{r.formerReporter, r.reporter} {
		if counts && name != "" {
			_, err := counter.ReportHoldings(ctx, name, false, 0, nil)
			r.note(ctx, err)
		}
	}
}
