package embedded

import (
	"cmp"
	"context"
	"slices"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

const queuesAtOnce = 10_000 // queues that someSettings looks at under the lock

// VisitSettings is [docindex.Inspector.Settings] for the queues of a scheduler; locked calls its
// argument while nobody else uses the scheduler. Settings of all queues come first, then those of
// hosts and those of queues without a URL, by name, then those of queues in the order of their
// first URLs.
func VisitSettings(
	ctx context.Context, locked func(look func(d *queuesched.Scheduler, active bool, now int64)),
	visit func(*docindex.Setting) bool,
) error {
	var list []docindex.Setting
	locked(func(d *queuesched.Scheduler, active bool, now int64) {
		list = slices.Concat(generalSettings(d, active), hostSettings(d, now), presetSettings(d, now))
	})
	for next := uint32(1); ; {
		for i := range list {
			if !visit(&list[i]) {
				return nil
			}
		}
		if next == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		locked(func(d *queuesched.Scheduler, _ bool, now int64) { list, next = someSettings(d, list[:0], next, now) })
	}
}

// generalSettings returns the settings of all queues.
func generalSettings(d *queuesched.Scheduler, active bool) (list []docindex.Setting) {
	if !active {
		list = append(list, docindex.Setting{Kind: docindex.SetActive})
	}
	if ms, chosen := d.DefaultDelay(); chosen {
		list = append(list, docindex.Setting{Kind: docindex.SetDelay, Value: uint64(ms / 1000)})
	}
	return list
}

// hostSettings returns the settings of hosts.
func hostSettings(d *queuesched.Scheduler, now int64) (list []docindex.Setting) {
	d.HostOverrides(func(host string, s queuesched.Settings) {
		list = addSettings(list, docindex.Setting{Scope: docindex.Scope{Key: []byte(host)}, Host: true}, s, now)
	})
	return SortSettings(list)
}

// presetSettings returns the settings of queues that have no URL yet.
func presetSettings(d *queuesched.Scheduler, now int64) (list []docindex.Setting) {
	d.Presets(func(crawlID, key string, s queuesched.Settings) {
		list = addSettings(list, docindex.Setting{Scope: docindex.Scope{Crawl: []byte(crawlID),
			Key: []byte(key)}}, s, now)
	})
	return SortSettings(list)
}

// SortSettings returns settings in the order in which stores list them. It drops duplicates.
func SortSettings(list []docindex.Setting) []docindex.Setting {
	compare := func(a, b *docindex.Setting) int {
		return cmp.Or(slices.Compare(a.Crawl, b.Crawl), slices.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind))
	}
	sorted := make([]*docindex.Setting, len(list))
	for i := range list {
		sorted[i] = &list[i]
	}
	slices.SortFunc(sorted, compare) // pointers: all sorts of them share their code
	out := make([]docindex.Setting, 0, len(list))
	for i, one := range sorted {
		if i == 0 || compare(sorted[i-1], one) != 0 {
			out = append(out, *one)
		}
	}
	return out
}

// someSettings appends the settings of some queues from a number on, and returns the number to
// continue with, or 0.
func someSettings(
	d *queuesched.Scheduler, list []docindex.Setting, from uint32, now int64,
) (_ []docindex.Setting, next uint32) {
	end := min(from+queuesAtOnce, d.Bound())
	for id := from; id < end; id++ {
		if !d.Exists(id) {
			continue
		}
		if s := d.SettingsOf(id); s != (queuesched.Settings{}) {
			list = addSettings(list, docindex.Setting{Scope: docindex.Scope{Crawl: []byte(d.Crawl(id)),
				Key: slices.Clone(d.Key(id))}}, s, now)
		}
	}
	if end >= d.Bound() {
		return list, 0
	}
	return list, end
}

// addSettings appends the settings of one queue or host. A block that has ended is left out.
func addSettings(list []docindex.Setting, one docindex.Setting, s queuesched.Settings, now int64) []docindex.Setting {
	add := func(which docindex.SettingKind, value uint64) {
		one.Kind, one.Value = which, value
		list = append(list, one)
	}
	if s.Delay != nil {
		add(docindex.SetDelay, uint64(*s.Delay/1000))
	}
	if s.Blocked != nil && *s.Blocked > now {
		add(docindex.SetBlock, uint64(*s.Blocked/1000-1))
	}
	if s.Limit != nil && *s.Limit > 0 {
		add(docindex.SetLimit, uint64(*s.Limit))
	}
	return list
}
