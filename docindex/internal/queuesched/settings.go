package queuesched

// Settings are the settings of a queue; nil fields leave things as they are. Delays and times are
// in ms.
type Settings struct {
	Delay   *int64
	Blocked *int64 // until then; 0: not
	Limit   *uint32
}

// maxPreset bounds the settings of queues that do not exist.
const maxPreset = 1_000_000

// Set changes settings of a queue: now, or when the queue gets its first URL. It returns false if
// too many settings wait for queues already.
func (d *Scheduler) Set(crawlID, key []byte, s Settings, now int64) bool {
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

func (d *Scheduler) set(id uint32, s Settings, now int64) {
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

// SettingsOf returns the settings of a queue; nil fields are not set.
func (d *Scheduler) SettingsOf(id uint32) (s Settings) {
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

// Presets visits the settings of queues that do not exist yet, in no order.
func (d *Scheduler) Presets(visit func(crawlID, key string, s Settings)) {
	for n, s := range d.preset {
		visit(n.crawl, n.key, s)
	}
}

// DefaultDelay returns the delay of queues that have none of their own; chosen: somebody set it.
func (d *Scheduler) DefaultDelay() (ms int64, chosen bool) { return d.delay, d.chosen }

// SetDefaultDelay sets the delay of queues that have none of their own. It takes effect with
// RefreshSome.
func (d *Scheduler) SetDefaultDelay(ms int64) { d.delay, d.chosen = ms, true }

// SetSlotGap sets the gap in ms that the slots keep between two requests to a host, also after a
// client had URLs of it. It takes effect with RefreshSome.
func (d *Scheduler) SetSlotGap(ms int64) { d.hosts.slotGap = ms }

// RefreshSome refreshes some queues from a number on, and returns the number to continue with, or
// 0.
func (d *Scheduler) RefreshSome(from uint32, now int64) uint32 {
	bound := d.Bound()
	for id := max(from, 1); id < bound; id++ {
		if id-from >= maxAdvance {
			return id
		}
		if d.Exists(id) {
			d.Refresh(id, now)
		}
	}
	if d.cold.of != nil && d.cold.of.Recheck(from < bound, now) {
		return d.Bound()
	}
	return 0
}
