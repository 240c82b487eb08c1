package urlserver

import (
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
)

func newGuardedBubble(t *testing.T) *bubble {
	return newBubble(t, func(cfg *configs.Config) { cfg.Spider.Token = "secret" })
}

// TestRefusedConnectionsStay has one whose token is wrong, and that tries again as soon as it is cut.
func TestRefusedConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newGuardedBubble(t)
		defer b.stopped()
		began := time.Now()
		for i := range 6 {
			if rest := b.spider("AUTH wrong").closed(); rest != "" || time.Since(began) != time.Duration(i+1)*refusalLasts {
				t.Errorf("try %d ended after %v, and was told %q; want %v and nothing", i, time.Since(began), rest, time.Duration(i+1)*refusalLasts)
			}
		}
	})
}

// TestRefusedConnectionsMakeRoom fills the listener with them: who has the token gets in at once.
func TestRefusedConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newGuardedBubble(t)
		defer b.stopped()
		b.index.offer("0 http://10.0.0.1/")
		began := time.Now()
		first := b.spider("AUTH wrong")
		synctest.Wait()
		for range maxSpiders - 1 {
			b.spider("AUTH wrong")
		}
		synctest.Wait()
		s := b.spider("AUTH secret")
		if rest := first.closed(); rest != "" || time.Since(began) != 0 || b.log.count("too many spiders") != 0 {
			t.Errorf("the first was closed after %v, and was told %q; want at once, and nothing", time.Since(began), rest)
		}
		synctest.Wait()
		if st, err := b.d.Status(t.Context()); len(st.Spiders) != 1 || err != nil {
			t.Errorf("%d spiders, %v; want one", len(st.Spiders), err)
		}
		s.line()
		s.conn.Close()
	})
}

// TestRefusedConnectionsEndWithTheDaemon, and so does one that has ended itself.
func TestRefusedConnectionsEndWithTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newGuardedBubble(t)
		refused := b.spider("AUTH wrong")
		b.spider("AUTH wrong").conn.Close()
		synctest.Wait()
		if took, err := b.stop(); took != 0 || err != nil {
			t.Errorf("stopped after %v, %v; want at once", took, err)
		}
		if rest := refused.closed(); rest != "" {
			t.Errorf("was told %q", rest)
		}
	})
}
