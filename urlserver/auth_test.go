package urlserver

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
)

func TestAuth(t *testing.T) {
	for _, c := range []struct {
		name, token, first string
		refused            bool
		bad                int // number of bad lines
	}{
		{name: "right", token: "secret", first: "AUTH secret"},
		{name: "right with CRLF", token: "secret", first: "AUTH secret\r"},
		{name: "wrong", token: "secret", first: "AUTH Secret", refused: true},
		{name: "a part", token: "secret", first: "AUTH secre", refused: true},
		{name: "more", token: "secret", first: "AUTH secret2", refused: true},
		{name: "empty", token: "secret", first: "AUTH ", refused: true},
		{name: "another line first", token: "secret", first: "0.0.0 DONE", refused: true},
		{name: "too long", token: "secret", first: "AUTH " + strings.Repeat("s", protocol.MaxLine), refused: true},
		{name: "not asked for", first: "AUTH anything"},
		{name: "twice", token: "secret", first: "AUTH secret\nAUTH secret\nAUTH secret", bad: 2},
		{name: "not asked for, twice", first: "AUTH a\nAUTH a\nAUTH a", bad: 2},
		{name: "not asked for, and late", first: "0.0.0 DONE\nAUTH a", bad: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, func(cfg *configs.Config) { cfg.Spider.Token = configs.Secret(c.token) })
				defer b.stopped()
				b.index.offer("0 http://10.0.0.1/")
				s := b.spider()
				go s.conn.Write([]byte(c.first + "\n"))
				if c.refused {
					rest := s.closed()
					synctest.Wait()
					if rest != "" || b.log.count("spider refused") != 1 {
						t.Errorf("was sent %q, %d refusals logged; want nothing and one", rest,
							b.log.count("spider refused"))
					}
					return
				}
				trans, _ := s.line()
				s.say("%s DONE", trans)
				synctest.Wait()
				if st, err := b.d.Status(t.Context()); st.BadLines != uint64(c.bad) ||
					len(st.Spiders) != 1 || err != nil {
					t.Errorf("status: %d bad lines, %d spiders, %v; want %d and 1", st.BadLines,
						len(st.Spiders), err, c.bad)
				}
			})
		})
	}
}

// TestSlowAuth: spiders send their first line slowly. They count as spiders only after it, and have
// ten seconds for it.
func TestSlowAuth(t *testing.T) {
	for _, c := range []struct {
		name    string
		after   time.Duration // between two bytes
		refused bool
	}{
		{name: "slow", after: 800 * time.Millisecond},
		{name: "too slow", after: 900 * time.Millisecond, refused: true},
		{name: "silent", after: time.Hour, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, func(cfg *configs.Config) { cfg.Spider.Token = "secret" })
				defer b.stopped()
				b.index.offer("0 http://10.0.0.1/")
				s := b.spider()
				began := time.Now()
				go func() {
					for _, c1 := range []byte("AUTH secret\n") {
						time.Sleep(c.after)
						s.conn.Write([]byte{c1})
					}
				}()
				if !c.refused {
					s.line()
					s.conn.Close()
					return
				}
				if rest := s.closed(); rest != "" || time.Since(began) != authTimeout {
					t.Errorf("closed after %v with %q sent; want %v and nothing", time.Since(began), rest, authTimeout)
				}
				s.conn.Close()
				time.Sleep(12 * time.Hour) // so that the writer runs
			})
		})
	}
}

func TestTooManySpidersAreTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, func(cfg *configs.Config) { cfg.Spider.Token = "secret" })
		defer b.stopped()
		all := make([]*pipeSpider, maxSpiders)
		for i := range all {
			all[i] = b.spider()
		}
		if rest := b.spider().closed(); rest != "" || b.log.count("too many spiders") != 1 {
			t.Errorf("one more spider is told %q, %d times logged; want its connection closed", rest,
				b.log.count("too many spiders"))
		}
		all[7].conn.Close() // makes room for another
		synctest.Wait()
		b.index.offer("0 http://10.0.0.1/")
		s := b.spider("AUTH secret")
		s.line()
		for _, s := range all {
			s.conn.Close()
		}
		s.conn.Close()
	})
}
