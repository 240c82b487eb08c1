package disk

import (
	"encoding/binary"

	"urlserver/internal/container/hashindex"
)

// queueKeys says which queues a store may have, if the store was empty when it was opened. It holds the
// names of the rows that map keys to queues. If a name is missing, the store has no such row. It is a list
// of Bloom filters, each four times as large as the one before. The largest takes at most a 64th of
// docindex.memory. Names are added to it even when it is full, and make it more often wrong. The zero value is
// not ready: use newQueueKeys.
type queueKeys struct {
	filters []filter
	room    int // for names in the last filter
	most    int // lines that a filter may have
}

const (
	firstLines   = 1 << 11 // 128 KiB
	namesPerLine = 20
)

func newQueueKeys(memory int64) queueKeys {
	return queueKeys{most: int(memory / 64 / 64)}
}

// mostBytes returns how many bytes all filters may take, but for the first one.
func (k *queueKeys) mostBytes() int64 { return int64(k.most) * 64 * 4 / 3 }

func (k *queueKeys) add(n *name) {
	if k.room == 0 {
		lines := firstLines
		if last := len(k.filters) - 1; last >= 0 {
			lines = 4 * len(k.filters[last])
		}
		if lines <= k.most || len(k.filters) == 0 {
			k.filters = append(k.filters, newFilter(lines))
			k.room = lines * namesPerLine
		}
	}
	k.room = max(k.room-1, 0)
	k.filters[len(k.filters)-1].add(n)
}

// has reports whether a name may have been added.
func (k *queueKeys) has(n *name) bool {
	for _, f := range k.filters {
		if f.has(n) {
			return true
		}
	}
	return false
}

// queueNumbers remembers the numbers of queues that were found by the rows of their keys: if such a queue is
// evicted, the next put to it needs no such row. It takes at most a 16th of docindex.memory. When that is full
// it adds none.
type queueNumbers struct {
	index hashindex.Index // by numberHash
	most  int             // entries
	taken int             // the most entries that there have been: the index keeps their memory
}

const leastNumbers = 1000

func newQueueNumbers(memory int64) queueNumbers {
	return queueNumbers{most: max(leastNumbers, int(memory/16/hashindex.EntryBytes))}
}

func numberHash(n *name) uint32 { return binary.BigEndian.Uint32(n.hash[:]) }

// find returns the number of a queue, or of another one whose key's name begins with the same bytes; 0: none.
func (x *queueNumbers) find(n *name) uint32 {
	return x.index.Find(numberHash(n), func(uint32) bool { return true })
}

// add adds the number of a queue, unless find returns a number already.
func (x *queueNumbers) add(n *name, no uint32) {
	if x.index.Len() < x.most && x.find(n) == 0 {
		x.index.Add(numberHash(n), no)
		x.taken = max(x.taken, x.index.Len())
	}
}

// remove removes the number of a queue, if it was added.
func (x *queueNumbers) remove(n *name, no uint32) {
	if x.find(n) == no {
		x.index.Remove(numberHash(n), no)
	}
}

// mostBytes returns how many bytes all numbers may take.
func (x *queueNumbers) mostBytes() int64 { return int64(x.most) * hashindex.EntryBytes }

// freeBytes returns how many of these no number has taken.
func (x *queueNumbers) freeBytes() int64 { return x.mostBytes() - int64(x.taken)*hashindex.EntryBytes }
