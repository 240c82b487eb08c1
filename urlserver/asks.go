package urlserver

import (
	"context"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/protocol"
)

// asks passes the PUT and COUNT lines of a spider to a goroutine of its own, which answers them in
// their order. While that goroutine works, the reader collects the next batch of lines. When the
// batch is complete, the reader waits until the goroutine has begun the one before. So at most
// three batches of one read each are in memory, TCP slows down a spider that asks for more than the
// store can do, and the engine takes no part.
type asks struct {
	worker func(*askBatch)
	start  func(func()) // begins a goroutine

	fresh bool      // add took a line since added was called
	next  *askBatch // the batch that the reader fills
	ready chan *askBatch
}

// askBatch is the PUT and COUNT lines of one read.
type askBatch struct {
	puts docindex.Puts
	list []ask
}

// ask is one line.
type ask struct {
	tag   string
	put   int    // index in puts; invalidPut, isCount
	crawl string // of a COUNT; "": all
}

const (
	invalidPut = -1
	isCount    = -2
)

func (a *asks) empty() bool { return a.next == nil || len(a.next.list) == 0 }

// added reports whether add has taken a line since the last call.
func (a *asks) added() bool {
	fresh := a.fresh
	a.fresh = false
	return fresh
}

// add takes a line that is a PUT or COUNT.
func (a *asks) add(line []byte) bool {
	if tag, object, ok := protocol.ParsePut(line); ok {
		a.fresh = true
		a.addPut(string(tag), object)
		return true
	}
	if tag, crawl, ok := protocol.ParseCount(line); ok {
		a.fresh = true
		a.batch().list = append(a.next.list, ask{tag: string(tag), put: isCount, crawl: string(crawl)})
		return true
	}
	return false
}

func (a *asks) addPut(tag string, object []byte) {
	b, one := a.batch(), ask{tag: tag, put: invalidPut}
	if put, err := httpserver.ParsePut(object); err == nil && b.puts.Add(put) == nil {
		one.put = b.puts.Len() - 1
	}
	b.list = append(b.list, one)
}

func (a *asks) batch() *askBatch {
	if a.next == nil {
		a.next = &askBatch{}
	}
	return a.next
}

// hand passes the batch on. It waits until the goroutine has begun the batch before, or quit is closed.
func (a *asks) hand(quit <-chan struct{}) {
	if a.empty() {
		return
	}
	if a.ready == nil {
		a.ready = make(chan *askBatch, 1)
		a.start(func() {
			for {
				select {
				case b := <-a.ready:
					a.worker(b)
				case <-quit:
					return
				}
			}
		})
	}
	select {
	case a.ready <- a.next:
	case <-quit:
	}
	a.next = nil
}

// answer puts and counts as a batch asks, and passes the answers to the writer. It does all puts
// first, so that counts include them.
func (s *session) answer(b *askBatch) {
	ctx, store := s.d.hard, s.d.parts.Store
	if store != nil && b.puts.Len() > 0 {
		if _, err := store.Put(ctx, &b.puts); err != nil {
			s.putFailed(err)
		}
	}
	counted := map[string]*protocol.Counts{}
	var text []byte
	for _, a := range b.list {
		switch a.put {
		case isCount:
			if _, known := counted[a.crawl]; !known {
				counted[a.crawl] = countsOf(ctx, store, a.crawl)
			}
			text = protocol.AppendCountAnswer(text, []byte(a.tag), counted[a.crawl])
		case invalidPut:
			text = protocol.AppendPutAnswer(text, []byte(a.tag), protocol.PutInvalid, nil)
		default:
			put, _ := b.puts.At(a.put)
			text = protocol.AppendPutAnswer(text, []byte(a.tag), putResult(b.puts.Verdict(a.put)), put.DocID)
		}
	}
	select {
	case s.answers <- text:
	case <-s.quit:
	}
}

// putResult returns the answer to a PUT. A URL of a crawl that was stopped or has expired is out of
// scope: it would be no use to put it again.
func putResult(v docindex.Verdict) protocol.PutResult {
	switch v {
	case docindex.New:
		return protocol.PutNew
	case docindex.Same, docindex.Changed:
		return protocol.PutKnown
	case docindex.Refused:
		return protocol.PutInvalid
	case docindex.Dropped, docindex.Outside:
		return protocol.PutOutOfScope
	}
	return protocol.PutFail
}

// countsOf counts the documents of a crawl, or of all crawls if it is ""; nil: it cannot.
func countsOf(ctx context.Context, store Store, crawl string) *protocol.Counts {
	if store == nil {
		return nil
	}
	n, err := docindex.ProgressOf(ctx, store, crawl)
	if err != nil {
		return nil
	}
	return &protocol.Counts{Scheduled: n.Scheduled, InFlight: n.InFlight, Later: n.Later, Completed: n.Completed}
}

func (s *session) putFailed(err error) {
	if n, ok := s.d.putFailures.allow(time.Now()); ok {
		s.log.Warn().Err(err).Int("not_shown", n).Msg("URLs that a spider put were not stored")
	}
}
