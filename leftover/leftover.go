// Package leftover is the daemon's growable queue. It counts the leftover documents of each host
// group, those that are in no slot because the slot is full or the group has none, and keeps the
// groups that wait for a slot in order. The documents themselves stay in the queues of their
// group; they do not move when there is room for them in a slot.
//
// The package is pure: it has no goroutine, lock, clock or I/O. Times are arguments.
package leftover

import (
	"time"

	"urlserver/internal/container/timeheap"
)

// Queue is the leftover queue. The zero value is empty and ready to use. A Queue is not safe for
// concurrent use. Groups have small numbers, other than 0.
type Queue struct {
	docs    []uint32      // leftover documents by group
	sum     int           // of docs
	waiting timeheap.Heap // groups that wait for a slot, by when one is of use to them
}

// Len returns the number of leftover documents.
func (q *Queue) Len() int { return q.sum }

// Set sets the number of leftover documents of a group.
func (q *Queue) Set(group uint32, n int) {
	for int(group) >= len(q.docs) {
		if n == 0 {
			return
		}
		q.docs = append(q.docs, make([]uint32, max(64, len(q.docs)/2))...)
	}
	q.sum += n - int(q.docs[group])
	q.docs[group] = uint32(n)
}

// Docs returns the number of leftover documents of a group.
func (q *Queue) Docs(group uint32) int {
	if int(group) >= len(q.docs) {
		return 0
	}
	return int(q.docs[group])
}

// Read reads what the other methods begin with for a group, so that the processor has it in its
// cache by then. The result means nothing.
func (q *Queue) Read(group uint32) uint32 { return uint32(q.Docs(group)) + q.waiting.Read(group) }

// Wait adds a group to those that wait for a slot, or changes its time: the moment from which it
// could use one. Of groups with equal times the one that got its time first is first.
func (q *Queue) Wait(group uint32, from time.Duration) { q.waiting.Set(group, from) }

// Leave removes a group from those that wait, if it is one of them.
func (q *Queue) Leave(group uint32) { q.waiting.Remove(group) }

// Waits reports whether a group waits for a slot.
func (q *Queue) Waits(group uint32) bool { return q.waiting.Has(group) }

// From returns the time of a group that waits.
func (q *Queue) From(group uint32) time.Duration { return q.waiting.Due(group) }

// Waiting returns the number of groups that wait.
func (q *Queue) Waiting() int { return q.waiting.Len() }

// First returns the group that waits with the earliest time, and that time; ok is false if none
// waits.
func (q *Queue) First() (group uint32, from time.Duration, ok bool) { return q.waiting.Min() }
