package disk

import (
	"bytes"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/embedded"
	"urlserver/internal/weburl"
)

// partition counts the documents of one crawl and one registered domain in one queue. Each document
// names its partition, so the store updates the counts of crawls without reading other documents,
// also when it deletes a whole queue.
type partition struct {
	domain            *crawlstats.Domain
	queue             uint32                    // number on disk; it need not be in memory
	next, prev        uint32                    // neighbours in the list of the queue's partitions
	open              crawlstats.PriorityCounts // documents that are not completed, by priority
	docs              uint64                    // all documents
	inFlight          crawlstats.PriorityCounts // of open, those in transit
	ended, purgedDocs uint64                    // completed documents; those that a stop ended

	// purged: the crawl was stopped, and that has ended the scheduled documents of the partition,
	// except those in returnedAfterPurge. The rows of the ended documents stay as they are until
	// the store clears the partition (see clearing). So a stop takes the same time however many
	// documents the crawl has.
	purged             bool
	purgedAt           int64             // the time of the first purge, ms; 0: not known
	scan               uint64            // the first scan that clears the partition; 0: it does not wait for one
	returnedAfterPurge map[name]struct{} // documents that were in transit at the purge and are scheduled again
}

// crawls has the crawls of a store. The commit that writes a document's row also writes the rows of
// the crawl and partition that the document changes.
type crawls struct {
	txn      *txn
	queues   *queueTable
	clearing clearing

	stats        *crawlstats.Stats
	partitions   []*partition // by number, which is the same on disk
	free         []uint32     // unused numbers below len(partitions)
	of           map[partitionKey]uint32
	ofQueue      map[uint32]uint32   // by number of a queue on disk: its first partition
	withReturned map[uint32]struct{} // partitions with returned documents

	dirtyCrawls     map[uint32]struct{} // changed by the txn, like the next two
	dirtyPartitions map[uint32]struct{}
	dirtyPriorities map[priorityKey]struct{}
}

type partitionKey struct {
	queue  uint32
	domain *crawlstats.Domain
}

// priorityKey names a range of priorities of a partition. The counts of a range share a row.
type priorityKey struct {
	partition uint32
	range_    int32
}

const rangeBits = 7 // priorities that differ in at most this many low bits share a row

func newCrawls() crawls {
	return crawls{
		stats: crawlstats.New(), partitions: make([]*partition, 1), of: map[partitionKey]uint32{},
		ofQueue:      map[uint32]uint32{},
		withReturned: map[uint32]struct{}{}, clearing: newClearing(),
		dirtyCrawls: map[uint32]struct{}{}, dirtyPartitions: map[uint32]struct{}{},
		dirtyPriorities: map[priorityKey]struct{}{},
	}
}

// enter makes a document a member of the crawl that p names, and counts it as completed. It returns
// the number of the document's partition, or 0 if p names no crawl.
func (x *crawls) enter(queue uint32, p *docindex.Put) uint32 {
	id, _, ok := docindex.CrawlOf(p)
	if !ok {
		return 0
	}
	b := x.stats.Find(id)
	if b == nil {
		b = x.stats.Open(id)
		x.dirtyCrawls[b.No] = struct{}{}
	}
	host := docindex.HostOf(p.URL)
	if len(host) == 0 {
		host = x.queues.sched.Key(queue)
	}
	d := x.stats.Enter(b, weburl.Domain(string(host)), 1)
	queueNo := x.queues.at(queue).no
	no := x.of[partitionKey{queueNo, d}]
	if no == 0 {
		no = x.newPartition(queueNo, d)
	}
	c := x.partitions[no]
	c.docs++
	c.ended++
	x.dirtyPartitions[no] = struct{}{}
	return no
}

// setExpiry sets when the crawl of a document expires, if the Put says so.
func (x *crawls) setExpiry(d *doc, p *docindex.Put) {
	id, expires, ok := docindex.ExpiryOf(p)
	if !ok || d.member == 0 {
		return
	}
	if b := x.partitions[d.member].domain.Crawl; b.ID == id && x.stats.ExpireAt(b, expires) {
		x.dirtyCrawls[b.No] = struct{}{}
	}
}

func (x *crawls) newPartition(queueNo uint32, d *crawlstats.Domain) uint32 {
	no := uint32(len(x.partitions))
	if n := len(x.free); n > 0 {
		no, x.free = x.free[n-1], x.free[:n-1]
	} else {
		x.partitions = append(x.partitions, nil)
	}
	x.addPartition(no, &partition{domain: d, queue: queueNo})
	return no
}

func (x *crawls) addPartition(no uint32, c *partition) {
	x.partitions[no] = c
	x.of[partitionKey{c.queue, c.domain}] = no
	if c.next = x.ofQueue[c.queue]; c.next != 0 {
		x.partitions[c.next].prev = no
	}
	x.ofQueue[c.queue] = no
}

// shift counts a document that has changed its state.
func (x *crawls) shift(no uint32, priority int32, from, to crawlstats.State, now int64) {
	if no != 0 && from != to {
		x.shiftSome(no, priority, from, to, 1, now)
	}
}

func (x *crawls) shiftSome(no uint32, priority int32, from, to crawlstats.State, n uint64, now int64) {
	c := x.partitions[no]
	b := c.domain.Crawl
	round := b.Epoch
	x.stats.Move(c.domain, priority, from, to, n, now)
	if b.Epoch != round {
		x.dirtyCrawls[b.No] = struct{}{}
	}
	if inTransit(from) {
		c.inFlight.Add(priority, -n)
	}
	if inTransit(to) {
		c.inFlight.Add(priority, n)
	}
	if from != crawlstats.Completed && to != crawlstats.Completed {
		return // the rows count only completed and open documents
	}
	if to == crawlstats.Completed {
		n = -n
	}
	c.open.Add(priority, n)
	c.ended -= n
	x.dirtyPartitions[no] = struct{}{}
	x.dirtyPriorities[priorityKey{no, priority >> rangeBits}] = struct{}{}
	x.clearing.later(no)
}

func inTransit(p crawlstats.State) bool { return p == crawlstats.InSlots || p == crawlstats.InClients }

// countPurged counts documents that ended because their crawl was stopped; by may be negative.
func (x *crawls) countPurged(no uint32, kind uint8, by uint64) {
	if no == 0 || kind != uint8(docindex.Stopped) && kind != uint8(docindex.Expired) {
		return
	}
	c := x.partitions[no]
	c.purgedDocs += by
	c.domain.Crawl.Purged += by
	x.dirtyPartitions[no] = struct{}{}
}

// leave ends the membership of a completed document; kind is its outcome.
func (x *crawls) leave(no uint32, kind uint8) {
	if no == 0 {
		return
	}
	x.countPurged(no, kind, ^uint64(0))
	c := x.partitions[no]
	c.docs--
	c.ended--
	x.dirtyPartitions[no] = struct{}{}
	x.stats.Leave(c.domain, 1)
	if c.docs == 0 {
		x.closePartition(no)
	}
}

// closePartition removes a partition without documents, and its crawl if nothing is left of it.
func (x *crawls) closePartition(no uint32) {
	c := x.partitions[no]
	switch {
	case c.prev != 0:
		x.partitions[c.prev].next = c.next
	case c.next != 0:
		x.ofQueue[c.queue] = c.next
	default:
		delete(x.ofQueue, c.queue)
	}
	if c.next != 0 {
		x.partitions[c.next].prev = c.prev
	}
	delete(x.of, partitionKey{c.queue, c.domain})
	if c.purged {
		x.txn.b.Delete(numberKey(purgedRow, no), nil)
		delete(x.withReturned, no)
	}
	x.partitions[no] = nil
	x.free = append(x.free, no)
	if b := c.domain.Crawl; x.stats.Release(b) {
		x.dirtyCrawls[b.No] = struct{}{}
	}
}

// dropPartitions removes the partitions of a deleted queue, by its number on disk. None of the
// queue's documents is in transit.
func (x *crawls) dropPartitions(queueNo uint32, now int64) {
	for no := x.ofQueue[queueNo]; no != 0; no = x.ofQueue[queueNo] {
		c := x.partitions[no]
		c.open.Each(func(priority int32, n uint64) {
			x.stats.Move(c.domain, priority, crawlstats.Scheduled, crawlstats.Completed, n, now)
			x.dirtyPriorities[priorityKey{no, priority >> rangeBits}] = struct{}{}
		})
		x.dirtyPartitions[no] = struct{}{}
		c.domain.Crawl.Purged -= c.purgedDocs
		x.stats.Leave(c.domain, c.docs)
		x.closePartition(no)
	}
}

// isStopped reports whether the crawl of a partition was stopped.
func (x *crawls) isStopped(no uint32) bool {
	return no != 0 && x.stats.Stopped() > 0 && x.partitions[no].domain.Crawl.Stopped
}

// droppedLocked reports whether a URL belongs to a stopped crawl. A known document that the Put
// schedules again is completed.
func (s *Store) droppedLocked(queue uint32, n *name, d *doc, p *docindex.Put, now int64) (bool, error) {
	if s.crawls.stats.Stopped() == 0 || d != nil && p.Update && p.Due == docindex.Never {
		return false, nil
	}
	id, _, ok := docindex.CrawlOf(p)
	b := s.crawls.stats.Find(id)
	if !ok || b == nil || !b.Stopped {
		return false, nil
	}
	b.Dropped++
	s.crawls.dirtyCrawls[b.No] = struct{}{}
	if d != nil && p.Update && !d.completed {
		return true, s.completeLocked(queue, *n, d, bytes.Clone(p.URL), embedded.Reported(now), now)
	}
	return true, nil
}

// rejoin makes an updated document a member of the crawl that the update names. It counts as
// completed until it is scheduled.
func (x *crawls) rejoin(queue uint32, d *doc, p *docindex.Put, now int64) {
	was, kind := d.member, d.kind()
	if !d.completed {
		x.shift(was, d.at.priority(), crawlstats.Scheduled, crawlstats.Completed, now)
		kind = noKind
	}
	// before it leaves the old one, so that a crawl of one document is not removed
	d.member = x.enter(queue, p)
	x.leave(was, kind)
}
