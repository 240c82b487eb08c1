// Package leftover is the daemon's growable queue: the documents whose slot is
// full, or for whose host group no slot is free. It is indexed by host group. A
// document does not move when a place frees: its group keeps one queue, and what
// of it lies beyond the slot is leftover. So this package holds the count of each
// group's overflow, and the line of groups that wait for a slot.
//
// Pure: no goroutine, lock, clock or I/O; time is an argument.
package leftover

import (
	"time"

	"urlserver/internal/container/timeheap"
)

// Queue is the leftover queue. The zero value is empty and ready. Not safe for
// concurrent use.
type Queue struct {
	docs []uint32 // by group: its documents outside a slot
	sum  int
	line timeheap.Heap // groups without a slot, by when one is of use to them
}

// Len is the number of documents in leftover.
func (q *Queue) Len() int { return q.sum }

// Set records that group has n documents in leftover.
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

// Docs is the number of documents that group has in leftover.
func (q *Queue) Docs(group uint32) int {
	if int(group) >= len(q.docs) {
		return 0
	}
	return int(q.docs[group])
}

// Wait puts group in line for a slot, or moves it there; from is when it could
// first make use of one. Of groups with equal times the one put earlier is
// first.
func (q *Queue) Wait(group uint32, from time.Duration) { q.line.Set(group, from) }

// Leave takes group out of the line, if it stands there.
func (q *Queue) Leave(group uint32) { q.line.Remove(group) }

// Waits reports whether group stands in line.
func (q *Queue) Waits(group uint32) bool { return q.line.Has(group) }

// From returns the time that group, which stands in line, was put there with.
func (q *Queue) From(group uint32) time.Duration { return q.line.Due(group) }

// Waiting is the number of groups in line.
func (q *Queue) Waiting() int { return q.line.Len() }

// First returns the group at the head of the line and when it could first make
// use of a slot; ok is false when none waits.
func (q *Queue) First() (group uint32, from time.Duration, ok bool) { return q.line.Min() }
