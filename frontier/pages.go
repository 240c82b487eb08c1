package frontier

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"urlserver/docindex"
)

// A client names a page by the number of its first row, and a store would have to pass over all rows
// before that one. So a list stays open after a page, for the client that soon asks for the next one.
const (
	pageSize = 100 // the meaning of size 0
	maxOpen  = 16  // lists that are open between two pages
	openLife = 10 * time.Second
)

// page is a page of a list.
type page struct {
	of    listed
	start uint64
	size  uint32
	list  func(ctx context.Context, visit func(row) bool) error
	total func(ctx context.Context) (uint64, error) // counts the rows; nil: they are not counted
	send  func(row) error
}

// listed selects the rows of a list: the URLs of a queue, or of a crawl if there is no key, or the queues of a crawl.
type listed struct {
	crawl, key string
	filter     // of URLs
	queues     bool
	idle       bool // also the queues that are idle
}

// row is a URL, or the key of a queue.
type row struct {
	doc *docindex.Document
	key string
}

// openLists are the lists that are open between two pages, the oldest first. The zero value is ready.
type openLists struct {
	mu      sync.Mutex // guards all below; held for memory work only
	lists   []*openList
	epoch   int  // calls of closeAll
	expires bool // expire will be called
}

// openList is a list up to its next row. One call at a time uses it.
type openList struct {
	of     listed
	at     uint64 // the number of the next row
	total  uint64 // as page.total counted it for the first page
	epoch  int    // openLists.epoch when the list began
	kept   time.Time
	next   func() (row, bool)
	stop   func()
	cancel context.CancelFunc
	err    error // why the list ended
}

// send sends the rows of a page, and returns how many rows the whole list has.
func (o *openLists) send(ctx context.Context, p *page) (total uint64, err error) {
	l := o.take(p)
	goesOn := l != nil
	if !goesOn {
		if l = o.begin(p); p.total != nil {
			l.total, err = p.total(ctx)
		}
	}
	unhook := context.AfterFunc(ctx, l.cancel)
	more := false
	if err == nil {
		more, err = l.send(p)
	}
	if more && unhook() {
		o.keep(l)
		return l.total, nil
	}
	l.close()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case goesOn && errors.Is(err, docindex.ErrListAgain):
		rest := *p // the store has lost the place: a list from the first row finds it
		rest.start, rest.size = l.at, uint32(p.end()-l.at)
		return o.send(ctx, &rest)
	}
	return l.total, err
}

// end returns the number of the first row behind a page.
func (p *page) end() uint64 { return p.start + uint64(cmp.Or(p.size, pageSize)) }

// send sends the rows of a page. more reports whether rows may follow it.
func (l *openList) send(p *page) (more bool, err error) {
	for end := p.end(); l.at < end; l.at++ {
		one, ok := l.next()
		if !ok {
			return false, l.err
		}
		if l.at >= p.start {
			if err := p.send(one); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// begin opens a list at its first row.
func (o *openLists) begin(p *page) *openList {
	o.mu.Lock()
	l := &openList{of: p.of, epoch: o.epoch}
	o.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	list := p.list
	l.next, l.stop = iter.Pull(func(visit func(row) bool) { l.err = list(ctx, visit) })
	l.cancel = cancel
	return l
}

func (l *openList) close() {
	l.cancel()
	l.stop()
}

// take returns the open list whose next row is the first one of a page, or nil.
func (o *openLists) take(p *page) *openList {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expireLocked(maxOpen)
	for i, l := range o.lists {
		if l.of == p.of && l.at == p.start {
			o.lists = slices.Delete(o.lists, i, i+1)
			return l
		}
	}
	return nil
}

// keep keeps a list open for its next page.
func (o *openLists) keep(l *openList) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l.epoch != o.epoch {
		l.close()
		return
	}
	o.expireLocked(maxOpen - 1)
	l.kept = time.Now()
	o.lists = append(o.lists, l)
	if !o.expires {
		o.expires = true
		time.AfterFunc(openLife, o.expire)
	}
}

// expire closes the lists that are too old. While others are open, it calls itself again after
// openLife.
func (o *openLists) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expireLocked(maxOpen)
	if o.expires = len(o.lists) > 0; o.expires {
		time.AfterFunc(openLife, o.expire)
	}
}

// expireLocked closes the lists that are too old, and the oldest of more than most.
func (o *openLists) expireLocked(most int) {
	for len(o.lists) > most || len(o.lists) > 0 && time.Since(o.lists[0].kept) > openLife {
		o.lists[0].close()
		o.lists = slices.Delete(o.lists, 0, 1)
	}
}

// closeAll closes all lists. A call has changed the store, and they may show its former content.
func (o *openLists) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.epoch++
	o.expireLocked(0)
}
