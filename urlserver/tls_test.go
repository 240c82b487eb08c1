package urlserver

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex/memory"
	"urlserver/internal/netguard"
	"urlserver/internal/testkit/certstest"
)

func TestTLS(t *testing.T) {
	own, client, stranger := certstest.New(t), certstest.New(t), certstest.New(t)
	for _, c := range []struct {
		name    string
		ca      string
		dial    *tls.Config // nil: no TLS
		refused bool
	}{
		{name: "TLS", dial: own.Trusted()},
		{name: "no TLS", refused: true},
		{name: "client certificate", ca: client.Cert, dial: own.Trusted(client)},
		{name: "no client certificate", ca: client.Cert, dial: own.Trusted(), refused: true},
		{name: "one that is not known", ca: client.Cert, dial: own.Trusted(stranger), refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, err := netguard.LoadServerTLS(netguard.ServerFiles{Setting: "spider.tls_",
				Cert: own.Cert, Private: own.Key, CA: c.ca})
			if err != nil {
				t.Fatal(err)
			}
			l, err := Listen("127.0.0.1:0", server.Config())
			if err != nil {
				t.Fatal(err)
			}
			store := memory.New()
			r := newRigOver(t, l, Parts{Index: store, Store: store}, nil)
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if c.dial != nil {
				conn = tls.Client(conn, c.dial)
			}
			s := newFake(t, conn)
			r.put("http://127.0.0.1/a")
			if c.refused {
				conn.SetDeadline(time.Now().Add(patience))
				conn.Write([]byte("0.0.0 WORKING\n")) // in plain text, or in the handshake
				if line, err := s.in.ReadString('\n'); err == nil && strings.Contains(line, "http") {
					t.Errorf("was sent %q", line)
				}
				if st, err := r.d.Status(t.Context()); st.Sent != 0 || err != nil {
					t.Errorf("%d documents were sent, %v; want none", st.Sent, err)
				}
			} else {
				s.say("%s DONE 200", s.next()[0])
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTLSHandshakeComesFirst: a client that connects and sends nothing is not a spider, gets no
// document, and is cut after ten seconds.
func TestTLSHandshakeComesFirst(t *testing.T) {
	own := certstest.New(t)
	files, err := netguard.LoadServerTLS(netguard.ServerFiles{Setting: "spider.tls_", Cert: own.Cert, Private: own.Key})
	if err != nil {
		t.Fatal(err)
	}
	conf := files.Config()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		defer b.stopped()
		b.index.offer("0 http://10.0.0.1/")
		silent, theirs := net.Pipe()
		b.pipes.conns <- tls.Server(theirs, conf)
		time.Sleep(authTimeout - time.Second)
		if st, err := b.d.Status(t.Context()); len(st.Spiders) != 0 || st.Sent != 0 || err != nil {
			t.Errorf("%d spiders, %d documents sent, %v; want none", len(st.Spiders), st.Sent, err)
		}
		began := time.Now()
		if (&pipeSpider{t: t, conn: silent, in: newFake(t, silent).in}).closed(); time.Since(began) != time.Second {
			t.Errorf("closed after %v; want %v", authTimeout-time.Second+time.Since(began), authTimeout)
		}
		ours, theirs := net.Pipe()
		b.pipes.conns <- tls.Server(theirs, conf)
		s := newFake(t, tls.Client(ours, own.Trusted()))
		if got := s.next(); got[1] != "0" {
			t.Errorf("line %q; want document 0", got)
		}
		go s.conn.Close()
		synctest.Wait()
		ours.Close()
	})
}

func TestListenError(t *testing.T) {
	if l, err := Listen("127.0.0.1:99999", nil); err == nil || !strings.Contains(err.Error(), "spider.listen") {
		t.Errorf("Listen = %v, %v; want an error with spider.listen", l, err)
	}
}
