package queuesched

// Settings are what can be set on a queue; nil leaves things as they are. Delays and times in ms.
type Settings struct {
	Delay   *int64
	Blocked *int64 // until then; 0: not
	Limit   *uint32
}

// maxPreset bounds what is remembered for queues that are not there.
const maxPreset = 1_000_000

// Set sets something on a queue, now or when it has its first URL; false: too much is remembered already.
func (d *Doors) Set(crawlID, key []byte, s Settings, now int64) bool {
	if id := d.Find(crawlID, key); id != 0 {
		d.set(id, s, now)
		return true
	}
	n := name{string(crawlID), string(key)}
	old, ok := d.preset[n]
	if !ok && len(d.preset) >= maxPreset {
		return false
	}
	d.preset[n] = old.with(s)
	return true
}

func (s Settings) with(t Settings) Settings {
	if t.Delay != nil {
		s.Delay = t.Delay
	}
	if t.Blocked != nil {
		s.Blocked = t.Blocked
	}
	if t.Limit != nil {
		s.Limit = t.Limit
	}
	return s
}

func (d *Doors) set(id uint32, s Settings, now int64) {
	q := d.queues.At(id)
	if s.Delay != nil {
		q.delay = *s.Delay
	}
	if s.Blocked != nil {
		q.blocked = *s.Blocked
	}
	if s.Limit != nil {
		q.limit = *s.Limit
	}
	d.Refresh(id, now)
}

// SettingsOf tells what is set on a queue; nil is what is not.
func (d *Doors) SettingsOf(id uint32) (s Settings) {
	q := d.queues.At(id)
	if q.delay >= 0 {
		s.Delay = &q.delay
	}
	if q.blocked > 0 {
		s.Blocked = &q.blocked
	}
	if q.limit > 0 {
		s.Limit = &q.limit
	}
	return s
}

// Presets visits what is set on queues that are not there yet, in no order.
func (d *Doors) Presets(visit func(crawlID, key string, s Settings)) {
	for n, s := range d.preset {
		visit(n.crawl, n.key, s)
	}
}

// DefaultDelay is the delay of queues that have none of their own; chosen says that it was set.
func (d *Doors) DefaultDelay() (ms int64, chosen bool) { return d.delay, d.chosen }

// SetDefaultDelay sets the delay of queues that have none of their own. RefreshSome then puts it in force.
func (d *Doors) SetDefaultDelay(ms int64) { d.delay, d.chosen = ms, true }

// SetSlotGap tells the gap that the slots keep between two requests to a host, ms. They keep it after calls, too.
// RefreshSome then puts it in force.
func (d *Doors) SetSlotGap(ms int64) { d.hosts.slotGap = ms }

// RefreshSome looks again at some queues, from a number on, and returns the number to go on with, or 0.
func (d *Doors) RefreshSome(from uint32, now int64) uint32 {
	for id := max(from, 1); id < uint32(d.queues.Cap()); id++ {
		if id-from >= maxAdvance {
			return id
		}
		if d.Live(id) {
			d.Refresh(id, now)
		}
	}
	return 0
}
