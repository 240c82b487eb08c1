package spider

import (
	"runtime"
	"sync/atomic"
)

// Stats is what a spider has done since New.
type Stats struct {
	Daemons  int64 // connections now open
	InFlight int64 // documents now taken and not yet DONE

	Fetched   int64 // answers with a status
	Failed    int64 // documents whose host gave no answer, or none that was whole
	Truncated int64 // bodies cut at the limit
	Bytes     int64 // of bodies, as they came
	Working   int64 // WORKING lines
	BadLines  int64 // lines of the daemon that made no sense

	Links        int64 // found, each once a page
	LinksTaken   int64 // by the index, known ones included
	LinksRefused int64 // by the index, as invalid
	LinksDropped int64 // over the limit of a page

	IndexErrors   int64 // requests to the index that failed and were tried again
	ArchiveErrors int64 // records that could not be written and were tried again
}

type counters struct {
	daemons, inFlight                             atomic.Int64
	fetched, failed, truncated, bytes             atomic.Int64
	working, badLines                             atomic.Int64
	links, linksTaken, linksRefused, linksDropped atomic.Int64
	indexErrors, archiveErrors                    atomic.Int64
}

// Stats returns the counters; they are read one after the other, not at one moment.
func (s *Spider) Stats() Stats {
	c := &s.count
	return Stats{
		Daemons:       c.daemons.Load(),
		InFlight:      c.inFlight.Load(),
		Fetched:       c.fetched.Load(),
		Failed:        c.failed.Load(),
		Truncated:     c.truncated.Load(),
		Bytes:         c.bytes.Load(),
		Working:       c.working.Load(),
		BadLines:      c.badLines.Load(),
		Links:         c.links.Load(),
		LinksTaken:    c.linksTaken.Load(),
		LinksRefused:  c.linksRefused.Load(),
		LinksDropped:  c.linksDropped.Load(),
		IndexErrors:   c.indexErrors.Load(),
		ArchiveErrors: c.archiveErrors.Load(),
	}
}

func cores() int { return runtime.GOMAXPROCS(0) }
