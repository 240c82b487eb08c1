package queuesched

import "urlserver/docindex/internal/addresses"

// charge has the times of a queue before and after one portion of a call took URLs of it.
type charge struct {
	queue         uint32
	left          bool // URLs of it have left in portions before
	before, after paid
}

// paid has the times that decide when clients may be given URLs of a queue again.
type paid struct {
	served, asked int64 // of the queue and of its host: when they were the last time
	paces         addresses.Paid
}

func (d *Scheduler) paid(id uint32) (p paid) {
	q := d.queues.At(id)
	p.served, p.asked = q.served[FrontierConsumer], d.hosts.at(q.host).frontierLast
	if no := d.addresses.number(id); no != 0 {
		p.paces = d.addresses.table.Paid(no)
	}
	return p
}

// BeginPortion begins a portion of a call.
func (d *Scheduler) BeginPortion(v *Cursor) {
	v.charges = v.charges[:0]
	d.beginCharge(v)
	if len(v.charges) > 0 {
		v.charges[0].left = v.Gave
	}
}

// Charge returns the index in the portion of the queue where the cursor is, for IsLate and
// TakeBack; -1: none.
func (v *Cursor) Charge() int { return len(v.charges) - 1 }

func (d *Scheduler) beginCharge(v *Cursor) {
	last := len(v.charges) - 1
	if d.addresses.of != nil && v.Queue != 0 && (last < 0 || v.charges[last].queue != v.Queue) {
		v.charges = append(v.charges, charge{queue: v.Queue, before: d.paid(v.Queue)})
	}
}

// endCharge ends the charge of the queue where the cursor was.
func (d *Scheduler) endCharge(v *Cursor, id uint32) {
	if last := len(v.charges) - 1; last >= 0 && v.charges[last].queue == id {
		v.charges[last].after = d.paid(id)
	}
}

// EndPortion ends a portion. Its URLs have not left yet.
func (d *Scheduler) EndPortion(v *Cursor) {
	if v.Queue != 0 {
		d.endCharge(v, v.Queue)
	}
}

// IsLate reports whether the URLs of a queue of the portion must not be sent any more: the queue's
// address has gone to others since.
func (d *Scheduler) IsLate(v *Cursor, charge int) bool {
	if charge < 0 {
		return false
	}
	id := v.charges[charge].queue
	return d.Exists(id) && !d.MayLeave(id)
}

// TakeBack undoes the charge for URLs of a queue of the portion that have not left and are
// scheduled again. It ends the serving of the queue. It restores only times that nobody has changed
// since, so the caller must call it for the last queue of the portion first.
func (d *Scheduler) TakeBack(v *Cursor, charge int, now int64) {
	c := &v.charges[charge]
	q := d.queues.At(c.queue)
	if v.Queue == c.queue {
		v.Gave = c.left
		d.Release(v, q.due, now, now)
	} else if !c.left && v.served > 0 {
		v.served--
	}
	if !c.left && q.served[FrontierConsumer] == c.after.served {
		q.served[FrontierConsumer] = c.before.served
	}
	if h := d.hosts.at(q.host); h.frontierLast == c.after.asked {
		h.frontierLast = c.before.asked
	}
	if no := d.addresses.number(c.queue); no != 0 {
		d.addresses.table.TakeBack(no, &c.before.paces, &c.after.paces)
	}
	d.refreshHost(q.host, now)
}
