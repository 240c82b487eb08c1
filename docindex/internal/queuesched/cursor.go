package queuesched

// Cursor is the position of one call in the queues: in those with one key, or in all by turns.
type Cursor struct {
	Queue uint32 // where the cursor is; 0: nowhere
	Gave  bool   // Queue gave something

	call    Call
	query   Query
	named   []string // crawls that have a queue with the key, if the query has a key
	visited int      // how many of named were visited
	served  uint32   // queues that gave something
	loads   int      // times that it loaded queues
	charges []charge // of the queues of the portion, if addresses count
}

// Query is what a call asks for.
type Query struct {
	Crawl, Key []byte
	AnyCrawl   bool
	PerQueue   uint32 // URLs in transit that a queue has at most afterwards; 0: any number
	MaxQueues  uint32 // queues that give something; 0: any number
}

// Begin begins a call. The cursor uses the query's bytes until its end.
func (d *Scheduler) Begin(w Query) (v Cursor) {
	v = Cursor{call: d.BeginCall(w.Crawl, w.AnyCrawl, w.PerQueue), query: w}
	if len(w.Key) == 0 {
		return v
	}
	crawls := []string{string(w.Crawl)}
	if w.AnyCrawl {
		crawls = d.Crawls()
	}
	for _, c := range crawls {
		if d.Find([]byte(c), w.Key) != 0 {
			v.named = append(v.named, c)
		}
	}
	return v
}

// Next moves a cursor to a queue that may be served: the one where it is, or the next one. False:
// there is none.
func (d *Scheduler) Next(v *Cursor, now int64) bool {
	found := d.next(v, now)
	d.beginCharge(v)
	return found
}

func (d *Scheduler) next(v *Cursor, now int64) bool {
	if v.Queue != 0 && !d.IsServing(&v.call, v.Queue) {
		v.Queue, v.Gave = 0, false // dropped meanwhile
	}
	switch {
	case v.Queue != 0:
		return true
	case v.query.MaxQueues > 0 && v.served >= v.query.MaxQueues:
		return false
	case len(v.query.Key) == 0:
		if v.loads == 0 {
			v.loads++
			d.loadFor(&v.call, false, now)
		}
		v.Queue = d.NextForCall(&v.call, now)
		for ; v.Queue == 0 && v.loads < loadRounds && d.loadFor(&v.call, true, now); v.loads++ {
			v.Queue = d.NextForCall(&v.call, now)
		}
		return v.Queue != 0
	}
	for v.visited < len(v.named) && v.Queue == 0 {
		id := d.Find([]byte(v.named[v.visited]), v.query.Key)
		v.visited++
		if id != 0 && d.ServeQueue(&v.call, id, now) {
			v.Queue = id
		}
	}
	return v.Queue != 0
}

// Left returns how many URLs a call may still take from the queue where it is.
func (d *Scheduler) Left(v *Cursor) uint32 { return d.LeftInCall(&v.call, v.Queue) }

// Release ends the serving of the queue where a cursor is, if any. due is when the queue's first
// URL is due. up is now or a little later: delays count from up, so that none is short by a
// fraction of a millisecond.
func (d *Scheduler) Release(v *Cursor, due, now, up int64) {
	id := v.Queue
	v.Queue = 0
	if id == 0 || !d.IsServing(&v.call, id) {
		return
	}
	d.SetDue(id, due, now)
	if v.Gave {
		v.served++
		now = up
	}
	d.EndServing(&v.call, id, v.Gave, now)
	d.endCharge(v, id)
	v.Gave = false
}

// FirstQueue returns the first queue of a crawl from a number on, or 0; then next is the number to
// continue with, or 0.
func (d *Scheduler) FirstQueue(crawl []byte, from uint32) (id, next uint32) {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		return 0, 0
	}
	end := min(from+maxSome, d.Bound())
	for id := from; id < end; id++ {
		if d.Exists(id) && d.queues.At(id).crawl == c {
			return id, 0
		}
	}
	if end == d.Bound() {
		return 0, 0
	}
	return 0, end
}

// SomeQueues visits some queues of a crawl from a number on, and returns the number to continue
// with, or 0.
func (d *Scheduler) SomeQueues(crawl []byte, from uint32, now int64, add func(key []byte, idle bool)) (next uint32) {
	end := min(from+maxSome, d.Bound())
	for id := from; id < end; id++ {
		if d.Exists(id) && d.Crawl(id) == string(crawl) {
			add(d.Key(id), d.Idle(id, now))
		}
	}
	if end == d.Bound() {
		return 0
	}
	return end
}

const maxSome = 10_000 // queues that one call looks at; the caller holds a lock
