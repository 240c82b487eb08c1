package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"urlserver/reservation"
)

// defaultCrawl is the crawl of documents whose caller names none.
const defaultCrawl = "DEFAULT"

// Do is [reservation.Store.Do]. Consecutive calls of one verb share a script. So do single calls of
// concurrent callers.
func (s *Store) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	switch {
	case len(calls) == 1 && calls[0].Verb == reservation.ReleaseHost:
		return []reservation.Answer{s.releaseHost(ctx, calls[0])}
	case len(calls) != 1 || int(calls[0].Verb) >= len(s.singles):
		return s.do(ctx, calls)
	}
	answer, err := s.singles[calls[0].Verb].do(ctx, calls[0])
	if err != nil {
		answer.Err = err
	}
	return []reservation.Answer{answer}
}

func (s *Store) do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	answers := make([]reservation.Answer, len(calls))
	var ops []op
	var batches [][]int // the calls of each op
	last := reservation.Verb(0)
	for i := range calls {
		c, err := calls[i].Checked()
		if err != nil {
			answers[i].Err = err
			continue
		}
		if n := len(ops); n == 0 || c.Verb != last || len(batches[n-1]) == callBatch {
			most := min(callBatch, len(calls)-i)
			script, width := s.scriptOf(c.Verb)
			ops = append(ops, op{script, append(make([]string, 0, 1+most*width), strconv.Itoa(width))})
			batches, last = append(batches, make([]int, 0, most)), c.Verb
		}
		n := len(ops) - 1
		ops[n].args, batches[n] = s.appendArgs(ops[n].args, c), append(batches[n], i)
		if c.Verb == reservation.ReleaseHost { // the script takes their number
			ops[n].args[0] = strconv.Itoa(len(batches[n]))
		}
	}
	if len(ops) == 0 {
		return answers
	}
	for n, a := range s.run(ctx, ops) {
		for j, i := range batches[n] {
			answers[i] = s.answer(calls[i], a.each(j, len(batches[n])))
		}
	}
	return answers
}

// scriptOf returns the script of a verb, and how many arguments each call takes in it.
func (s *Store) scriptOf(verb reservation.Verb) (script *script, width int) {
	switch verb {
	case reservation.AddHost:
		return &s.scripts.add, 5
	case reservation.DeleteHost:
		return &s.scripts.remove, 4
	case reservation.TryReserve:
		return &s.scripts.try, 4
	case reservation.ExtendHost:
		return &s.scripts.extend, 3
	default:
		return &s.scripts.turn, 3
	}
}

func (s *Store) appendArgs(to []string, c reservation.Call) []string {
	lease := c.Lease.Milliseconds()
	switch c.Verb {
	case reservation.AddHost:
		return append(to, c.Host, decimal(reservation.Millis(c.Time)), defaultCrawl, "1", "host")
	case reservation.DeleteHost:
		return append(to, c.Host, strconv.FormatUint(c.Token, 10), next(c), s.penalty)
	case reservation.TryReserve:
		s.remember(lease, 0)
		return append(to, c.Host, decimal(lease), c.Holder, s.penalty)
	case reservation.ExtendHost:
		s.remember(lease, 0)
		return append(to, c.Host, strconv.FormatUint(c.Token, 10), decimal(lease))
	default:
		return append(to, c.Host, strconv.FormatUint(c.Token, 10), next(c))
	}
}

// next formats a call's next time for the scripts: ms since 1970, or "+" and ms from now.
func next(c reservation.Call) string {
	if c.After > 0 {
		return "+" + decimal(c.AfterMillis())
	}
	return decimal(reservation.Millis(c.Time))
}

func (s *Store) answer(c reservation.Call, a answer) (out reservation.Answer) {
	if a.err != nil || a.code != codeOK {
		out.Err = a.failure("host %s", c.Host)
		return out
	}
	switch c.Verb {
	case reservation.AddHost:
		out.Added = a.number(0) == 1
	case reservation.ExtendHost:
		out.LeaseEnd = time.UnixMilli(a.number(0))
	case reservation.TryReserve:
		host, _ := reservation.Host(c.Host) // it has been checked
		out.Reservation = reservation.Reservation{
			Host: host, Group: a.text(0), Token: uint64(a.number(1)), LeaseEnd: time.UnixMilli(a.number(2)),
		}
		s.remember(0, out.Reservation.Token)
	}
	return out
}

// SetAlias is [reservation.Store.SetAlias].
func (s *Store) SetAlias(ctx context.Context, alias string, hosts []string) error {
	hosts, err := reservation.CheckAlias(alias, hosts)
	if err != nil {
		return err
	}
	set := op{&s.scripts.alias, append([]string{alias}, hosts...)}
	return s.runKept(ctx, []op{set})[0].failure("alias %s", alias)
}

// JoinAlias is [reservation.Store.JoinAlias].
func (s *Store) JoinAlias(ctx context.Context, alias string, hosts []string) (aliases []string, err error) {
	hosts, err = reservation.CheckJoin(alias, hosts)
	if err != nil {
		return nil, err
	}
	join := op{&s.scripts.join, append([]string{strconv.Itoa(reservation.MaxHosts), alias}, hosts...)}
	a := s.runKept(ctx, []op{join})[0]
	if a.err == nil && a.code == codeInvalid && len(a.values) == 0 {
		return nil, fmt.Errorf("%w alias %s: it would have more than %d hosts", reservation.ErrInvalid,
			alias, reservation.MaxHosts)
	}
	if err := a.failure("alias %s", alias); err != nil {
		return nil, err
	}
	for i := range hosts {
		aliases = append(aliases, a.text(i))
	}
	return aliases, nil
}

// GetAlias is [reservation.Store.GetAlias].
func (s *Store) GetAlias(ctx context.Context, name string) (alias string, hosts []string, err error) {
	host, hostErr := reservation.Host(name)
	if hostErr != nil {
		if reservation.CheckAliasName(name) != nil {
			return "", nil, hostErr
		}
		host = name
	}
	a := s.one(ctx, &s.scripts.getAlias, name, host)
	if err := a.failure("%.100q is no alias, nor a host in one", name); err != nil {
		return "", nil, err
	}
	for i := 1; i < len(a.values); i++ {
		hosts = append(hosts, a.text(i))
	}
	return a.text(0), hosts, nil
}

// Bind is [reservation.Store.Bind].
func (s *Store) Bind(ctx context.Context, bindings []reservation.Binding,
	ttl time.Duration) (all []reservation.Bound, err error) {
	bindings, err = reservation.CheckedBindings(bindings)
	if err != nil {
		return nil, err
	}
	ms, err := reservation.TTLMillis(ttl)
	if err != nil {
		return nil, err
	}
	var ops []op
	for rest := bindings; len(rest) > 0; rest = rest[min(bindBatch, len(rest)):] {
		args := []string{decimal(ms)}
		for _, b := range rest[:min(bindBatch, len(rest))] {
			args = append(args, b.Host, b.Group)
		}
		ops = append(ops, op{&s.scripts.bind, args})
	}
	if len(ops) == 0 {
		return nil, nil
	}
	for _, a := range s.runKept(ctx, ops) {
		if err := a.failure("bind"); err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(a.values); i += 2 {
			all = append(all, reservation.Bound{
				Group: a.text(i), Left: time.Duration(a.number(i+1)) * time.Millisecond,
			})
		}
	}
	return all, nil
}

// Stats is [reservation.Store.Stats].
func (s *Store) Stats(ctx context.Context) (out reservation.Stats, err error) {
	a := s.one(ctx, &s.scripts.stats)
	if err := a.failure("stats"); err != nil {
		return out, err
	}
	hosts, ready, busy := a.number(0), a.number(1), a.number(2)
	return reservation.Stats{
		Hosts: uint64(hosts), Waiting: uint64(max(0, hosts-ready-busy)), Ready: uint64(ready),
		Busy:    uint64(busy),
		Aliases: uint64(a.number(3)), Repaired: uint64(a.number(4)),
	}, nil
}

// Explain is [reservation.Store.Explain].
func (s *Store) Explain(ctx context.Context, host string) (x reservation.Explanation, err error) {
	host, err = reservation.Host(host)
	if err != nil {
		return x, err
	}
	a := s.one(ctx, &s.scripts.explain, host, s.penalty)
	if err := a.failure("explain %s", host); err != nil {
		return x, err
	}
	x = reservation.Explanation{Host: host, Group: a.text(0), State: reservation.Unknown,
		Rule: reservation.RuleUnknown}
	switch a.text(1) {
	case "busy":
		return x.As(reservation.Busy, a.number(2), reservation.RuleBusy, a.text(3)), nil
	case "waiting":
		return x.As(reservation.Waiting, a.number(2), reservation.RuleGroupBusy, a.text(3)), nil
	case "idle":
		return x.Idle(a.number(2), a.number(3), a.number(4)), nil
	}
	return x, nil
}

// Sweep is [reservation.Store.Sweep]. It repeats the script worker until nothing is left to do,
// then runs one pass of the janitor.
func (s *Store) Sweep(ctx context.Context) error {
	if err := s.Work(ctx); err != nil {
		return err
	}
	for cursor := "0"; ; {
		a := s.one(ctx, &s.scripts.janitor, cursor, strconv.Itoa(scanCount), s.penalty)
		if err := a.failure("janitor"); err != nil {
			return err
		}
		if cursor = a.text(0); cursor == "0" {
			for i := 2; i < len(a.values); i++ {
				s.cfg.Log.Error().Str("key", a.text(i)).Msg("reservations in Redis: a key is of a wrong " +
					"type; its host or group is not served until somebody deletes the key")
			}
			return nil
		}
	}
}

// Work runs the script worker: it ends leases, bindings and reports that have run out, and moves
// due groups to ready. Any number of daemons may call it, about once a second.
func (s *Store) Work(ctx context.Context) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	if err := s.arrive(ctx, c); err != nil {
		return errors.Join(errors.New("reservations in Redis: arrive"), err)
	}
	for more := true; more; {
		a := s.one(ctx, &s.scripts.worker, s.penalty, strconv.Itoa(sweepBatch), strconv.Itoa(readyMost))
		if err := a.failure("worker"); err != nil {
			return err
		}
		more = a.number(0) == 1
	}
	return nil
}
