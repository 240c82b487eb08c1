package redis

import (
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"urlserver/reservation"
)

// The code that each script's answer begins with.
const (
	codeOK = iota
	codeStale
	codeNotNow
	codeUnknown
	codeInvalid
	codeBroken
)

// answer is what a script returned, after its code.
type answer struct {
	values []rueidis.RedisMessage
	code   int64
	err    error
}

func answerOf(result rueidis.RedisResult) answer {
	values, err := result.ToArray()
	return answerIn(values, err)
}

func answerIn(values []rueidis.RedisMessage, err error) (a answer) {
	if a.err = err; err != nil {
		return a
	}
	if len(values) == 0 {
		a.err = fmt.Errorf("reservations in Redis: a script answers nothing")
		return a
	}
	a.code, a.err = values[0].AsInt64()
	a.values = values[1:]
	return a
}

// each returns the answer to the i-th of the n calls that a script made. It may be a code only.
func (a answer) each(i, n int) answer {
	if a.err != nil || a.code != codeOK {
		return a
	}
	if len(a.values) < n {
		return answer{err: fmt.Errorf("a script answers %d of %d calls", len(a.values), n)}
	}
	if a.values[i].IsInt64() {
		return answerIn(a.values[i:i+1], nil)
	}
	return answerIn(a.values[i].ToArray())
}

// failure returns the error that the answer's code stands for, or nil. about and args describe the
// call.
func (a answer) failure(about string, args ...any) error {
	about = fmt.Sprintf(about, args...)
	switch {
	case isFull(a.err):
		return fmt.Errorf("the Redis of reservations is %w, give it more memory (maxmemory): %s: %w",
			reservation.ErrFull, about, a.err)
	case a.err != nil:
		return fmt.Errorf("reservations in Redis: %s: %w", about, a.err)
	case a.code == codeOK:
		return nil
	case a.code == codeStale:
		return fmt.Errorf("%w: %s", reservation.ErrStale, about)
	case a.code == codeNotNow && len(a.values) > 0:
		return fmt.Errorf(
			"%w: %s: this Redis is another than before, and others may hold what it does not know of",
			reservation.ErrNotNow, about)
	case a.code == codeNotNow:
		return fmt.Errorf("%w: %s", reservation.ErrNotNow, about)
	case a.code == codeUnknown:
		return fmt.Errorf("%w: %s", reservation.ErrUnknown, about)
	case a.code == codeBroken:
		return fmt.Errorf(
			"%w: %s: in Redis the key %s is a %s; delete it, and what it is for is served again",
			reservation.ErrBroken, about, a.text(0), a.text(1))
	case a.code == codeInvalid:
		return fmt.Errorf("%w %s: a host and an alias have one name", reservation.ErrInvalid, about)
	}
	return fmt.Errorf("reservations in Redis: %s: a script answers %d", about, a.code)
}

// number returns the i-th value, or 0 if it is not a number.
func (a answer) number(i int) int64 {
	if i >= len(a.values) {
		return 0
	}
	n, _ := a.values[i].AsInt64()
	return n
}

// text returns the i-th value, or "" if it is not a text.
func (a answer) text(i int) string {
	if i >= len(a.values) {
		return ""
	}
	s, _ := a.values[i].ToString()
	return s
}

// reservations parses the values: four for each reservation.
func (s *Store) reservations(a answer) (list []reservation.Reservation, err error) {
	if len(a.values)%4 != 0 {
		return nil, fmt.Errorf(
			"reservations in Redis: a script answers %d values, which are no reservations", len(a.values))
	}
	list = make([]reservation.Reservation, 0, len(a.values)/4)
	for i := 0; i < len(a.values); i += 4 {
		r := reservation.Reservation{
			Host: a.text(i), Group: a.text(i + 1), Token: uint64(a.number(i + 2)),
			LeaseEnd: time.UnixMilli(a.number(i + 3)),
		}
		s.remember(0, r.Token)
		list = append(list, r)
	}
	return list, nil
}
