package queuesched

import "urlserver/docindex"

const (
	maxBackoff    = 64        // times the ordinary gap
	maxRetryAfter = 3_600_000 // ms
)

// Answered records what a host answered to a client. After 429 and 503 the host's gap doubles, up
// to maxBackoff times the ordinary gap, and is at least Retry-After. Each success halves the gap.
// The gap holds for all consumers. until is when the host may be requested again at the earliest;
// 0: the answer does not put it off.
func (d *Scheduler) Answered(a *docindex.HostAnswer, now int64) (until int64) {
	fails := a.Status == 429 || a.Status == 503
	success := a.Status >= 200 && a.Status < 400
	if d.addresses.of != nil && (fails || success) {
		d.addresses.table.Answered(trimDot(a.Host), fails, now)
	}
	if len(a.Host) == 0 || !fails && d.hosts.backingOff == 0 {
		return 0
	}
	id := d.hosts.lookup(a.Host)
	switch {
	case fails:
		if id == 0 {
			id = d.hosts.open(a.Host)
		}
		until = d.hosts.backOff(id, min(a.RetryAfter.Milliseconds(), maxRetryAfter), now)
	case id == 0 || d.hosts.at(id).backoff == 0 || !success:
		return 0
	default:
		d.hosts.recover(id)
	}
	d.refreshHost(id, now)
	d.hosts.release(id, now)
	return until
}

// ordinaryGap returns the gap in ms between two requests to a host that does not back off.
func (h *hosts) ordinaryGap(one *host) int64 {
	gap := max(one.gap, h.slotGap, DefaultDelay)
	if rule := h.gapByRule(one); rule != barred {
		gap = max(gap, rule)
	}
	return gap
}

func (h *hosts) backOff(id uint32, retry, now int64) (until int64) {
	one := h.at(id)
	if one.backoff == 0 {
		h.backingOff++
	}
	gap, backoff := h.ordinaryGap(one), int64(one.backoff)
	one.backoff = inShort(docindex.HostRule{Gap: max(min(2*max(gap, backoff), maxBackoff*gap), retry, backoff)})
	until = max(now+retry, after(one.frontierLast, int64(one.backoff)))
	one.pausedUntil, one.restoredUntil = max(one.pausedUntil, now+retry), max(one.restoredUntil, now+retry)
	return until
}

func (h *hosts) recover(id uint32) {
	one := h.at(id)
	if one.backoff /= 2; int64(one.backoff) <= h.ordinaryGap(one) {
		one.backoff = 0
		h.backingOff--
	}
}
