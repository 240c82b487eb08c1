package redis

import (
	"context"
	"strconv"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// ofHosts is the scripts' name for settings of hosts.
const ofHosts = "hosts"

// setHost changes a setting of a host.
func (s *Store) setHost(ctx context.Context, set docindex.Setting, field string, value int64) error {
	name := hostName(string(set.Key))
	a, err := s.one(ctx, shardOf(name), setScript, "host", name, field, decimal(value))
	if err != nil {
		return err
	}
	if parts := list(a.value); len(parts) == 1 && number(parts[0]) == 0 {
		return docindex.ErrTooMany
	}
	return s.recall(ctx, set)
}

// Lengths of look's answer: the values of the host, then those of each queue.
const (
	looksAtHost   = 12
	looksAtQueues = 19
)

// HostStatus is [docindex.Inspector.HostStatus]. It applies the serving rules of the other stores
// to the state that the script returns; the scripts follow the same rules.
func (s *Store) HostStatus(ctx context.Context, host []byte) (docindex.HostStatus, error) {
	name := hostName(string(host))
	for range maxCatch {
		a, err := s.one(ctx, shardOf(name), lookScript, name, decimal(embedded.MaxHostQueues+1))
		if err != nil {
			return docindex.HostStatus{}, err
		}
		parts := list(a.value)
		if len(parts) != 2 {
			return docindex.HostStatus{}, errStrange
		}
		if number(parts[0]) == 1 {
			continue
		}
		var told []string
		for _, m := range list(parts[1]) {
			told = append(told, text(m))
		}
		if len(told) < looksAtHost {
			return docindex.HostStatus{}, errStrange
		}
		now := integer(told[0])
		d, err := s.schedulerOf(ctx, told[1:], name, now)
		if err != nil {
			return docindex.HostStatus{}, err
		}
		l := embedded.HostStatus(d, []byte(name), told[2] == "", now)
		if l.AtFrontier.Open {
			l.AtFrontier = s.atAddress(told[looksAtHost:], now)
		}
		s.pace.addLevels(&l, told[looksAtHost:])
		return l, nil
	}
	return docindex.HostStatus{}, errStrange
}

// schedulerOf builds a scheduler with one host and its queues from the answer of the script look. Of a
// crawl with a domain over its budget it asks how many domains have work, unless this shard has others.
func (s *Store) schedulerOf(ctx context.Context, told []string, name string, now int64) (*queuesched.Scheduler, error) {
	work := map[string]uint64{} // domains of crawls
	d := queuesched.New(func() {})
	d.SetSlotGap(s.gap.Load())
	d.SetAhead(embedded.AheadOf(s.budgets.most()))
	if told[0] != "" {
		d.SetDefaultDelay(integer(told[0]))
	}
	for q := told[looksAtHost-1:]; len(q) >= looksAtQueues; q = q[looksAtQueues:] {
		k := queuesched.Persisted{
			Scheduled: uint32(integer(q[2])), Completed: uint32(integer(q[4])),
			Served: [2]int64{integer(q[10]), integer(q[11])},
			Delay:  -1, Blocked: integer(q[6]), Limit: uint32(integer(q[9])), AnyHost: q[14] != "",
		}
		if q[8] != "" {
			k.Delay = integer(q[8])
		}
		d.RestoreInFlight([]byte(q[0]), []byte(q[1]), k, queuesched.InFlight{
			InTransit: uint32(integer(q[3])), Out: [2]uint32{uint32(integer(q[12])), uint32(integer(q[13]))},
			Due: due(integer(q[5])), SkipUntil: integer(q[7]), Serving: q[15] != "", Branched: q[17] != "",
		}, now)
		domain := domainOfKey(q[1])
		if as, since, overran := s.budgets.round(q[0], domain); overran {
			d.RestoreOverrun(as, since)
			work[q[0]] = uint64(integer(q[18]))
		}
		d.RestoreAtSlots(q[0], domain, s.budgets.slotsHave(q[0], domain))
	}
	for crawl, n := range work {
		var err error
		if n <= 1 {
			if n, err = s.domainsWithWork(ctx, crawl); err != nil {
				return nil, err
			}
		}
		d.RestoreWork(crawl, uint32(n))
	}
	h := told[2:]
	d.RestoreHostInFlight([]byte(name), queuesched.HostInFlight{
		Blocked: integer(h[0]), Delay: integer(h[1]), Asked: integer(h[2]), Pause: integer(h[3]),
		FrontierLast: integer(h[4]), Gap: integer(h[5]),
		Out: [3]uint32{uint32(integer(h[6])), uint32(integer(h[7])), uint32(integer(h[8]))},
	})
	return d, nil
}

// never is the scripts' time (ms) that means never.
const never = 1 << 52

func due(at int64) int64 {
	if at >= never {
		return queuesched.Never
	}
	return at
}

// integer parses a number of look's answer.
func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// atAddress returns when clients may be served the first of a host's queues that may be served
// otherwise, as far as addresses go. told is the queues in look's answer.
func (s *Store) atAddress(told []string, now int64) docindex.Availability {
	first, name := int64(never), ""
	for q := told; len(q) >= looksAtQueues; q = q[looksAtQueues:] {
		until := max(integer(q[16]), s.pace.leftOutUntil(q[0], q[1]))
		if until < first && integer(q[2]) > 0 {
			first, name = until, nameOf(q[0], q[1])
		}
	}
	why := s.pace.waitOf(name, s.nowMS())
	switch {
	case first == 0 || first == never || first <= now && why.Rule != docindex.WaitAddressUnknown:
		return docindex.Availability{Open: true}
	case first <= now:
		return docindex.Availability{Wait: why}
	}
	return docindex.Availability{NotBefore: time.UnixMilli(first).UTC(), Wait: why}
}

// addLevels adds what this daemon knows of the address of a host. told is the queues in look's answer.
func (p *clientPace) addLevels(l *docindex.HostStatus, told []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for q := told; len(q) >= looksAtQueues; q = q[looksAtQueues:] {
		if known := p.queues[nameOf(q[0], q[1])]; p.of != nil && known != nil && known.no != 0 {
			gap, backoff := l.Site.Gap, l.Site.Backoff
			l.Site, l.Address = p.table.Levels(known.no)
			l.Site.Gap, l.Site.Backoff = max(l.Site.Gap, gap), backoff
			return
		}
	}
}
