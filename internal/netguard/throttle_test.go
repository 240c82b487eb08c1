package netguard_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"urlserver/internal/netguard"
)

const (
	freeReads = 12
	readEvery = 500 * time.Millisecond
	maxRead   = 16 << 10
)

// read counts the bytes read from a listener's connections.
type read struct {
	net.Listener
	times, bytes atomic.Int64
}

func (r *read) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	return &readConn{conn, r}, err
}

type readConn struct {
	net.Conn
	by *read
}

func (c *readConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.times.Add(1)
	c.by.bytes.Add(int64(n))
	return n, err
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func TestStrangersAreReadLittleAndLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := netguard.ThrottleUnauthenticated(p)
		accepted := make(chan net.Conn, 1)
		go func() { conn, _ := l.Accept(); accepted <- conn }()
		peer := p.dial()
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
		p := newPipes()
		l := netguard.ThrottleUnauthenticated(p)
		go func() {
			conn := p.dial()
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

// TestCallsOfUnauthenticatedCostLittle: a client that keeps calling without the right token gets
// errors, and its data is not read. A client with the token is served at once.
func TestCallsOfUnauthenticatedCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := &read{Listener: p}
		options := netguard.GRPCServer{Token: "right", Setting: "a.token", MaxMessage: 64 << 20}.Options()
		server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(echo))...)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(netguard.LimitListener(l, true)) }()
		wrong, right := caller(t, p, "wrong"), caller(t, p, "right")
		const lasts = 20 * time.Second
		began := time.Now()
		if got := status.Code(call(wrong, 3<<20)); got != codes.Unauthenticated || time.Since(began) != 0 {
			t.Errorf("%v after %v; want Unauthenticated at once", got, time.Since(began))
		}
		for time.Since(began) < lasts {
			_ = call(wrong, 3<<20)
			time.Sleep(10 * time.Millisecond)
		}
		if n, most := l.bytes.Load(), int64((freeReads+lasts/readEvery+2)*maxRead); n > most {
			t.Errorf("%d bytes of a stranger were read in %v; want at most %d", n, lasts, most)
		}
		began = time.Now()
		if err := call(right, 32<<20); err != nil || time.Since(began) != 0 {
			t.Errorf("who has the token: %v after %v; want its answer at once", err, time.Since(began))
		}
		wrong.Close()
		right.Close()
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// echo receives all messages.
func echo(_ any, stream grpc.ServerStream) error {
	var m wrapperspb.BytesValue
	if err := stream.RecvMsg(&m); err != nil {
		return err
	}
	return stream.SendMsg(&wrapperspb.BytesValue{})
}

func caller(t *testing.T, p *pipes, token string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(netguard.Bearer(token)),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return p.dial(), nil }))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func call(conn *grpc.ClientConn, size int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return conn.Invoke(ctx, "/a.Service/Call", &wrapperspb.BytesValue{Value: make([]byte, size)},
		&wrapperspb.BytesValue{})
}

// TestRequestsOfUnauthenticatedCostLittle: one client sends its request byte by byte; another one
// with the token sends a long body.
func TestRequestsOfUnauthenticatedCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := &read{Listener: p}
		server := &http.Server{ConnContext: netguard.ConnContext, ReadHeaderTimeout: 10 * time.Second}
		server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if netguard.IsBearer(r.Header.Get("Authorization"), "right") {
				netguard.MarkCallerAuthenticated(r.Context())
			}
			io.Copy(io.Discard, r.Body)
		})
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(netguard.LimitListener(l, true)) }()
		slow := p.dial()
		go func() {
			for range 1000 {
				if _, err := io.WriteString(slow, "x"); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		lasts(slow)
		if n, most := l.times.Load(), int64(freeReads+10*time.Second/readEvery+2); n > most {
			t.Errorf("%d reads of a stranger in 10s; want at most %d", n, most)
		}
		began := time.Now()
		conn := p.dial()
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
