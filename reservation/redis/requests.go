package redis

import (
	"context"
	"strconv"
	"time"

	"urlserver/reservation"
)

// request is one caller's part of a batch. If most is above 0, it reserves up to most due hosts;
// else it releases a host.
type request struct {
	release reservation.Call

	lease  int64 // in ms
	holder string
	most   int
}

type granted struct {
	list []reservation.Reservation // shorter than most: there are no more
	err  error
}

// ReserveNextHost is [reservation.Store.ReserveNextHost].
func (s *Store) ReserveNextHost(ctx context.Context, lease time.Duration, most int,
	holder string) (list []reservation.Reservation, err error) {
	ms, err := reservation.LeaseMillis(lease)
	if err == nil {
		err = reservation.CheckHolder(holder)
	}
	if err != nil {
		return nil, err
	}
	s.remember(ms, 0)
	for most = min(max(most, 1), reservation.MaxReserve); len(list) < most; {
		want := request{lease: ms, holder: holder, most: min(most-len(list), turnBatch)}
		got, err := s.requests.do(ctx, want)
		if err == nil {
			err = got.err
		}
		list = append(list, got.list...)
		if err != nil && len(list) == 0 {
			return nil, err
		}
		if err != nil || len(got.list) < want.most { // they are reserved, whatever came after
			return list, nil
		}
	}
	return list, nil
}

// releaseHost releases one host, in a batch with the requests of others.
func (s *Store) releaseHost(ctx context.Context, c reservation.Call) (a reservation.Answer) {
	if c, a.Err = c.Checked(); a.Err != nil {
		return a
	}
	got, err := s.requests.do(ctx, request{release: c})
	if a.Err = err; err == nil {
		a.Err = got.err
	}
	return a
}

// part is the part of a batch that one script does: the requests at these indexes.
type part struct {
	releases, nexts []int
	reserved        int // at most
}

// runRequests runs a batch. Callers that reserve the next hosts are served in the order in which
// they came.
func (s *Store) runRequests(ctx context.Context, requests []request) []granted {
	parts := partsOf(requests)
	ops := make([]op, len(parts))
	for n, p := range parts {
		args := append(make([]string, 0, 1+3*(len(p.releases)+len(p.nexts))), strconv.Itoa(len(p.releases)))
		for _, i := range p.releases {
			args = s.appendArgs(args, requests[i].release)
		}
		ops[n] = op{&s.scripts.turn, appendNexts(args, requests, p.nexts)}
	}
	answers := make([]granted, len(requests))
	for n, a := range s.run(ctx, ops) {
		s.grant(answers, requests, parts[n], a)
	}
	return answers
}

// appendNexts appends the arguments of the requests for next hosts. Consecutive equal requests
// share one set.
func appendNexts(args []string, requests []request, nexts []int) []string {
	for len(nexts) > 0 {
		first, most := requests[nexts[0]], 0
		for len(nexts) > 0 && requests[nexts[0]].lease == first.lease &&
			requests[nexts[0]].holder == first.holder {
			most, nexts = most+requests[nexts[0]].most, nexts[1:]
		}
		args = append(args, decimal(first.lease), first.holder, strconv.Itoa(most))
	}
	return args
}

func partsOf(requests []request) (parts []part) {
	for i, w := range requests {
		n := len(parts) - 1
		if n < 0 || len(parts[n].releases) == turnBatch || parts[n].reserved+w.most > turnBatch {
			parts, n = append(parts, part{}), n+1
		}
		p := &parts[n]
		if w.most == 0 {
			p.releases = append(p.releases, i)
		} else {
			p.nexts, p.reserved = append(p.nexts, i), p.reserved+w.most
		}
	}
	return parts
}

// grant distributes a script's answer among the callers of a part.
func (s *Store) grant(answers []granted, requests []request, p part, a answer) {
	for n, i := range p.releases {
		if one := a.each(n, len(p.releases)); one.err != nil || one.code != codeOK {
			answers[i].err = one.failure("host %s", requests[i].release.Host)
		}
	}
	if len(p.nexts) == 0 {
		return
	}
	next := a
	if a.err == nil && a.code == codeOK {
		next = answerIn(a.values[min(len(p.releases), len(a.values)):], nil)
	}
	var list []reservation.Reservation
	err := next.failure("next host")
	if err == nil {
		list, err = s.reservations(next)
	}
	for _, i := range p.nexts {
		n := min(requests[i].most, len(list))
		answers[i].list, list = list[:n:n], list[n:]
		switch {
		case err != nil:
			answers[i].err = err
		case n == 0:
			answers[i].err = answer{code: codeNotNow}.failure("next host")
		}
	}
}
