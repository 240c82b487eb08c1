package urlserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
)

// TestSpiderHostMoves: the spider that Spider_Host names moves to another address. The daemon looks
// up the name at each attempt to connect.
func TestSpiderHostMoves(t *testing.T) {
	var addr atomic.Pointer[netip.Addr]
	useNames(t, func(name string) (netip.Addr, bool) { return *addr.Load(), name == "spider.example." })
	before := listen(t)
	port := before.Addr().(*net.TCPAddr).Port
	after, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(port)))
	if err != nil {
		t.Skipf("no second address on loopback: %v", err)
	}
	t.Cleanup(func() { after.Close() })
	first, second := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")

	addr.Store(&first)
	r := newRig(t, func(cfg *configs.Config) { cfg.SpiderHost, cfg.SpiderPort = "spider.example", port })
	r.put("http://127.0.0.1/a")
	s := accept(t, before)
	old := s.next()
	addr.Store(&second) // the process at the first address still listens
	s.conn.Close()
	s = accept(t, after)
	again := s.next()
	if old[1] != again[1] || old[0] == again[0] {
		t.Errorf("at its new address the spider gets %q; had %q; want the same document under a new "+
			"TRANS_ID", again, old)
	}
	s.say("%s DONE 200", again[0])
	addr.Store(&first)
	s.conn.Close()
	accept(t, before)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// TestSlowSpiderGetsNoBurst: several requests to a group may be open, and a spider reads nothing
// for longer than some gaps, while its socket is full. The lines that it reads afterwards are still
// a gap apart. It answers all of them in one write, the last one first.
func TestSlowSpiderGetsNoBurst(t *testing.T) {
	const fill, docs, open, gap = 100, 6, 3, time.Second
	l := listen(t)
	store := memory.New()
	r := newRigOver(t, narrow{l}, Parts{Index: store, Store: store}, func(cfg *configs.Config) {
		cfg.ReqHostPerSec, cfg.ReqHostConcurrent, cfg.DocIndex.Batch = 1/gap.Seconds(), open, 10*fill
	})
	var urls []string
	for i := range fill {
		urls = append(urls, fmt.Sprintf("http://127.0.1.%d/%s", i+1, strings.Repeat("x", 7000)))
	}
	for i := range docs {
		urls = append(urls, fmt.Sprintf("http://127.0.0.1/%d", i))
	}
	r.put(urls...)
	r.await("the slots hold all", func() bool {
		st, err := r.d.Status(t.Context())
		return err == nil && st.Slots.Held == fill+docs
	})
	s := r.spider() // all that is due is sent at once: a spider that does not read gets nothing more
	r.await("the spider has its first lines", func() bool {
		st, err := r.d.Status(t.Context())
		return err == nil && st.Sent > fill
	})
	time.Sleep(5 * gap / 2) // it is slow
	var waits []string
	var last time.Time
	seen := map[string]bool{}
	for got := 0; got < fill+docs; got++ {
		f := s.next()
		if seen[f[3]] {
			t.Fatalf("%.40s came twice", f[3])
		}
		seen[f[3]] = true
		if f[2] != "127.0.0.1" {
			s.say("%s DONE 200", f[0])
			continue
		}
		// The first line waits in the socket, which the daemon does not see. The clock may be late
		// by half a gap.
		if since := time.Since(last); since < gap/2 && got > fill+1 {
			t.Errorf("%s came %v after the one before it; want about %v", f[3], since, gap)
		}
		last = time.Now()
		if waits = append(waits, f[0]+" DONE 200"); len(waits) == open || got == fill+docs-1 {
			slices.Reverse(waits)
			s.say("%s", strings.Join(waits, "\n"))
			waits = nil
		}
	}
	r.await("all are done", func() bool { return store.Stats().Outcomes[docindex.Done] == fill+docs })
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// narrow is a listener whose connections have small receive buffers.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return conn, err
}

// useNames makes the system's resolver ask a name server that answers as addrOf does, with a long
// TTL.
func useNames(t *testing.T, addrOf func(name string) (netip.Addr, bool)) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.RecursionAvailable = true
		switch addr, ok := addrOf(q.Question[0].Name); {
		case !ok:
			m.Rcode = dns.RcodeNameError
		case q.Question[0].Qtype == dns.TypeA:
			m.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET,
					Ttl: 3600}, A: addr.AsSlice(),
			}}
		}
		w.WriteMsg(m)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	usual := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = usual
		conn.Close()
		<-ended
	})
}

// TestShorterQueues reduces Queue_Len below what the one slot holds, by a reload and then by a
// restart. Each document is sent once, in the order of the puts.
func TestShorterQueues(t *testing.T) {
	const urls = 40
	path := filepath.Join(t.TempDir(), "index")
	sent := 0
	fetch := func(s *fake, n int) {
		t.Helper()
		for range n {
			f := s.next()
			if want := fmt.Sprintf("http://127.0.0.1/%d", sent); f[3] != want {
				t.Fatalf("document %d is %s; want %s", sent, f[3], want)
			}
			sent++
			s.say("%s DONE 200", f[0])
		}
	}
	run := func(length int, work func(r *rig, s *fake)) {
		t.Helper()
		store, err := disk.Open(disk.Config{Path: path, Sync: disk.None})
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t)
		r := newRigOver(t, l, Parts{Index: store, Store: store}, func(cfg *configs.Config) { cfg.QueueLen = length })
		if length == 64 {
			for i := range urls {
				r.put(fmt.Sprintf("http://127.0.0.1/%d", i))
			}
		}
		work(r, r.spider())
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if got := store.Stats().Outcomes[docindex.Done]; got != sent {
			t.Errorf("%d outcomes of %d documents that were fetched", got, sent)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	run(64, func(r *rig, s *fake) {
		fetch(s, 5)
		cfg := r.d.Settings()
		cfg.QueueLen = 2
		if applied, refused, err := r.d.Reconfigure(t.Context(), cfg); len(applied) != 1 ||
			len(refused) != 0 || err != nil {
			t.Fatalf("Reconfigure: applied %v, refused %v, %v; want Queue_Len applied", applied, refused, err)
		}
		fetch(s, 10)
		last := s.next() // in flight when the daemon stops
		go func() { s.say("%s DONE 200", last[0]) }()
		sent++
	})
	run(1, func(_ *rig, s *fake) { fetch(s, urls-sent) })
}
