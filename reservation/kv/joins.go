package kv

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"urlserver/reservation"
)

// mostJoins is how many calls of JoinAlias one change answers at most. Each host makes the change
// longer by some ten calls of the KV, Config.Parallel at a time, and the context of one call of
// JoinAlias has to last for all of them.
const mostJoins = 16

// join is a call of JoinAlias.
type join struct {
	hosts   []string
	aliases []string // the answer, also err
	err     error
	done    chan struct{} // closed when the answer is there
	gone    bool          // the caller no longer waits; under Store.mu
}

// JoinAlias implements [reservation.Store.JoinAlias]. Only changes set the alias of a host, and there is one
// change at a time. So a record that was read after the last change is still true if the next change is this
// one. The call whose turn it is makes one change for all calls that wait for the same alias. If that fails,
// the others wait on for their turns.
func (s *Store) JoinAlias(ctx context.Context, alias string, hosts []string) (aliases []string, err error) {
	hosts, err = reservation.CheckJoin(alias, hosts)
	if err != nil {
		return nil, err
	}
	if err := s.clash(ctx, alias, hosts); err != nil {
		return nil, err
	}
	j := &join{hosts: hosts, done: make(chan struct{})}
	s.waitJoin(alias, j)
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-j.done:
		return j.aliases, j.err
	case <-ctx.Done():
		s.endJoin(alias, j)
		return nil, ctx.Err()
	}
	all := s.takeJoins(alias, j)
	if all == nil { // another call has joined these hosts just now
		return j.aliases, j.err
	}
	union := func() ([]string, bool, error) { return s.union(ctx, alias, all) }
	if err := s.changeAlias(ctx, alias, union); err != nil {
		s.waitJoin(alias, all[1:]...)
		return nil, err
	}
	for _, one := range all {
		close(one.done)
	}
	return j.aliases, j.err
}

// waitJoin adds joins to those that wait for an alias.
func (s *Store) waitJoin(alias string, joins ...*join) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range joins {
		if !j.gone {
			s.joins[alias] = append(s.joins[alias], j)
		}
	}
}

// takeJoins takes a join from those that wait for an alias, with the first of the others; nil: another call has
// taken it.
func (s *Store) takeJoins(alias string, j *join) (all []*join) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dropJoin(alias, j) {
		return nil
	}
	others := s.joins[alias]
	all = append([]*join{j}, others[:min(len(others), mostJoins-1)]...)
	for _, one := range all[1:] {
		s.dropJoin(alias, one)
	}
	return all
}

// endJoin records that a join's caller waits no longer.
func (s *Store) endJoin(alias string, j *join) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.gone = true
	s.dropJoin(alias, j)
}

// dropJoin reports whether a join waits for an alias, and ends that. The caller holds s.mu.
func (s *Store) dropJoin(alias string, j *join) bool {
	waiting := s.joins[alias]
	at := slices.Index(waiting, j)
	if at < 0 {
		return false
	}
	if s.joins[alias] = slices.Delete(waiting, at, at+1); len(waiting) == 1 {
		delete(s.joins, alias)
	}
	return true
}

// union answers joins, and returns the hosts that the alias has then. A join with a host whose record is damaged
// fails, and the others do not.
func (s *Store) union(ctx context.Context, alias string, joins []*join) (all []string, changes bool, err error) {
	a, err := s.read(ctx, aliasKey(alias))
	if err != nil {
		return nil, false, err
	}
	var keys []string
	for _, j := range joins {
		for _, host := range j.hosts {
			keys = append(keys, hostKey(host))
		}
	}
	records, errs := s.readEach(ctx, keys)
	all = a.Hosts
	for _, j := range joins {
		n := len(j.hosts)
		hosts, err := records[:n], firstOf(errs[:n]...)
		records, errs = records[n:], errs[n:]
		if err != nil && !errors.Is(err, errDamaged) {
			return nil, false, err
		}
		var news []string
		if j.aliases, j.err = nil, err; err == nil {
			j.aliases, news = joined(alias, hosts)
		}
		if len(news) == 0 {
			continue
		}
		if with, err := reservation.CheckUnion(alias, all, news); err != nil {
			j.aliases, j.err = nil, err
		} else {
			all, changes = with, true
		}
	}
	return all, changes, nil
}

// joined returns the alias of each host after those without one have joined alias, and these hosts.
func joined(alias string, hosts []*versioned) (aliases, news []string) {
	for _, h := range hosts {
		if h.Alias == "" {
			news = append(news, h.name())
		}
		aliases = append(aliases, cmp.Or(h.Alias, alias))
	}
	return aliases, news
}
