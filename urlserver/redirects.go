package urlserver

import (
	"context"
	"fmt"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// putOutcomes queues outcomes for the doc index, and reports whether too many wait. ends are of sampled
// documents among them. Those that tell where a redirect leads go by themselves: they wait while an embedded
// index is full, which takes all other outcomes.
func (d *Daemon) putOutcomes(out *docindex.Outcomes, ends []engine.TraceEnd) (full bool) {
	if d.parts.Store != nil && out.HasLocation() {
		ofRedirects := d.split.takeRedirects(out, &ends)
		addPauses(&d.engine.Out.Pauses, &d.split.redirects)
		full = d.redirects.put(&d.split.redirects, ofRedirects)
	}
	return out.Len() > 0 && d.outbox.put(out, ends) || full
}

// addPauses adds what some outcomes say of the pauses and gaps of hosts.
func addPauses(to, of *docindex.Outcomes) {
	for i := range of.Len() {
		if o := of.At(i); o.Pause > 0 || o.Gap > 0 {
			to.Add(docindex.Outcome{URL: o.URL, Pause: o.Pause, Gap: o.Gap})
		}
	}
}

const pauseIsOld = time.Second // after the outcome that says it

// withoutOldPauses returns outcomes without the pauses and gaps of those that have waited. The index knows these
// from addPauses, and since then it may have had others of the same hosts.
func withoutOldPauses(of *docindex.Outcomes, now time.Time) *docindex.Outcomes {
	if of.Len() == 0 || now.Sub(of.At(0).At) < pauseIsOld { // the first one has waited longest
		return of
	}
	var out docindex.Outcomes
	for i := range of.Len() {
		o := of.At(i)
		if now.Sub(o.At) >= pauseIsOld {
			o.Pause, o.Gap = 0, 0
		}
		out.Add(o)
	}
	return &out
}

// split has the buffers of takeRedirects, which are empty in between.
type split struct{ redirects, others docindex.Outcomes }

// takeRedirects moves the outcomes that have a location from out to s.redirects. Their ends are removed
// from ends, and returned.
func (s *split) takeRedirects(out *docindex.Outcomes, ends *[]engine.TraceEnd) (taken []engine.TraceEnd) {
	rest, left := *ends, (*ends)[:0]
	for i := range out.Len() {
		o := out.At(i)
		to, list := &s.others, &left
		if len(o.Location) > 0 {
			to, list = &s.redirects, &taken
		}
		to.Add(o)
		for ; len(rest) > 0 && rest[0].Outcome == i+1; rest = rest[1:] {
			end := rest[0]
			end.Outcome = to.Len()
			*list = append(*list, end)
		}
	}
	*out, s.others, *ends = s.others, *out, left
	s.others.Reset()
	return taken
}

// outcomesWithTargets puts the targets of redirects that spiders reported into the embedded index,
// and then reports the outcomes. In this order no target is lost: a document that is done is not
// sent again, so no spider would report its target once more. After an error the outbox repeats
// both, which does no harm.
func (d *Daemon) outcomesWithTargets(ctx context.Context, o *docindex.Outcomes) error {
	if err := d.putTargets(ctx, o); err != nil {
		return fmt.Errorf("targets of redirects: %w", err)
	}
	return d.parts.Index.Outcomes(ctx, withoutOldPauses(o, time.Now()))
}

// maxSitemaps bounds the sitemaps that wait for the embedded index.
const maxSitemaps = 1 << 16

// putSitemaps queues sitemaps for the embedded index, and leaves an empty buffer in their place. If
// too many wait, it drops them: they are put when their robots.txt is fetched again.
func (d *Daemon) putSitemaps(o *docindex.Outcomes) {
	if d.sitemaps.pending() < maxSitemaps {
		d.sitemaps.put(o, nil)
		return
	}
	if n, ok := d.sitemapDrops.allow(time.Now()); ok {
		d.log.Warn().Int("count", o.Len()).Int("not_logged", n).
			Msg("sitemaps of robots.txt are dropped until the doc index has taken those that wait")
	}
	o.Reset()
}

// putTargets puts the targets of redirects, or the sitemaps of robots.txt. A target gets the crawl,
// the application and the spider of a document, and is one link deeper: the document that
// redirects, or for which the robots.txt was fetched. putTargets drops targets that are no valid
// URLs. The store drops those out of scope, and those of documents that were deleted.
func (d *Daemon) putTargets(ctx context.Context, o *docindex.Outcomes) error {
	var puts docindex.Puts
	for i := range o.Len() {
		out := o.At(i)
		if len(out.Location) == 0 {
			continue
		}
		_ = puts.Add(docindex.Put{URL: out.Location, Via: out.DocID})
	}
	if puts.Len() == 0 {
		return nil
	}
	_, err := d.parts.Store.Put(ctx, &puts)
	return err
}
