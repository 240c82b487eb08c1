package urlserver

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
	"urlserver/urlserver/engine"
)

// TestLineCutAtEveryByte: an answer breaks off, one byte later for each spider. Only the complete
// line counts.
func TestLineCutAtEveryByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(cfg *configs.Config) { cfg.Spider.MaxAttempts = 1000 })
		defer b.stopped()
		b.index.offer("0 http://10.0.0.1/0", "1 http://10.0.0.1/1")
		for cut := 0; ; cut++ {
			s := b.spider()
			trans, id := s.line()
			answer := trans + " DONE 200 17\r\n"
			if id != "0" {
				t.Fatalf("document %s came after %q was cut at byte %d", id, answer, cut-1)
			}
			s.conn.Write([]byte(answer[:cut]))
			synctest.Wait()
			s.conn.Close()
			if cut == len(answer) {
				break
			}
		}
		synctest.Wait()
		if taken, _ := b.index.outcomes(time.Now()); !slices.Equal(taken, []string{"0 done"}) {
			t.Errorf("outcomes %v; want that of the whole line", taken)
		}
		if st, _ := b.d.Status(t.Context()); st.BadLines != 0 || st.Stale != 0 {
			t.Errorf("%d bad lines, %d stale; want none", st.BadLines, st.Stale)
		}
	})
}

// TestLineInTwoParts: spiders send WORKING in two parts, of every length, in time each. It is one
// line.
func TestLineInTwoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(cfg *configs.Config) { cfg.TimeoutSpiderStatus = 3 * second })
		defer b.stopped()
		b.index.offer("0 http://10.0.0.1/0")
		s := b.spider()
		trans, _ := s.line()
		line := trans + " WORKING\r\n"
		for cut := range line {
			s.conn.Write([]byte(line[:cut]))
			time.Sleep(second)
			s.conn.Write([]byte(line[cut:]))
			time.Sleep(second)
		}
		s.say("%s DONE", trans)
		synctest.Wait()
		if st, _ := b.d.Status(t.Context()); st.Sent != 1 || st.BadLines != 0 || st.Stale != 0 {
			t.Errorf("sent %d, %d bad lines, %d stale; want one sending and no more", st.Sent, st.BadLines, st.Stale)
		}
	})
}

func TestSpiderThatTalksNonsense(t *testing.T) {
	bad := func(n int) string { return strings.Repeat("nonsense\n", n) }
	for _, c := range []struct {
		name, says string
		ends       bool
		bad        uint64
	}{
		{name: "99 bad lines in a row", says: bad(99), bad: 99},
		{name: "100", says: bad(100), ends: true, bad: 100},
		{name: "with a good one between", says: bad(99) + "TRANS WORKING\n" + bad(99), bad: 198},
		{name: "with a COUNT between", says: bad(99) + "COUNT 1\n" + bad(99), bad: 198},
		{name: "100 after a PUT", says: "PUT 1 {}\n" + bad(100), ends: true, bad: 100},
		{name: "names that never were", says: strings.Repeat("9.9.9 DONE\n", 100), ends: true, bad: 100},
		{name: "a line of 8 KiB", says: strings.Repeat("x", protocol.MaxLine-1) + "\n", bad: 1},
		{name: "one byte more", says: strings.Repeat("x", protocol.MaxLine) + "\n", ends: true},
		{name: "without an end", says: strings.Repeat("x", protocol.MaxLine), ends: true},
		{name: "NUL and high bytes", says: "\x00\xff\n", bad: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, nil)
				defer b.stopped()
				b.index.offer("0 http://10.0.0.1/")
				s := b.spider()
				trans, _ := s.line()
				go s.conn.Write([]byte(strings.ReplaceAll(c.says, "TRANS", trans)))
				synctest.Wait()
				st, _ := b.d.Status(t.Context())
				if ended := len(st.Spiders) == 0; ended != c.ends || st.BadLines != c.bad {
					t.Errorf("connection ended: %v, %d bad lines; want %v, %d", ended, st.BadLines, c.ends, c.bad)
				}
				s.conn.Close()
			})
		})
	}
}

// TestStrangersAreCutAtOnce: a connection that begins with another protocol ends, with or without a
// line end. The rest is not read. It gets no document after that, and its
// documents count no attempt.
func TestStrangersAreCutAtOnce(t *testing.T) {
	for _, c := range []struct {
		name, says string
		late       bool // after it has received a document
	}{
		{name: "HTTP", says: "POST / HTTP/1.1\r\nHost: 127.0.0.1:4101\r\n\r\nTRANS DONE\n"},
		{name: "HTTP, late", says: "POST / HTTP/1.1\r\nHost: 127.0.0.1:4101\r\n\r\nTRANS DONE\n", late: true},
		{name: "a method that is a verb", says: "AUTH / HTTP/1.1\r\n\r\n", late: true},
		{name: "another", says: "SPIDER / HTTP/1.1\r\n\r\n", late: true},
		{name: "a method that looks like a TRANS_ID", says: "1.0.1 / HTTP/1.1\r\n\r\n", late: true},
		{name: "TLS", says: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{name: "an answer of HTTP", says: "HTTP/1.1 400 Bad Request\r\n", late: true},
		{name: "STUN", says: "\x00\x03\x00\x00\x21\x12\xa4\x42"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, func(cfg *configs.Config) { cfg.Spider.MaxAttempts = 1 })
				defer b.stopped()
				b.index.offer("0 http://10.0.0.1/")
				s := b.spider()
				trans := "0.0.0"
				if c.late {
					trans, _ = s.line()
				}
				began := time.Now()
				go s.conn.Write([]byte(strings.ReplaceAll(c.says, "TRANS", trans)))
				if rest := s.closed(); rest != "" || time.Since(began) != 0 {
					t.Errorf("was sent %q and closed after %v; want nothing, at once", rest, time.Since(began))
				}
				honest := b.spider()
				trans, _ = honest.line()
				honest.say("%s DONE 200", trans)
				synctest.Wait()
				if taken, _ := b.index.outcomes(began); !slices.Equal(taken, []string{"0 done"}) {
					t.Errorf("outcomes: %v; want that of the honest spider", taken)
				}
				if st, _ := b.d.Status(t.Context()); st.BadLines != 1 || b.log.count("spider refused") != 1 {
					t.Errorf("%d bad lines, %d refusals logged; want one of each", st.BadLines,
						b.log.count("spider refused"))
				}
			})
		})
	}
}

func TestBadLinesAreLoggedButNotAll(t *testing.T) {
	for name, line := range map[string]string{"nonsense": "nonsense", "foreign": "0.0.1 DONE"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, nil)
				defer b.stopped()
				b.index.offer("0 http://10.0.0.1/")
				s := b.spider()
				trans, _ := s.line()
				s.say("%s WORKING", trans)
				for range 60 {
					s.say("%s", line)
					synctest.Wait() // so that it is a batch of its own
				}
				if n := b.log.count("bad line from spider ignored"); n != logsPerSecond {
					t.Errorf("%d of 60 bad lines of one second are logged; want %d", n, logsPerSecond)
				}
				time.Sleep(second)
				s.say("%s", line)
				synctest.Wait()
				if b.log.count(fmt.Sprintf(`"not_shown":%d`, 60-logsPerSecond)) != 1 {
					t.Errorf("how many were not logged is not told in %s", b.log.text.String())
				}
			})
		})
	}
}

// TestSpiderThatDoesNotRead delays no other spider: its documents are bounded and time out, and its
// connection ends.
func TestSpiderThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 30 * second
		b := newBubble(t, func(cfg *configs.Config) {
			cfg.TimeoutSpiderStatus, cfg.Spider.MaxInFlight, cfg.Spider.MaxAttempts = timeout, 5, 10
		})
		defer b.stopped()
		stuck := b.spider()
		b.index.offer(onHosts(20)...)
		began := time.Now()
		time.Sleep(2*second - 100*time.Millisecond)
		s := b.spider() // no document yet: it may announce a spiderid first
		for range 15 {
			trans, _ := s.line()
			s.say("%s DONE", trans)
		}
		if waited := time.Since(began); waited != 2*second {
			t.Errorf("the others took %v; want no time", waited-2*second)
		}
		for range 5 { // those that the stuck spider had
			trans, _ := s.line()
			s.say("%s DONE", trans)
		}
		// its lines may have been delivered until its connection ended
		if waited := time.Since(began); waited != second+timeout+second {
			t.Errorf("what the stuck spider had came after %v; want after %v", waited, second+timeout+second)
		}
		time.Sleep(time.Millisecond) // its writer ends at this very moment, or is about to
		if _, err := io.ReadAll(stuck.conn); err != nil {
			t.Errorf("the stuck spider's connection: %v; want it closed", err)
		}
		synctest.Wait()
		if taken, _ := b.index.outcomes(began); len(taken) != 20 {
			t.Errorf("%d outcomes; want 20", len(taken))
		}
		if b.log.count("hanging up") == 0 {
			t.Error("it is not logged that the connection is ended")
		}
	})
}

// TestLinesAreNotLate: a spider reads now and then. Nothing more is sent while a line waits for it.
// A line that has waited for the status timeout goes to another spider, and does not reach this one
// afterwards.
func TestLinesAreNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(cfg *configs.Config) {
			cfg.TimeoutSpiderStatus, cfg.DocIndex.MaxRetry = 30*second, second
		})
		defer b.stopped()
		start := time.Now()
		at := func(since time.Duration) { time.Sleep(time.Until(start.Add(since))) }
		s := b.spider()
		b.index.offer("0 http://10.0.0.1/") // is sent at 1 s, and is not read
		at(20 * second)
		b.index.offer("1 http://10.0.0.2/", "2 http://10.0.0.3/")
		at(30*second - 1)
		if st, _ := b.d.Status(t.Context()); st.Sent != 1 {
			t.Errorf("%d documents were sent while the first one's line waits; want 1", st.Sent)
		}
		at(30 * second)
		trans, id := s.line()
		if id != "0" {
			t.Errorf("document %s; want 0", id)
		}
		s.say("%s WORKING", trans)
		at(60*second - 1)
		if st, _ := b.d.Status(t.Context()); len(st.Spiders) != 1 || st.Spiders[0].InFlight != 3 {
			t.Errorf("%+v; want one spider with three documents", st.Spiders)
		}
		at(62 * second)
		s.conn.SetReadDeadline(time.Now().Add(time.Minute))
		if rest := s.closed(); rest != "" || b.log.count("hanging up") == 0 {
			t.Errorf("%q reached the spider after its time", rest)
		}
	})
}

// TestGapCountsFromTheWireWhateverTheOwnerIsAt: an event that the run loop sees late, after other
// work, does not count from the beginning of that work.
func TestGapCountsFromTheWireWhateverTheOwnerIsAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		defer b.stopped()
		b.index.offer("0 http://10.0.0.1/0", "1 http://10.0.0.1/1")
		s := b.spider()
		time.Sleep(2 * second) // the first line is due after one second, and waits to be read
		b.d.post(func(*engine.Engine) { time.Sleep(3 * second / 2) })
		time.Sleep(second)
		trans, _ := s.line()
		left := time.Now()
		s.say("%s DONE", trans)
		time.Sleep(second * 6 / 10)
		b.d.post(func(*engine.Engine) {}) // the run loop reads its clock
		s.line()
		if gap := time.Since(left); gap < second {
			t.Errorf("the second line came %v after the first had left; want 1s at least", gap)
		}
	})
}

// TestSpiderThatDies has documents in flight. Another spider gets them at the pace.
func TestSpiderThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		defer b.stopped()
		b.index.offer("0 http://10.0.0.1/0", "1 http://10.0.0.1/1")
		s := b.spider()
		first, _ := s.line()
		began := time.Now()
		s.conn.Close()
		time.Sleep(second / 2)
		other := b.spider()
		again, id := other.line()
		if waited := time.Since(began); id != "0" || waited != second || again == first {
			t.Errorf("document %s as %s came after %v; want 0, not as %s, after a second", id, again, waited, first)
		}
		other.say("%s DONE", first)
		other.say("%s DONE", again)
		synctest.Wait()
		if st, _ := b.d.Status(t.Context()); st.Stale != 1 || st.Lost != 1 || st.Retried != 1 {
			t.Errorf("stale %d, lost %d, retried %d; want one of each", st.Stale, st.Lost, st.Retried)
		}
	})
}
