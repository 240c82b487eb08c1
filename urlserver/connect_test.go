package urlserver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/httpclient"
	"urlserver/docindex/httpserver"
	"urlserver/docindex/memory"
)

// listen opens a spider's listening port.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func accept(t *testing.T, l net.Listener) *fake {
	t.Helper()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("the daemon does not dial: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return newFake(t, conn)
}

// TestDial: a listening spider disconnects with a document, and listens again.
func TestDial(t *testing.T) {
	l := listen(t)
	r := newRig(t, func(cfg *configs.Config) {
		cfg.SpiderHost, cfg.SpiderPort = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
		cfg.Spider.Token = "for those who dial in"
	})
	r.put("http://127.0.0.1/a")
	s := accept(t, l)
	first := s.next()
	s.conn.Close()
	s = accept(t, l)
	again := s.next()
	if first[1] != again[1] || first[0] == again[0] {
		t.Errorf("after the reconnect %q; before %q; want the same document under a new TRANS_ID", again, first)
	}
	s.say("%s DONE 200", again[0])
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// TestDialBacksOff: a spider closes each connection at once. The pauses double.
func TestDialBacksOff(t *testing.T) {
	l := listen(t)
	r := newRig(t, func(cfg *configs.Config) { cfg.Spider.Dial = []string{l.Addr().String()} })
	pause, before := minBackoff, time.Now()
	conn := accept(t, l).conn
	for ; pause < time.Second; pause *= 2 {
		hungUp := time.Now()
		conn.Close()
		conn = accept(t, l).conn
		if time.Since(before) > maxBackoff { // a slow daemon saw a connection that lasted
			pause = minBackoff
		}
		if waited := time.Since(hungUp); waited < pause {
			t.Errorf("dialed again after %v; want %v", waited, pause)
		}
		before = hungUp
	}
	conn.Close()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// TestReconfigureDials changes the list of spiders. The daemon connects to the new one, keeps the
// connection to the one that stays, and closes the other.
func TestReconfigureDials(t *testing.T) {
	stays, goes, comes := listen(t), listen(t), listen(t)
	r := newRig(t, func(cfg *configs.Config) {
		cfg.Spider.Dial = []string{stays.Addr().String(), goes.Addr().String()}
		cfg.Spider.MaxInFlight = 1
	})
	a, b := accept(t, stays), accept(t, goes)
	cfg := r.d.Settings()
	cfg.Spider.Dial = []string{comes.Addr().String(), stays.Addr().String()}
	cfg.QueueCount++
	applied, refused, err := r.d.Reconfigure(t.Context(), cfg)
	if !slices.Equal(applied, []string{"spider.dial"}) || !slices.Equal(refused, []string{"Queue_Count"}) ||
		err != nil {
		t.Errorf("Reconfigure = %q, %q, %v; want spider.dial applied and Queue_Count refused", applied, refused, err)
	}
	c := accept(t, comes)
	b.conn.SetReadDeadline(time.Now().Add(patience))
	if line, err := b.in.ReadString('\n'); line != "" || err == nil {
		t.Errorf("the spider that is dialed no longer reads %q, %v; want its connection closed", line, err)
	}
	want := []string{stays.Addr().String(), comes.Addr().String()}
	slices.Sort(want)
	r.await("just the dialed spiders are connected", func() bool {
		st, err := r.d.Status(t.Context())
		var have []string
		for _, s := range st.Spiders {
			have = append(have, s.Addr)
		}
		slices.Sort(have)
		return err == nil && slices.Equal(have, want)
	})
	r.put("http://127.0.0.1/a", "http://127.0.0.2/b")
	for _, s := range []*fake{a, c} {
		s.say("%s DONE", s.next()[0])
	}
	if got := r.d.Settings(); got.QueueCount != cfg.QueueCount-1 || len(got.Spider.Dial) != 2 {
		t.Errorf("settings now: Queue_Count %d, dial %q", got.QueueCount, got.Spider.Dial)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	goes.(*net.TCPListener).SetDeadline(time.Now())
	if conn, err := goes.Accept(); err == nil {
		conn.Close()
		t.Error("the spider that is dialed no longer was dialed again")
	}
}

// TestChangeWhileStopping changes the list of spiders until the dialers have stopped, and
// afterwards. No dialer is left.
func TestChangeWhileStopping(t *testing.T) {
	var running sync.WaitGroup
	d := &dialers{dial: func(ctx context.Context, _ string) {
		running.Add(1)
		defer running.Done()
		<-ctx.Done()
	}}
	d.change([]string{"too:1"}) // before the daemon starts
	if d.ends != nil {
		t.Error("change before start dials")
	}
	ctx, cancel := context.WithCancel(t.Context())
	d.start(ctx, []string{"a:1", "b:1"})
	var changes sync.WaitGroup
	for i := range 4 {
		changes.Go(func() {
			for range 100 {
				d.change([]string{[]string{"a:1", "b:1", "c:1", "d:1"}[i]})
			}
		})
	}
	cancel()
	d.stop()
	changes.Wait()
	d.change([]string{"late:1"})
	d.group.Wait()
	running.Wait()
	if d.ends["late:1"] != nil {
		t.Error("change after stop dials")
	}
}

// TestRemoteIndex: one daemon's store is the index of another daemon over HTTP, with a token, and
// is unreachable for a while.
func TestRemoteIndex(t *testing.T) {
	store := memory.New()
	handler, away := httpserver.Handler(store), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s without the token", r.URL)
		}
		select {
		case <-away:
			http.Error(w, "away", http.StatusServiceUnavailable)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	away <- struct{}{}
	client, err := httpclient.New(httpclient.Config{URL: server.URL + "/docindex", Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRigOver(t, listen(t), Parts{Index: client}, func(cfg *configs.Config) {
		cfg.DocIndex.Retry, cfg.DocIndex.MaxRetry = 5*time.Millisecond, 20*time.Millisecond
	})
	r.store = store
	r.put("http://127.0.0.1/a", "http://127.0.0.2/b", "http://127.0.0.1/c")
	s := r.spider()
	for range 3 {
		away <- struct{}{} // so that one request of each kind fails
		s.say("%s DONE 404", s.next()[0])
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if st := store.Stats(); st.Outcomes[docindex.Done] != 3 || st.Scheduled+st.InTransit != 0 {
		t.Errorf("the index has %+v; want three done", st)
	}
}

// broken is a listener that accepts nobody.
type broken struct{ *pipes }

func (b broken) Accept() (net.Conn, error) {
	select {
	case <-b.closed:
		return nil, net.ErrClosed
	default:
		return nil, syscall.EMFILE
	}
}

// TestAcceptFails: a daemon that cannot accept spiders says so once a second, and goes on.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var accepting sync.WaitGroup
		accepting.Go(func() { b.d.accept(ctx, broken{newPipes()}) })
		time.Sleep(time.Minute)
		cancel()
		accepting.Wait()
		if n := b.log.count("too many open files"); n > 61 || n < 60 {
			t.Errorf("logged %d times in a minute; want once a second", n)
		}
		b.stopped()
	})
}
