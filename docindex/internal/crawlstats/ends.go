package crawlstats

import (
	"time"

	"urlserver/docindex"
)

// ExpireAt sets when a crawl expires, in seconds since 1970, and answers whether that changed it; 0: never.
func (l *Stats) ExpireAt(b *CrawlStats, at int64) bool {
	if b.Stopped || b.Expires == at {
		return false
	}
	b.Expires = at
	if at == 0 {
		l.due.Remove(b.No)
		return true
	}
	l.due.Set(b.No, time.Duration(at))
	return true
}

// Stop says that nothing of a crawl is wanted any more, for a reason of the store's. It is due until it is Purged.
func (l *Stats) Stop(b *CrawlStats, why docindex.Kind) {
	b.Stopped, b.Why = true, why
	l.stopped++
	l.idleSince.Remove(b.No)
	l.due.Set(b.No, 0)
}

// ReportPurged says that nothing of a refused crawl is scheduled any more, and returns how many documents ended because of the
// refusal since somebody was told.
func (l *Stats) ReportPurged(b *CrawlStats) int {
	l.due.Remove(b.No)
	b.Reported = b.Unreported
	return b.Unreported
}

// AckEnd says that somebody was told how a crawl ended, by being refused where round is 0, or else in that round.
func (b *CrawlStats) AckEnd(round uint64) {
	if round > 0 {
		b.ReportedEpoch = max(b.ReportedEpoch, round)
		return
	}
	b.Unreported, b.Reported, b.EndReported = b.Unreported-b.Reported, 0, b.Stopped
}

// ToEnd lists crawls, at most so many, that are to be ended.
func (l *Stats) ToEnd(now time.Time, most int) (all []docindex.CrawlEnd) {
	var found []uint32
	for len(found) < most {
		no, at, ok := l.due.Min()
		if !ok || int64(at) > now.Unix() {
			break
		}
		l.due.Remove(no)
		found = append(found, no)
	}
	for _, no := range found { // they stay until they are purged
		b, at := l.numbered[no], int64(0)
		if !b.Stopped {
			at = b.Expires
		}
		all = append(all, docindex.CrawlEnd{CrawlID: b.ID, Expired: !b.Stopped || b.Why == docindex.Expired})
		l.due.Set(no, time.Duration(at))
	}
	return all
}

// Finished lists crawls, at most so many, that are not refused and of which nothing was open since a time, each once for
// each time that this happened.
func (l *Stats) Finished(since time.Time, most int) (done []docindex.FinishedCrawl) {
	for len(done) < most {
		no, at, ok := l.idleSince.Min()
		if !ok || int64(at) > since.UnixMilli() {
			break
		}
		l.idleSince.Remove(no)
		b := l.numbered[no]
		done = append(done, docindex.FinishedCrawl{CrawlID: b.ID, Done: b.Done(), Epoch: b.Epoch})
	}
	return done
}

// Counts counts documents of crawls: of some, at most so many, and of all others together, without a name, which come last.
// expired is why crawls are refused that have.
func (l *Stats) Counts(most int) (counts []docindex.CrawlCounts) {
	other := l.sum
	for _, b := range l.numbered[1:] {
		if b == nil {
			continue
		}
		c := docindex.CrawlCounts{
			CrawlID: b.ID, Pending: b.Pending(), InTransit: b.Count[InClients], Done: b.Done(), Sent: b.Sent, Purged: b.Purged, Dropped: b.Dropped,
		}
		if b.Stopped && b.Why == docindex.Expired {
			c.Expired = b.Purged
		}
		if len(counts) < most {
			counts = append(counts, c)
			continue
		}
		other.Pending += c.Pending
		other.InTransit += c.InTransit
		other.Done += c.Done
		other.Sent += c.Sent
		other.Purged += c.Purged
		other.Expired += c.Expired
		other.Dropped += c.Dropped
	}
	return append(counts, other)
}
