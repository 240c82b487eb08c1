package urlserver

import (
	"context"
	"crypto/rand"

	"urlserver/reservation"
	"urlserver/urlserver/engine"
)

const heldLeases = 2 // for so many leases what a daemon told of its documents counts, if it tells no more

// hold tells a store that counts them how many documents are held. After an error all is told anew, under another name,
// since nobody knows what was taken of it.
func (r *Reserver) hold(ctx context.Context, c *engine.Claims) {
	counter, counts := r.Store.(reservation.Counter)
	if !counts || len(c.Held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.Lease/8) // of its own: leases are to be extended however long counting takes
	defer cancel()
	held := make([]reservation.Holding, len(c.Held))
	for i, h := range c.Held {
		held[i] = reservation.Holding{Host: h.Host, Documents: h.Documents}
		for _, c := range h.Crawls {
			held[i].Crawls = append(held[i].Crawls, reservation.CrawlPart{Crawl: c.Crawl, Documents: c.Documents})
		}
	}
	first := r.told == ""
	if first {
		r.told = r.Holder + "#" + rand.Text()
	}
	known, err := counter.ReportHoldings(ctx, r.told, first, heldLeases*r.Lease, held)
	r.note(ctx, err)
	if err != nil || !known {
		c.Forgotten = true
		r.ended, r.told = r.told, ""
		return
	}
	if r.ended != "" {
		if _, err := counter.ReportHoldings(ctx, r.ended, false, 0, nil); err == nil {
			r.ended = ""
		}
	}
}

// forget has what was told count no more.
func (r *Reserver) forget(ctx context.Context) {
	counter, counts := r.Store.(reservation.Counter)
	for _, name := range []string{r.ended, r.told} {
		if counts && name != "" {
			_, err := counter.ReportHoldings(ctx, name, false, 0, nil)
			r.note(ctx, err)
		}
	}
}
