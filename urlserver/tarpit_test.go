package urlserver

import (
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/internal/netguard"
)

func newGuardedBubble(t *testing.T) *bubble {
	return newBubble(t, func(cfg *configs.Config) { cfg.Spider.Token = "secret" })
}

// spend makes as many refused connections as are closed at once.
func (b *bubble) spend() {
	b.t.Helper()
	began := time.Now()
	for range netguard.TarpitFree {
		if rest := b.spider("AUTH wrong").closed(); rest != "" || time.Since(began) != 0 {
			b.t.Errorf("one of few ended after %v, and was told %q; want at once, and nothing", time.Since(began), rest)
		}
	}
}

// TestRefusedConnectionsStay: a client with a wrong token connects again as soon as it is refused.
// A while later it is refused at once again.
func TestRefusedConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newGuardedBubble(t)
		defer b.stopped()
		for range 3 {
			b.spend()
			began := time.Now()
			if rest := b.spider("AUTH wrong").closed(); rest != "" || time.Since(began) != netguard.TarpitTime {
				t.Errorf("one of many ended after %v, and was told %q; want %v and nothing",
					time.Since(began), rest, netguard.TarpitTime)
			}
		}
	})
}

// TestRefusedConnectionsMakeRoom fills the listener with refused connections. A client with the
// token is accepted at once.
func TestRefusedConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newGuardedBubble(t)
		defer b.stopped()
		b.index.offer("0 http://10.0.0.1/")
		b.spend()
		began := time.Now()
		first := b.spider("AUTH wrong")
		synctest.Wait()
		for range maxSpiders - 1 {
			b.spider("AUTH wrong")
		}
		synctest.Wait()
		s := b.spider("AUTH secret")
		if rest := first.closed(); rest != "" || time.Since(began) != 0 || b.log.count("too many spiders") != 0 {
			t.Errorf("the first was closed after %v, and was told %q; want at once, and nothing",
				time.Since(began), rest)
		}
		synctest.Wait()
		if st, err := b.d.Status(t.Context()); len(st.Spiders) != 1 || err != nil {
			t.Errorf("%d spiders, %v; want one", len(st.Spiders), err)
		}
		s.line()
		s.conn.Close()
	})
}

// TestRefusedConnectionsEndWithTheDaemon: they end when the daemon ends, also one that the client
// has closed.
func TestRefusedConnectionsEndWithTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newGuardedBubble(t)
		b.spend()
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
