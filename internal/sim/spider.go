package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// spider is a process that fetches; now and then it dies, and another takes its place.
type spider struct {
	run    *run
	number int
	life   int // which process of its number this is
	habit  spiderHabit
	conn   *conn // nil: not connected
	thaw   time.Duration
	wakes  time.Duration // its process stands still until then
	slept  time.Duration // since when
	unread []unread      // what has come to its socket meanwhile
	last   string        // a TRANS_ID of late, perhaps not its own
}

type spiderHabit uint8

const (
	healthy  spiderHabit = iota
	sluggish             // needs long for each fetch
	mute                 // never says a word
	mayfly               // crashes soon after each start, without a word
)

// unread is a line in a spider's socket.
type unread struct {
	text  string
	since time.Duration
}

// habitOf is the habit of a spider, by number: the first ones are healthy.
func (sc *Scenario) habitOf(number int) spiderHabit {
	fromEnd := float64(sc.Spiders-number) / float64(sc.Spiders)
	for habit, share := range []float64{mayfly: sc.Trouble.Mayflies, mute: sc.Trouble.Mute,
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
		r.anySpider().thaw = r.now + r.between(time.Second, 3*r.sc.Config.TimeoutSpiderStatus)
	})
	r.every(func() time.Duration { return t.Stand }, func() { r.anySpider().stand() })
}

// stand has the process stand still for a while. When it goes on it throws away what it has read
// and connects anew, as the protocol asks for, if that was for long.
func (s *spider) stand() {
	r := s.run
	if s.wakes > r.now {
		return
	}
	s.slept, s.wakes = r.now, r.now+r.between(time.Second, 3*r.sc.Config.TimeoutSpiderStatus)
	s.thaw = max(s.thaw, s.wakes)
	r.plan(s.wakes, func() {
		lines := s.unread
		s.unread = nil
		switch {
		case s.conn == nil:
		case r.now-s.slept >= r.sc.Config.TimeoutSpiderStatus/2:
			s.life++
			s.conn.end()
		default:
			for _, l := range lines {
				s.receive(l.text, l.since)
			}
		}
	})
}

// sound says whether a spider's process goes on, and well.
func (s *spider) sound() bool { return s.conn != nil && s.habit == healthy && s.thaw <= s.run.now }

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
	if c := s.conn; s.habit == mayfly && r.now < r.sc.Heal {
		r.after(r.between(0, 2*time.Second), func() {
			s.life++
			c.end()
		})
	}
}

// crash ends the process and its connection; it comes back in a while. Half the
// time only the connection breaks, and the process goes on fetching.
func (s *spider) crash() {
	if s.conn == nil {
		return
	}
	if s.run.rng.IntN(2) == 0 {
		s.life++
	}
	s.conn.cut()
}

// receive takes a line: a document to fetch. since is the earliest moment at
// which the daemon may count it as sent.
func (s *spider) receive(line string, since time.Duration) {
	if s.wakes > s.run.now {
		s.unread = append(s.unread, unread{line, since})
		return
	}
	f := strings.Split(line, " ")
	if len(f) != 4 {
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
	if r.chance(r.sc.Trouble.Silent) || s.habit == mayfly || s.habit == mute {
		return
	}
	if r.world.docs[n].kind == endless {
		s.goOn(trans, life, r.now+2*r.sc.Config.Spider.MaxFetch)
		return
	}
	status, retry, took := r.fetchPage(uint32(n))
	if s.habit == sluggish {
		took = r.between(10*time.Second, r.sc.Config.TimeoutSpiderStatus*3/4)
	}
	ends := s.certain(since, r.now+took)
	s.keepAlive(trans, life, ends)
	r.plan(ends, func() { s.speak(life, func() { s.done(trans, doneLine(trans, status, retry)) }) })
}

const margin = 100 * time.Millisecond // more than a line takes in pieces, mostly

// certain moves a moment away from the time in which nobody but the daemon
// knows whether it has given a transaction up.
func (s *spider) certain(since, at time.Duration) time.Duration {
	r := s.run
	from, to := since+r.sc.Config.TimeoutSpiderStatus, r.now+r.sc.Config.TimeoutSpiderStatus
	if since < r.now && at+margin >= from && at <= to {
		return to + margin
	}
	return at
}

// keepAlive says WORKING at half the status timeout, or forgets to.
func (s *spider) keepAlive(trans string, life int, ends time.Duration) {
	r := s.run
	pause := r.sc.Config.TimeoutSpiderStatus / 2
	if ends <= r.now+pause || r.sc.Trouble.Stall > 0 || r.rng.IntN(3) == 0 {
		return
	}
	r.after(pause, func() {
		s.speak(life, func() { s.say(trans + " WORKING\n") })
		s.keepAlive(trans, life, ends)
	})
}

// goOn says WORKING again and again, for longer than a fetch may take.
func (s *spider) goOn(trans string, life int, until time.Duration) {
	r := s.run
	if r.now >= until {
		return
	}
	r.after(r.sc.Config.TimeoutSpiderStatus/2, func() {
		s.speak(life, func() {
			s.say(trans + " WORKING\n")
			s.goOn(trans, life, until)
		})
	})
}

// speak does something once the spider is not frozen, unless the process has
// died or has no connection then.
func (s *spider) speak(life int, do func()) {
	if s.thaw > s.run.now {
		s.run.plan(s.thaw, func() { s.speak(life, do) })
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

// done says DONE, and what should not be said.
func (s *spider) done(trans, line string) {
	r, t := s.run, &s.run.sc.Trouble
	if r.chance(t.Garbage) {
		s.say(r.garbage(trans))
	}
	if r.chance(t.Alien) {
		s.say(r.anySpider().last + " DONE 200\n")
	}
	s.say(line)
	if r.chance(t.Twice) {
		s.say(line)
	}
}

// say sends text to the daemon while there is a connection.
func (s *spider) say(text string) {
	if s.conn != nil {
		s.conn.say(text)
	}
}

// garbage is a line that is none.
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
