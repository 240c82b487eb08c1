package redis

import (
	"context"
	"strconv"
	"time"

	"urlserver/reservation"
)

// next asks for hosts that may be reserved now.
type next struct {
	lease  int64 // in ms
	holder string
	most   int
}

type nextAnswer struct {
	list []reservation.Reservation // shorter than most: there are no more
	err  error
}

// ReserveNextHost is [reservation.Store.ReserveNextHost].
func (s *Store) ReserveNextHost(ctx context.Context, lease time.Duration, most int, holder string) (list []reservation.Reservation, err error) {
	ms, err := reservation.Lease(lease)
	if err == nil {
		err = reservation.Holder(holder)
	}
	if err != nil {
		return nil, err
	}
	s.remember(ms, 0)
	for most = min(max(most, 1), reservation.MaxReserve); len(list) < most; {
		want := next{lease: ms, holder: holder, most: min(most-len(list), nextBatch)}
		got, err := s.nexts.do(ctx, want)
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

// reserveNext asks for several callers, the first of whom get what there is.
func (s *Store) reserveNext(wanted []next) []nextAnswer {
	answers := make([]nextAnswer, 0, len(wanted))
	var ops []op
	var callers []int // of each op
	room := 0
	for _, w := range wanted {
		if w.most > room {
			ops, callers, room = append(ops, op{script: &s.scripts.next}), append(callers, 0), nextBatch
		}
		o := &ops[len(ops)-1]
		o.args = append(o.args, decimal(w.lease), w.holder, strconv.Itoa(w.most))
		callers[len(ops)-1]++
		room -= w.most
	}
	for i, a := range s.run(context.Background(), ops) {
		some := wanted[len(answers):][:callers[i]]
		answers = append(answers, s.shared(a, some)...)
	}
	return answers
}

// shared is what each caller gets of a script's answer.
func (s *Store) shared(a answer, wanted []next) []nextAnswer {
	answers := make([]nextAnswer, len(wanted))
	list, err := s.reservations(a)
	if failure := a.failure("next host"); failure != nil {
		list, err = nil, failure
	}
	for i, w := range wanted {
		n := min(w.most, len(list))
		answers[i].list, list = list[:n:n], list[n:]
		switch {
		case err != nil:
			answers[i].err = err
		case n == 0:
			answers[i].err = answer{code: codeNotNow}.failure("next host")
		}
	}
	return answers
}
