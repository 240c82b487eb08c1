package urlserver

import (
	"context"
	"fmt"

	"urlserver/docindex"
)

// elsewhere says where the documents of a host are that this daemon does not hold, and whether the embedded index knows
// of any; out is how many are in transit.
func (d *Daemon) elsewhere(ctx context.Context, host string) (text string, out uint64) {
	var n docindex.Counts
	if d.parts.Store == nil {
		return "", 0
	}
	for _, crawl := range d.parts.Store.Crawls() {
		if ctx.Err() != nil {
			break
		}
		c := d.parts.Store.Count(&docindex.Scope{Crawl: []byte(crawl), Key: []byte(host)})
		n.Scheduled, n.InTransit, n.Completed = n.Scheduled+c.Scheduled, n.InTransit+c.InTransit, n.Completed+c.Completed
	}
	switch {
	case n.InTransit > 0:
		text = fmt.Sprintf("%d of its documents are out, but not here: they were given as candidates over HTTP, to clients of the URL Frontier "+
			"or to another daemon on this index; until they are back nothing of it is sent from here", n.InTransit)
	case n.Scheduled > 0:
		text = fmt.Sprintf("nothing of it is held here; %d of its documents wait in the doc index", n.Scheduled)
	case n.Completed > 0:
		text = fmt.Sprintf("nothing is to be fetched: all its documents in the doc index are completed (%d)", n.Completed)
	}
	return text, n.InTransit
}
