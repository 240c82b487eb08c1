package queuesched

// SetAhead sets how many URLs of a branched queue the slots have at most; 0: any number. It takes
// effect with RefreshSome. What the slots have keeps its order, so the fewer they have, the sooner it
// is the turn of URLs that come later.
func (d *Scheduler) SetAhead(urls uint32) { d.ahead = urls }

// SetBranched says that the URLs of a queue take turns.
func (d *Scheduler) SetBranched(id uint32, now int64) {
	if q := d.queues.At(id); q.flags&branched == 0 {
		q.flags |= branched
		d.Refresh(id, now)
	}
}

// noteRoom notes that the slots have half as many URLs of a branched queue as they may.
func (d *Scheduler) noteRoom(q *queue) {
	if q.flags&branched != 0 && q.out[SlotConsumer] == d.ahead/2 && q.count[Scheduled] > 0 {
		d.room = true
	}
}

// TakeRoom reports whether the slots should ask again, since they have room for a branched queue.
func (d *Scheduler) TakeRoom() bool {
	room := d.room
	d.room = false
	return room
}
