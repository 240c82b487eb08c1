package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"urlserver/reservation"
)

// SetAlias implements [reservation.Store.SetAlias].
func (s *Store) SetAlias(_ context.Context, alias string, hosts []string) error {
	hosts, err := reservation.CheckAlias(alias, hosts)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.enterLocked()
	if err := s.clashLocked(alias, hosts); err != nil || len(hosts) == 0 && s.records[alias] == nil {
		return err
	}
	s.setLocked(s.recordLocked(alias), hosts, now)
	return nil
}

// clashLocked returns an error if a host and an alias would have the same name.
func (s *Store) clashLocked(alias string, hosts []string) error {
	if r := s.records[alias]; r != nil && r.added {
		return fmt.Errorf("%w alias %s: a host has this name", reservation.ErrInvalid, alias)
	}
	for _, host := range hosts {
		if r := s.records[host]; r != nil && len(r.hosts) > 0 {
			return fmt.Errorf("%w host %s: an alias has this name", reservation.ErrInvalid, host)
		}
	}
	return nil
}

// JoinAlias implements [reservation.Store.JoinAlias].
func (s *Store) JoinAlias(_ context.Context, alias string, hosts []string) (aliases []string, err error) {
	hosts, err = reservation.CheckJoin(alias, hosts)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.enterLocked()
	if err := s.clashLocked(alias, hosts); err != nil {
		return nil, err
	}
	var join, has []string
	for _, host := range hosts {
		in := alias
		if r := s.records[host]; r != nil && r.alias != nil {
			in = r.alias.name
		} else {
			join = append(join, host)
		}
		aliases = append(aliases, in)
	}
	if len(join) == 0 {
		return aliases, nil
	}
	if r := s.records[alias]; r != nil {
		has = r.hosts
	}
	all, err := reservation.CheckUnion(alias, has, join)
	if err != nil {
		return nil, err
	}
	s.setLocked(s.recordLocked(alias), all, now)
	return aliases, nil
}

// setLocked sets the hosts of an alias. Each lease that covers a host of the former or the new set,
// or its group, now covers all of them. The latest next-request time of these applies to all.
func (s *Store) setLocked(a *record, hosts []string, now int64) {
	concerned := []*record{a}
	for _, name := range a.hosts {
		concerned = append(concerned, s.recordLocked(name))
	}
	var rehome []*record
	var locks []*lock
	for _, name := range hosts {
		h := s.recordLocked(name)
		g := s.groupLocked(h, now)
		rehome = append(append(rehome, h, g), h.members...)
		rehome = append(rehome, g.members...)
		locks = append(locks, g.locks...)
		a.next = max(a.next, g.next)
		if h.alias != a {
			concerned = append(concerned, h)
		}
	}
	rehome = append(append(rehome, concerned...), a.members...)
	next := int64(0)
	for _, r := range concerned {
		next = max(next, r.next)
		locks = append(locks, r.locks...)
	}
	for _, r := range rehome { // before their keys change
		s.leaveLocked(r, now)
	}
	s.assignLocked(a, hosts)
	for _, r := range concerned {
		r.next = next
		for _, l := range locks {
			s.coverLocked(l, r, now)
		}
		s.queueLocked(r, now)
	}
	for _, r := range rehome {
		s.rejoinLocked(r, now)
	}
	for _, r := range rehome {
		s.dropLocked(r, now)
	}
}

// assignLocked updates the alias pointers of the former and the new hosts.
func (s *Store) assignLocked(a *record, hosts []string) {
	if len(a.hosts) > 0 {
		s.aliases--
	}
	for _, name := range a.hosts {
		s.records[name].alias = nil
	}
	for _, name := range hosts {
		h := s.recordLocked(name)
		if former := h.alias; former != nil && former != a {
			former.hosts = slices.DeleteFunc(former.hosts, func(other string) bool { return other == name })
			if len(former.hosts) == 0 {
				s.aliases--
			}
		}
		h.alias = a
	}
	if a.hosts = hosts; len(hosts) > 0 {
		s.aliases++
	}
}

// GetAlias implements [reservation.Store.GetAlias].
func (s *Store) GetAlias(_ context.Context, name string) (alias string, hosts []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.records[name]
	if a == nil || len(a.hosts) == 0 {
		host, err := reservation.Host(name)
		if err != nil {
			return "", nil, err
		}
		if a = s.records[host]; a != nil {
			a = a.alias
		}
	}
	if a == nil {
		return "", nil, fmt.Errorf("%w: %.100q is no alias, nor a host in one", reservation.ErrUnknown, name)
	}
	return a.name, slices.Clone(a.hosts), nil
}

// Bind implements [reservation.Store.Bind].
func (s *Store) Bind(_ context.Context, bindings []reservation.Binding,
	ttl time.Duration) ([]reservation.Bound, error) {
	bindings, err := reservation.CheckedBindings(bindings)
	if err != nil {
		return nil, err
	}
	ms, err := reservation.TTLMillis(ttl)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.enterLocked()
	all := make([]reservation.Bound, len(bindings))
	for i, b := range bindings {
		all[i] = s.bindLocked(b, now, now+ms)
	}
	return all, nil
}

func (s *Store) bindLocked(b reservation.Binding, now, until int64) reservation.Bound {
	h := s.recordLocked(b.Host)
	if h.bound == nil || h.boundUntil <= now {
		s.bindToLocked(h, s.recordLocked(b.Group), now)
		s.bound.Set(h.id, time.Duration(until))
		h.boundUntil = until
		h.answered = s.groupLocked(h, now).name
	}
	others := s.othersLocked(h, now)
	if h.alias == nil {
		others = max(others, s.othersLocked(h.bound, now))
	}
	g := s.groupLocked(h, now)
	held := others > now+reservation.MinLease.Milliseconds()
	if !held { // if it were extended, a host whose alias changes again and again would be held back for ever
		h.boundUntil, h.answered = max(h.boundUntil, until), g.name
	}
	if g != h {
		s.deferLocked(g, h.next, now)
		for _, l := range slices.Clone(h.locks) {
			s.coverLocked(l, g, now)
		}
	}
	s.rejoinLocked(h, now)
	s.queueLocked(g, now)
	left := time.Duration(h.boundUntil-now) * time.Millisecond
	if held {
		left = time.Duration(now-others) * time.Millisecond
	}
	s.dropLocked(h, now)
	return reservation.Bound{Group: g.name, Left: left}
}

// othersLocked returns until when others may go by an answer of Bind for a name that is not its
// group in force; 0: nobody does.
func (s *Store) othersLocked(r *record, now int64) int64 {
	if r.bound == nil || r.boundUntil <= now || s.groupLocked(r, now).name == r.answered {
		return 0
	}
	return r.boundUntil
}
