package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// spider simulates a spider. If its process crashes, a new one with the same number connects later.
type spider struct {
	run         *run
	number      int
	life        int // number of its process; callbacks of earlier processes do nothing
	habit       spiderHabit
	conn        *conn // nil: not connected
	frozenUntil time.Duration
	resumesAt   time.Duration // its process is suspended until then
	suspendedAt time.Duration // since when
	unread      []unread      // lines that have arrived at its socket meanwhile
	last        string        // the TRANS_ID that it received last
}

type spiderHabit uint8

const (
	healthy    spiderHabit = iota
	sluggish               // each fetch takes long
	mute                   // never sends anything
	shortLived             // crashes soon after each start, and sends nothing
)

// unread is a line in a spider's socket.
type unread struct {
	text  string
	since time.Duration
}

// habitOf returns the habit of a spider by its number. The first spiders are healthy.
func (sc *Scenario) habitOf(number int) spiderHabit {
	fromEnd := float64(sc.Spiders-number) / float64(sc.Spiders)
	for habit, share := range []float64{shortLived: sc.Trouble.ShortLived, mute: sc.Trouble.Mute,
		sluggish: sc.Trouble.Sluggish} {
		if fromEnd <= share {
			return spiderHabit(habit)
		}
		fromEnd -= share
	}
	return healthy
}

func (r *run) startSpiders() {
	for i := range r.sc.Spiders {
		s := &spider{run: r, number: i, habit: r.sc.habitOf(i)}
		r.spiders = append(r.spiders, s)
		r.after(r.between(0, 3*time.Second), s.connect)
	}
	t := &r.sc.Trouble
	r.every(func() time.Duration { return t.Crash }, func() { r.anySpider().crash() })
	r.every(func() time.Duration { return t.Freeze }, func() {
		r.anySpider().frozenUntil = r.now + r.between(time.Second, 3*r.sc.Config.TimeoutSpiderStatus)
	})
	r.every(func() time.Duration { return t.Suspend }, func() { r.anySpider().suspend() })
	r.every(func() time.Duration { return t.Room }, func() { r.anySpider().sayRoom() })
}

// suspend suspends the process for a while. If that was at least half the status timeout, the
// spider drops its documents and connects again, as the protocol demands; else it reads the lines
// that have arrived.
func (s *spider) suspend() {
	r := s.run
	if s.resumesAt > r.now {
		return
	}
	s.suspendedAt, s.resumesAt = r.now, r.now+r.between(time.Second, 3*r.sc.Config.TimeoutSpiderStatus)
	s.frozenUntil = max(s.frozenUntil, s.resumesAt)
	r.plan(s.resumesAt, func() {
		lines := s.unread
		s.unread = nil
		switch {
		case s.conn == nil:
		case r.now-s.suspendedAt >= r.sc.Config.TimeoutSpiderStatus/2:
			s.life++
			s.conn.end()
		default:
			for _, l := range lines {
				s.receive(l.text, l.since)
			}
		}
	})
}

// sound reports whether a spider is connected, healthy and running.
func (s *spider) sound() bool {
	return s.conn != nil && s.habit == healthy && s.frozenUntil <= s.run.now
}

func (r *run) anySpider() *spider { return r.spiders[r.rng.IntN(len(r.spiders))] }

func (s *spider) connect() {
	if s.conn != nil {
		return
	}
	r := s.run
	id := r.engine.Connected("spider " + strconv.Itoa(s.number))
	r.oracle.connected(id)
	s.conn = newConn(s, id)
	r.conns[id] = s.conn
	if r.sc.Payloads && s.number%2 == 0 {
		s.send("PAYLOAD\n")
	}
	if c := s.conn; s.habit == shortLived && r.now < r.sc.Heal {
		r.after(r.between(0, 2*time.Second), func() {
			s.life++
			c.end()
		})
	}
}

// crash ends the process and its connection; the spider connects again later. In half of the cases
// only the connection breaks, and the process goes on fetching.
func (s *spider) crash() {
	if s.conn == nil {
		return
	}
	if s.run.rng.IntN(2) == 0 {
		s.life++
	}
	s.conn.cut()
}

// receive handles a line: a document to fetch. since is the earliest time at which the daemon may
// count it as sent.
func (s *spider) receive(line string, since time.Duration) {
	if s.resumesAt > s.run.now {
		s.unread = append(s.unread, unread{line, since})
		return
	}
	f := strings.Split(line, " ")
	if len(f) < 4 {
		return // the oracle has complained
	}
	r, trans, life := s.run, f[0], s.life
	n, err := strconv.ParseUint(f[1], 10, 32)
	if err != nil || int(n) >= len(r.world.docs) {
		return
	}
	s.last = trans
	if r.world.docs[n].kind == poison {
		r.after(r.between(0, 50*time.Millisecond), func() { s.poisoned(life) })
		return
	}
	if r.chance(r.sc.Trouble.Silent) || s.habit == shortLived || s.habit == mute {
		return
	}
	if r.world.docs[n].kind == endless {
		s.keepWorking(trans, life, r.now+2*r.sc.Config.Spider.MaxFetch)
		return
	}
	if r.chance(r.sc.Trouble.Back) {
		s.giveBack(trans, life, since)
		return
	}
	status, retry, took := r.fetchPage(uint32(n))
	if s.habit == sluggish {
		took = r.between(10*time.Second, r.sc.Config.TimeoutSpiderStatus*3/4)
	}
	ends := s.avoidTimeout(since, r.now+took)
	s.keepAlive(trans, life, ends)
	r.plan(ends, func() {
		s.whenAwake(life, func() {
			if x, ok := r.index.(*scopedIndex); ok && status == 200 {
				x.fetched(s, uint32(n))
			}
			s.done(trans, doneLine(trans, status, retry))
		})
	})
}

// giveBack sends BACK after a moment, in half of the cases with seconds.
func (s *spider) giveBack(trans string, life int, since time.Duration) {
	r, line := s.run, trans+" BACK\n"
	if r.rng.IntN(2) == 0 {
		line = fmt.Sprintf("%s BACK %d\n", trans, r.rng.IntN(120))
	}
	ends := s.avoidTimeout(since, r.now+r.between(0, 2*time.Second))
	r.plan(ends, func() { s.whenAwake(life, func() { s.done(trans, line) }) })
}

// sayRoom says how many documents the spider takes: none, few or any number.
func (s *spider) sayRoom() {
	n := []int{0, 1, 1 + s.run.rng.IntN(8), anyRoom}[s.run.rng.IntN(4)]
	s.send(fmt.Sprintf("ROOM %d\n", n))
}

const anyRoom = 1 << 20

const margin = 100 * time.Millisecond // more than a line takes in pieces, mostly

// avoidTimeout returns when a spider reports a fetch that ends at at. If the transaction may or may
// not have timed out then, it returns a time at which it certainly has. since is the earliest time
// at which the daemon may count the document as sent.
func (s *spider) avoidTimeout(since, at time.Duration) time.Duration {
	r := s.run
	from, to := since+r.sc.Config.TimeoutSpiderStatus, r.now+r.sc.Config.TimeoutSpiderStatus
	if since < r.now && at+margin >= from && at <= to {
		return to + margin
	}
	return at
}

// keepAlive sends WORKING every half of the status timeout until the fetch ends. In a third of the
// cases it stops.
func (s *spider) keepAlive(trans string, life int, ends time.Duration) {
	r := s.run
	pause := r.sc.Config.TimeoutSpiderStatus / 2
	if ends <= r.now+pause || r.sc.Trouble.Stall > 0 || r.rng.IntN(3) == 0 {
		return
	}
	r.after(pause, func() {
		s.whenAwake(life, func() { s.send(trans + " WORKING\n") })
		s.keepAlive(trans, life, ends)
	})
}

// keepWorking sends WORKING every half of the status timeout until a time.
func (s *spider) keepWorking(trans string, life int, until time.Duration) {
	r := s.run
	if r.now >= until {
		return
	}
	r.after(r.sc.Config.TimeoutSpiderStatus/2, func() {
		s.whenAwake(life, func() {
			s.send(trans + " WORKING\n")
			s.keepWorking(trans, life, until)
		})
	})
}

// whenAwake calls do once the spider is not frozen, unless the process has crashed or has no
// connection then.
func (s *spider) whenAwake(life int, do func()) {
	if s.frozenUntil > s.run.now {
		s.run.plan(s.frozenUntil, func() { s.whenAwake(life, do) })
		return
	}
	if s.life == life && s.conn != nil {
		do()
	}
}

func (s *spider) poisoned(life int) {
	if s.life == life && s.conn != nil {
		s.life++
		s.conn.cut()
	}
}

// done sends DONE. Sometimes it also sends a bad line, another spider's DONE, or DONE twice.
func (s *spider) done(trans, line string) {
	r, t := s.run, &s.run.sc.Trouble
	if r.chance(t.Garbage) {
		s.send(r.garbage(trans))
	}
	if r.chance(t.Alien) {
		s.send(r.anySpider().last + " DONE 200\n")
	}
	s.send(line)
	if r.chance(t.Twice) {
		s.send(line)
	}
}

// send sends text to the daemon if there is a connection.
func (s *spider) send(text string) {
	if s.conn != nil {
		s.conn.send(text)
	}
}

// garbage returns a line that the protocol does not allow.
func (r *run) garbage(trans string) string {
	switch r.rng.IntN(9) {
	case 0:
		return "\n"
	case 1:
		return trans + " DONE 2x0\n"
	case 2:
		return trans + " DONE 200 5 \n"
	case 3:
		return trans + "  DONE\n"
	case 4:
		return trans + " WORKING 200\n"
	case 5:
		return "4294967296.0.0 DONE\n"
	case 6:
		return strings.Repeat(fmt.Sprintf("99999999.0.%d DONE\r\n", r.rng.IntN(1000)), 1+r.rng.IntN(120))
	case 7:
		return strings.Repeat("x", 7000+r.rng.IntN(2500)) + "\n"
	}
	b := make([]byte, r.rng.IntN(200))
	for i := range b {
		b[i] = byte(r.rng.IntN(256))
	}
	return string(b) + "\n"
}
