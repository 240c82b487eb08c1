package recrawl

import (
	"time"

	"urlserver/docindex"
)

// Rule says how long after a document ended it is fetched again, by how it ended: 0 is never, the others are from a
// second to a year.
type Rule struct {
	OK    time.Duration // a spider fetched it: 2xx, 3xx, or it told no status
	Gone  time.Duration // 404 or 410
	Error time.Duration // all else that may be otherwise next time
}

const (
	longest = 365 * 24 * time.Hour // whatever has grown
	maxGrow = 64                   // times Error: the longest wait of a document that fails again and again
	spread  = 8                    // times OK: the longest interval; OK by this: the shortest
	maxRow  = 1000                 // errors in a row that are counted
)

// schedule is what is known of a document from one time to the next. The zero value is of one that never ended.
type schedule struct {
	interval time.Duration // after which it comes back when all is well, in whole seconds; 0: none is known
	errors   int           // in a row
	ended    int64         // ms since 1970, when it ended as it was reported; 0: not known
}

// next decides about a document that has ended: when it comes back, and what is known of it then; a wait of 0: never.
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

// interval is the one after a success, from the one before. Where nobody tells of changes it is as it is set.
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

// backOff is the wait after the last of so many errors in a row.
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

// class is what a Rule tells apart.
type class uint8

const (
	final  class = iota // there is nothing to be fetched any more
	ok                  // it is there
	gone                // it is not
	failed              // who knows
)

// classOf has robots.txt among what may be otherwise next time: it forbids all while it cannot be had, and to look again
// asks its host for robots.txt at most.
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

// changeOf is what an outcome tells of changes: 304 is HTTP's word for none.
func changeOf(o *docindex.Outcome) docindex.Change {
	if o.Change == docindex.ChangeUnknown && o.Status == 304 {
		return docindex.Unchanged
	}
	return o.Change
}
