package queuesched

// Visits is one call on its way through the queues: through those with one key, or through all in their turn.
type Visits struct {
	Queue uint32 // where it is; 0: nowhere
	Gave  bool   // that one gave something

	call   Call
	wish   Wish
	named  []uint32 // queues, where a key is asked for
	been   int      // of these, at so many
	served uint32   // queues that gave something
}

// Wish is what a call asks for.
type Wish struct {
	Crawl, Key []byte
	AnyCrawl   bool
	PerQueue   uint32 // URLs in transit that a queue has at most afterwards; 0: any number
	MaxQueues  uint32 // that give something; 0: any number
}

// Visit begins a call, which looks at the wish's bytes until its end.
func (d *Doors) Visit(w Wish) (v Visits) {
	v = Visits{call: d.Begin(w.Crawl, w.AnyCrawl, w.PerQueue), wish: w}
	if len(w.Key) == 0 {
		return v
	}
	crawls := []string{string(w.Crawl)}
	if w.AnyCrawl {
		crawls = d.Crawls()
	}
	for _, c := range crawls {
		if id := d.Find([]byte(c), w.Key); id != 0 {
			v.named = append(v.named, id)
		}
	}
	return v
}

// Go brings a call to a queue that may be served: where it is, or the next one. False: there is none.
func (d *Doors) Go(v *Visits) bool {
	if v.Queue != 0 && !d.Serves(&v.call, v.Queue) {
		v.Queue, v.Gave = 0, false // deleted meanwhile
	}
	switch {
	case v.Queue != 0:
		return true
	case v.wish.MaxQueues > 0 && v.served >= v.wish.MaxQueues:
		return false
	case len(v.wish.Key) == 0:
		v.Queue = d.Next(&v.call)
		return v.Queue != 0
	}
	for v.been < len(v.named) && v.Queue == 0 {
		id := v.named[v.been]
		v.been++
		if d.isNamed(v, id) && d.Serve(&v.call, id) {
			v.Queue = id
		}
	}
	return v.Queue != 0
}

// isNamed reports whether a queue still is one that a call asks for by its key.
func (d *Doors) isNamed(v *Visits, id uint32) bool {
	return d.Live(id) && string(d.Key(id)) == string(v.wish.Key) && (v.wish.AnyCrawl || d.Crawl(id) == string(v.wish.Crawl))
}

// LeftOf is how many URLs a call may still take where it is.
func (d *Doors) LeftOf(v *Visits) uint32 { return d.Left(&v.call, v.Queue) }

// Leave ends the serving of the queue where a call is, if it is anywhere. due is when its first URL is due; up is now
// or a little later, so that no delay is short by a part of a millisecond.
func (d *Doors) Leave(v *Visits, due, now, up int64) {
	id := v.Queue
	v.Queue = 0
	if id == 0 || !d.Serves(&v.call, id) {
		return
	}
	d.SetDue(id, due, now)
	if v.Gave {
		v.served++
		now = up
	}
	d.End(&v.call, id, v.Gave, now)
	v.Gave = false
}

// First is the first queue of a crawl from a number on, or 0; then next is the number to go on with, or 0.
func (d *Doors) First(crawl []byte, from uint32) (id, next uint32) {
	c, ok := d.crawlNo[string(crawl)]
	if !ok {
		return 0, 0
	}
	end := min(from+maxSome, d.Bound())
	for id := from; id < end; id++ {
		if d.Live(id) && d.queues.At(id).crawl == c {
			return id, 0
		}
	}
	if end == d.Bound() {
		return 0, 0
	}
	return 0, end
}

// Some calls back with some queues of a crawl, from a number on, and returns the number to go on with, or 0.
func (d *Doors) Some(crawl []byte, from uint32, now int64, add func(key []byte, idle bool)) (next uint32) {
	end := min(from+maxSome, d.Bound())
	for id := from; id < end; id++ {
		if d.Live(id) && d.Crawl(id) == string(crawl) {
			add(d.Key(id), d.Idle(id, now))
		}
	}
	if end == d.Bound() {
		return 0
	}
	return end
}

const maxSome = 10_000 // queues that are looked at by one call of First or Some; what calls them holds a lock
