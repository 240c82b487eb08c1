package netguard_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/internal/netguard"
	"urlserver/internal/testkit/netguardtest"
)

const (
	freeReads = 12
	readEvery = 500 * time.Millisecond
	maxRead   = 16 << 10
)

func TestStrangersAreReadLittleAndLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := netguardtest.NewPipes()
		l := netguard.ThrottleUnauthenticated(p)
		accepted := make(chan net.Conn, 1)
		go func() { conn, _ := l.Accept(); accepted <- conn }()
		peer := p.Dial()
		conn := <-accepted
		go peer.Write(make([]byte, 1<<20))
		began, buf := time.Now(), make([]byte, 1<<20)
		take := func(want int, at time.Duration) {
			t.Helper()
			if n, err := conn.Read(buf); n != want || err != nil || time.Since(began) != at {
				t.Errorf("%d bytes, %v after %v; want %d after %v", n, err, time.Since(began), want, at)
			}
		}
		for range freeReads {
			take(maxRead, 0)
		}
		take(maxRead, readEvery)
		take(maxRead, 2*readEvery)
		time.Sleep(3 * readEvery) // some free reads are available again
		at := 5 * readEvery
		take(maxRead, at)
		take(maxRead, at)
		take(maxRead, at)
		take(maxRead, at+readEvery)
		go func() {
			time.Sleep(readEvery / 2)
			netguard.MarkAuthenticated(conn.RemoteAddr())
		}()
		at += readEvery * 3 / 2
		take(maxRead, at) // it was waiting and may read now
		take(1<<20-(freeReads+7)*maxRead, at)
		peer.Close()
		if _, err := conn.Read(buf); err != io.EOF {
			t.Errorf("read after the end: %v", err)
		}
		conn.Close()
	})
}

func TestStrangersEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := netguardtest.NewPipes()
		l := netguard.ThrottleUnauthenticated(p)
		go func() {
			conn := p.Dial()
			io.Copy(conn, strings.NewReader(strings.Repeat("x", 1<<20)))
			conn.Close()
		}()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(readEvery/2, func() { conn.Close() })
		reads, buf := 0, make([]byte, 1)
		for ; err == nil; reads++ {
			_, err = conn.Read(buf)
		}
		if reads != freeReads+1 || time.Since(began) != readEvery/2 {
			t.Errorf("%d reads, %v after %v; want the free ones, and an error when it is closed", reads,
				err, time.Since(began))
		}
	})
}

// TestRequestsOfUnauthenticatedCostLittle: one client sends its request byte by byte; another one
// with the token sends a long body.
func TestRequestsOfUnauthenticatedCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := netguardtest.NewPipes()
		l := &netguardtest.Reads{Listener: p}
		server := &http.Server{ConnContext: netguard.ConnContext, ReadHeaderTimeout: 10 * time.Second}
		server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if netguard.IsBearer(r.Header.Get("Authorization"), "right") {
				netguard.MarkCallerAuthenticated(r.Context())
			}
			io.Copy(io.Discard, r.Body)
		})
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(netguard.LimitListener(l, true)) }()
		slow := p.Dial()
		go func() {
			for range 1000 {
				if _, err := io.WriteString(slow, "x"); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		_, _ = io.Copy(io.Discard, slow) // until it is cut; the error does not matter
		if n, most := l.Times.Load(), int64(freeReads+10*time.Second/readEvery+2); n > most {
			t.Errorf("%d reads of a stranger in 10s; want at most %d", n, most)
		}
		began := time.Now()
		conn := p.Dial()
		go io.WriteString(conn,
			"POST / HTTP/1.0\r\nAuthorization: Bearer right\r\nContent-Length: 4000000\r\n\r\n"+
				strings.Repeat("x", 4000000))
		if _, err := io.ReadAll(conn); err != nil || time.Since(began) > time.Second {
			t.Errorf("who has the token: %v after %v; want its answer at once", err, time.Since(began))
		}
		server.Close()
		if err := <-ended; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
}
