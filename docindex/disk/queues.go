package disk

import (
	"urlserver/docindex/internal/shapes"
	"urlserver/internal/container/hashindex"
)

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// queues has the queues in memory by the scheduler's numbers, in chunks that never move, and finds
// them by their numbers on disk. Some have branches. The records hold no pointers, so the garbage collector does not
// scan them. The zero value is empty.
type queues struct {
	chunks   []*[chunkLen]queue
	byNo     hashindex.Index
	branches shapes.Tables[place]
}

// hashOfNo is a bijection: equal hashes are of equal numbers.
func hashOfNo(no uint32) uint32 { return no * 0x9E3779B1 }

// at returns the record of a queue. It stays where it is.
func (q *queues) at(id uint32) *queue { return &q.chunks[id>>chunkBits][id&(chunkLen-1)] }

// byNumber returns the scheduler's number of the queue with a number on disk; 0: it is not in memory.
func (q *queues) byNumber(no uint32) uint32 {
	return q.byNo.Find(hashOfNo(no), func(uint32) bool { return true })
}

// add enters a queue that the scheduler has just added.
func (q *queues) add(id uint32, one queue) {
	for int(id>>chunkBits) >= len(q.chunks) {
		q.chunks = append(q.chunks, new([chunkLen]queue))
	}
	*q.at(id) = one
	q.byNo.Add(hashOfNo(one.no), id)
}

// remove removes a queue.
func (q *queues) remove(id uint32) {
	q.byNo.Remove(hashOfNo(q.at(id).no), id)
	q.branches.Drop(id)
	*q.at(id) = queue{}
}

func (s *Store) queueAt(id uint32) *queue { return s.queues.at(id) }
