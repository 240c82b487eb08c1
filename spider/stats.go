package spider

import (
	"runtime"
	"sync/atomic"
)

// Stats are counts since New.
type Stats struct {
	Daemons  int64 // open connections
	InFlight int64 // documents received and not yet DONE

	Fetched  int64 // answers with a status
	Failed   int64 // documents without an answer, or without a complete one
	Bytes    int64 // of bodies, as sent
	Working  int64 // WORKING lines
	BadLines int64 // invalid lines of the daemon

	Links        int64 // links found, each once per page
	LinksTaken   int64 // links that the index took, also known ones
	LinksRefused int64 // links that the index refused as invalid

	ArchiveErrors int64 // records that could not be written and were tried again
}

type counters struct {
	daemons, inFlight               atomic.Int64
	fetched, failed, bytes          atomic.Int64
	working, badLines               atomic.Int64
	links, linksTaken, linksRefused atomic.Int64
	archiveErrors                   atomic.Int64
}

// Stats returns the counters. They are read one after the other, not at one moment.
func (s *Spider) Stats() Stats {
	c := &s.count
	return Stats{
		Daemons:       c.daemons.Load(),
		InFlight:      c.inFlight.Load(),
		Fetched:       c.fetched.Load(),
		Failed:        c.failed.Load(),
		Bytes:         c.bytes.Load(),
		Working:       c.working.Load(),
		BadLines:      c.badLines.Load(),
		Links:         c.links.Load(),
		LinksTaken:    c.linksTaken.Load(),
		LinksRefused:  c.linksRefused.Load(),
		ArchiveErrors: c.archiveErrors.Load(),
	}
}

func cores() int { return runtime.GOMAXPROCS(0) }
