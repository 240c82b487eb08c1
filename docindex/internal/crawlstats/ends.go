package crawlstats

import (
	"time"

	"urlserver/docindex"
)

// ExpireAt sets when a crawl expires, in seconds since 1970; 0: never. It returns whether that
// changed anything.
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

// Stop marks a crawl as stopped, for a reason. The crawl is due until ReportPurged.
func (l *Stats) Stop(b *CrawlStats, why docindex.Kind) {
	b.Stopped, b.Why = true, why
	l.stopped++
	l.idleSince.Remove(b.No)
	l.due.Set(b.No, 0)
}

// ReportPurged records that nothing of a stopped crawl is scheduled any more. It returns how many
// documents ended because of the stop since the last AckEnd.
func (l *Stats) ReportPurged(b *CrawlStats) int {
	l.due.Remove(b.No)
	b.Reported = b.Unreported
	return b.Unreported
}

// AckEnd records that the end of a crawl was reported: of a stop if epoch is 0, else of that epoch.
func (b *CrawlStats) AckEnd(round uint64) {
	if round > 0 {
		b.ReportedEpoch = max(b.ReportedEpoch, round)
		return
	}
	b.Unreported, b.Reported, b.EndReported = b.Unreported-b.Reported, 0, b.Stopped
}

// ToEnd returns up to most crawls that are to be ended.
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

// Finished returns up to most crawls that are not stopped and have had no open documents since a
// time, once each time that this happened.
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

// Counts returns the counts of up to most crawls, and last, without a name, those of all others
// together.
func (l *Stats) Counts(most int) (counts []docindex.CrawlCounts) {
	other := l.sum
	for _, b := range l.numbered[1:] {
		if b == nil {
			continue
		}
		c := docindex.CrawlCounts{
			CrawlID: b.ID, Pending: b.Pending(), InTransit: b.Count[InClients], Done: b.Done(),
			Sent: b.Sent, Purged: b.Purged, Dropped: b.Dropped,
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
