package disk

import "encoding/binary"

// journal records which commits contain changes that the queues' rows do not contain.
type journal struct {
	no    uint64   // the last commit
	first uint64   // the first commit that has a row
	sizes []uint32 // changes in each row from first on
	total int      // changes in all rows
	dirty []dirtyQueue
	most  int // with more changes than this, commits write queues' rows
}

// dirtyQueue is a queue that a commit changed.
type dirtyQueue struct {
	id    uint32
	since uint64
}

const (
	maxJournal = 100_000 // changes in the journal
	maxRows    = 1000    // queues' rows that one commit writes to shorten the journal
)

// journalRow writes the journal row of the commit.
func (x *queueTable) journalRow(now int64) {
	t, j := x.txn, &x.journal
	v := binary.AppendVarint(t.value[:0], now)
	v = x.globals.append(v)
	size := 1
	for _, id := range t.dirty {
		q := x.at(id)
		c := change{queue: q.no, scheduled: int64(q.scheduled), completed: int64(q.completed), served: q.served}
		q.dirty, q.scheduled, q.completed, q.served = false, 0, 0, [2]bool{}
		if q.rewrite {
			continue // the commit writes its row
		}
		if c.fresh = q.fresh; c.fresh {
			c.crawl = x.sched.CrawlNo(id)
		}
		v = c.append(v)
		size++
		if q.dirtySince == 0 {
			q.dirtySince = j.no
			j.dirty = append(j.dirty, dirtyQueue{id: id, since: j.no})
		}
	}
	t.value = v
	t.b.Set(countKey(journalRow, j.no), v, nil)
	j.sizes = append(j.sizes, uint32(size))
	j.total += size
}

// checkpoint keeps the journal short: it writes the rows of the queues that changed first,
// and deletes the journal rows whose changes all queues' rows contain. The last journal row stays,
// since it has the store's counters.
func (x *queueTable) checkpoint(now int64) {
	j := &x.journal
	for n := 0; len(j.dirty) > 0; {
		d := j.dirty[0]
		if x.isDirty(d) {
			if j.total <= j.most || n == maxRows {
				break
			}
			x.writeRow(d.id, now)
			n++
		}
		j.dirty = j.dirty[1:]
	}
	needed := j.no
	if len(j.dirty) > 0 {
		needed = j.dirty[0].since
	}
	for ; j.first < needed; j.first++ {
		x.txn.b.Delete(countKey(journalRow, j.first), nil)
		j.total -= int(j.sizes[0])
		j.sizes = j.sizes[1:]
	}
}

func (x *queueTable) isDirty(d dirtyQueue) bool {
	return x.sched.Exists(d.id) && x.at(d.id).dirtySince == d.since
}
