package reservationtest

import (
	"slices"
	"time"

	"urlserver/reservation"
)

// model is the contract in its simplest form: lists, all searched each time. Times are in ms.
type model struct {
	now, penalty int64
	tokens       map[string]uint64 // the highest token of a host or group
	hosts        map[string]*modelHost
	next         map[string]int64 // by name of a host or group: nobody can lease it before
	locks        []*modelLock
	aliases      map[string][]string
}

type modelHost struct {
	added    bool
	due      int64
	alias    string
	bound    string
	boundTo  int64
	answered string // the group that Bind answered, until boundTo
}

type modelLock struct {
	host, group, holder string
	token               uint64
	end                 int64
	covers              []string
}

func newModel(now time.Time, penalty time.Duration) *model {
	return &model{
		now: now.UnixMilli(), penalty: penalty.Milliseconds(),
		hosts: map[string]*modelHost{}, next: map[string]int64{}, aliases: map[string][]string{},
		tokens: map[string]uint64{},
	}
}

func (m *model) host(name string) *modelHost {
	if m.hosts[name] == nil {
		m.hosts[name] = &modelHost{}
	}
	return m.hosts[name]
}

func (m *model) group(name string) string {
	h := m.host(name)
	switch {
	case h.alias != "":
		return h.alias
	case h.bound == "" || h.boundTo <= m.now:
		return name
	}
	if via := m.host(h.bound).alias; via != "" {
		return via
	}
	return h.bound
}

// covering returns the live leases that cover any of names.
func (m *model) covering(names ...string) (locks []*modelLock) {
	for _, l := range m.locks {
		if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(l.covers, name) }) {
			locks = append(locks, l)
		}
	}
	return locks
}

func (m *model) of(host string) *modelLock {
	i := slices.IndexFunc(m.locks, func(l *modelLock) bool { return l.host == host })
	if i < 0 {
		return nil
	}
	return m.locks[i]
}

func (m *model) held(host string, token uint64) (*modelLock, error) {
	if !m.host(host).added {
		return nil, reservation.ErrUnknown
	}
	if l := m.of(host); l != nil && l.token == token {
		return l, nil
	}
	return nil, reservation.ErrStale
}

func (m *model) raise(name string, to int64) { m.next[name] = max(m.next[name], to) }

func (m *model) end(l *modelLock, next int64) {
	m.locks = slices.DeleteFunc(m.locks, func(other *modelLock) bool { return other == l })
	m.host(l.host).due = next
	for _, name := range l.covers {
		m.raise(name, next)
	}
}

// advance lets time pass, with a janitor that always runs.
func (m *model) advance(d time.Duration) {
	m.now += d.Milliseconds()
	for _, l := range slices.Clone(m.locks) {
		if l.end <= m.now {
			m.end(l, l.end+m.penalty)
		}
	}
}

func (m *model) explain(host string) (x reservation.Explanation) {
	h, group := m.host(host), m.group(host)
	x = reservation.Explanation{Host: host, Group: group, State: reservation.Unknown,
		Rule: reservation.RuleUnknown}
	if !h.added {
		return x
	}
	if l := m.of(host); l != nil {
		return x.As(reservation.Busy, l.end, reservation.RuleBusy, l.holder)
	}
	var last *modelLock
	for _, l := range m.covering(host, group) {
		if last == nil || l.end > last.end {
			last = l
		}
	}
	if last != nil {
		return x.As(reservation.Waiting, last.end, reservation.RuleGroupBusy, last.holder)
	}
	return x.Idle(m.now, h.due, max(m.next[host], m.next[group]))
}

func (m *model) stats() (s reservation.Stats) {
	for name, h := range m.hosts {
		if !h.added {
			continue
		}
		s.Hosts++
		switch m.explain(name).State {
		case reservation.Waiting:
			s.Waiting++
		case reservation.Ready:
			s.Ready++
		case reservation.Busy:
			s.Busy++
		}
	}
	s.Aliases = uint64(len(m.aliases))
	return s
}

// reserved records a lease that a store gave.
func (m *model) reserved(r reservation.Reservation, holder string) {
	l := &modelLock{host: r.Host, group: r.Group, holder: holder, token: r.Token,
		end: r.LeaseEnd.UnixMilli(), covers: []string{r.Host, r.Group}}
	m.locks = append(m.locks, l)
	m.tokens[r.Host], m.tokens[r.Group] = r.Token, r.Token
	m.used(l)
}

// used prolongs the binding that a lease uses.
func (m *model) used(l *modelLock) {
	if h := m.host(l.host); h.bound == l.group && h.answered == l.group && h.boundTo > m.now {
		h.boundTo = max(h.boundTo, l.end)
	}
}

func (m *model) bind(b reservation.Binding, ttl time.Duration) reservation.Bound {
	h := m.host(b.Host)
	if h.bound == "" || h.boundTo <= m.now {
		h.bound, h.boundTo = b.Group, m.now+ttl.Milliseconds()
		h.answered = m.group(b.Host)
	}
	others := m.others(b.Host)
	if h.alias == "" {
		others = max(others, m.others(h.bound))
	}
	group := m.group(b.Host)
	held := others > m.now+reservation.MinLease.Milliseconds()
	if !held {
		h.boundTo, h.answered = max(h.boundTo, m.now+ttl.Milliseconds()), group
	}
	m.raise(group, m.next[b.Host])
	for _, l := range m.covering(b.Host) {
		l.covers = append(l.covers, group)
	}
	left := h.boundTo - m.now
	if held {
		left = m.now - others
	}
	return reservation.Bound{Group: group, Left: time.Duration(left) * time.Millisecond}
}

// others returns until when others may go by an answer of Bind that is not the group in force of a name.
func (m *model) others(name string) int64 {
	if h := m.host(name); h.boundTo > m.now && h.answered != m.group(name) {
		return h.boundTo
	}
	return 0
}

func (m *model) setAlias(alias string, hosts []string) {
	names := append([]string{alias}, m.aliases[alias]...)
	from := slices.Clone(names)
	for _, host := range hosts {
		names = append(names, host)
		from = append(from, host, m.group(host))
	}
	longest, locks := int64(0), m.covering(from...)
	for _, name := range from {
		longest = max(longest, m.next[name])
	}
	for _, name := range names {
		m.raise(name, longest)
		for _, l := range locks {
			l.covers = append(l.covers, name)
		}
	}
	for _, host := range m.aliases[alias] {
		m.host(host).alias = ""
	}
	delete(m.aliases, alias)
	for _, host := range hosts {
		if former := m.host(host).alias; former != "" {
			if m.aliases[former] = slices.DeleteFunc(slices.Clone(m.aliases[former]), func(h string) bool {
				return h == host
			}); len(m.aliases[former]) == 0 {
				delete(m.aliases, former)
			}
		}
		m.host(host).alias = alias
		m.aliases[alias] = append(m.aliases[alias], host)
	}
}

func (m *model) joinAlias(alias string, hosts []string) (aliases []string) {
	var join []string
	for _, host := range hosts {
		in := m.host(host).alias
		if in == "" {
			in, join = alias, append(join, host)
		}
		aliases = append(aliases, in)
	}
	if len(join) > 0 {
		m.setAlias(alias, slices.Concat(m.aliases[alias], join))
	}
	return aliases
}
