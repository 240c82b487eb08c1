package recrawl

import (
	"time"

	"urlserver/docindex"
)

// Rule is how long after its end a document is fetched again, by how it ended: 0 is never, anything
// else from a second to a year.
type Rule struct {
	OK    time.Duration // a spider fetched it: 2xx, 3xx, or without a status
	Gone  time.Duration // 404 or 410
	Error time.Duration // all else that may differ next time
}

const (
	longest = 365 * 24 * time.Hour // the longest wait
	maxGrow = 64                   // times Error: the longest wait of a document that fails again and again
	spread  = 8                    // times OK: the longest interval; OK by this: the shortest
	maxRow  = 1000                 // the most errors in a row that are counted
)

// schedule is what is kept of a document from one fetch to the next. The zero value is that of a
// document that never ended.
type schedule struct {
	interval time.Duration // until it comes back when all is well, in whole seconds; 0: not known
	errors   int           // in a row
	ended    int64         // when it ended, as reported, ms since 1970; 0: not known
}

// next decides when a document that has ended comes back, and its next schedule; a wait of 0:
// never.
func (r Rule) next(s schedule, o *docindex.Outcome) (after schedule, wait time.Duration) {
	s.ended = 0
	if !o.At.IsZero() {
		s.ended = o.At.UnixMilli()
	}
	switch classOf(o) {
	case ok:
		s.errors, s.interval = 0, r.interval(s.interval, changeOf(o))
		return s, s.interval
	case gone:
		s.errors = 0
		return s, r.Gone
	case failed:
		s.errors = min(s.errors+1, maxRow)
		return s, r.backOff(s.errors)
	}
	return s, 0
}

// interval returns the interval after a success, from the one before. Without reports of changes it
// is the configured one.
func (r Rule) interval(last time.Duration, c docindex.Change) time.Duration {
	if last == 0 || c == docindex.ChangeUnknown || r.OK == 0 {
		last = r.OK
	}
	switch c {
	case docindex.Modified:
		last /= 2
	case docindex.Unchanged:
		last += last / 2
	}
	return wholeSeconds(min(max(last, r.OK/spread), r.OK*spread, longest))
}

// backOff returns the wait after n errors in a row.
func (r Rule) backOff(errors int) time.Duration {
	wait := r.Error
	for i := 1; i < errors && wait < maxGrow*r.Error; i++ {
		wait *= 2
	}
	return min(wait, longest)
}

func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// class is what a Rule distinguishes.
type class uint8

const (
	final  class = iota // nothing to fetch any more
	ok                  // fetched
	gone                // 404 or 410
	failed              // may differ next time
)

// classOf returns the class of an outcome. robots.txt counts as an error that may pass: it forbids
// everything while it cannot be fetched, and a new attempt costs its host one request for
// robots.txt at most.
func classOf(o *docindex.Outcome) class {
	switch o.Kind {
	case docindex.Timeout, docindex.Robots, docindex.DNS:
		return failed
	case docindex.Done:
	default:
		return final
	}
	switch {
	case o.NoStatus, 200 <= o.Status && o.Status < 400:
		return ok
	case o.Status == 404, o.Status == 410:
		return gone
	}
	return failed
}

// changeOf returns what an outcome says of changes: a 304 is unchanged.
func changeOf(o *docindex.Outcome) docindex.Change {
	if o.Change == docindex.ChangeUnknown && o.Status == 304 {
		return docindex.Unchanged
	}
	return o.Change
}
