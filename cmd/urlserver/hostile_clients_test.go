package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	reservepb "urlserver/api/reservation"
	pb "urlserver/api/urlfrontier"
)

// hostile is a kind of hostile client. act goes on until the connection ends.
type hostile struct {
	name    string
	lasting bool // the listener may keep it for longer than this test takes
	act     func(conn net.Conn, rng *rand.Rand) error
	came    atomic.Int64 // connections made
	cut     atomic.Int64 // connections that the daemon has closed
}

// greeting is the beginning of an HTTP/2 connection: the preface, and empty SETTINGS.
const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// says writes text at once, and then reads until the connection ends.
func says(text string) func(net.Conn, *rand.Rand) error {
	return func(conn net.Conn, _ *rand.Rand) error {
		if _, err := io.WriteString(conn, text); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, conn)
		return err
	}
}

// slowly writes the text, and then a byte of it now and then.
func slowly(text string) func(net.Conn, *rand.Rand) error {
	return func(conn net.Conn, _ *rand.Rand) error {
		for i := 0; ; i++ {
			if _, err := conn.Write([]byte{text[min(i, len(text)-1)]}); err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// endlessly writes text again and again, and reads nothing.
func endlessly(first, text string) func(net.Conn, *rand.Rand) error {
	text = strings.Repeat(text, 1+1<<14/len(text))
	return func(conn net.Conn, _ *rand.Rand) error {
		_, err := io.WriteString(conn, first)
		for err == nil {
			_, err = io.WriteString(conn, text)
		}
		return err
	}
}

// noise writes the text, and then random bytes.
func noise(text string) func(net.Conn, *rand.Rand) error {
	return func(conn net.Conn, rng *rand.Rand) error {
		junk := make([]byte, 64+rng.IntN(1<<12))
		for i := range junk {
			junk[i] = byte(rng.Uint32())
		}
		return says(text+string(junk)+"\n")(conn, rng)
	}
}

// overTLS calls act after a TLS handshake.
func overTLS(conf *tls.Config, act func(net.Conn, *rand.Rand) error) func(net.Conn, *rand.Rand) error {
	return func(conn net.Conn, rng *rand.Rand) error { return act(tls.Client(conn, conf), rng) }
}

// lineless fails the test if an unauthenticated client receives anything.
func lineless(t *testing.T, text string) func(net.Conn, *rand.Rand) error {
	return func(conn net.Conn, _ *rand.Rand) error {
		if _, err := io.WriteString(conn, text); err != nil {
			return err
		}
		if got, err := bufio.NewReader(conn).ReadString('\n'); got != "" {
			t.Errorf("a stranger that said %.20q was sent %q, %v", text, got, err)
		}
		return io.EOF
	}
}

func hostileSpiders(t *testing.T, conf *tls.Config) []*hostile {
	return []*hostile{
		{name: "silent", act: says("")},
		{name: "silent after the handshake", act: overTLS(conf, lineless(t, ""))},
		{name: "slow", act: overTLS(conf, slowly("AUTH abc"))},
		{name: "oversized", act: overTLS(conf, endlessly("AUTH ", "x"))},
		{name: "malformed", act: noise("")},
		{name: "malformed after the handshake", act: overTLS(conf, noise("1.1.1 DONE\n"))},
		{name: "wrong token", act: overTLS(conf, lineless(t, "AUTH wrong\n1.1.1 DONE 200\n"))},
	}
}

// hostileBrowsers request pages that need a token, and post without one.
func hostileBrowsers(guarded, post string) []*hostile {
	get := "GET " + guarded + " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	return []*hostile{
		{name: "silent", act: says("")},
		{name: "slow", act: slowly(get + "X: y")},
		{name: "oversized", act: endlessly(get, "X: "+strings.Repeat("y", 1000)+"\r\n")},
		{name: "malformed", act: noise("")},
		{name: "malformed after a line", act: noise("POST " + post + " HTTP/1.1\r\n")},
		{name: "without token", act: says(get + "\r\n")},
		{name: "slow body", act: says("POST " + post +
			" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\nhttp://")},
		{name: "does not read", act: endlessly("", strings.Replace(get, guarded, "/healthz", 1)+"\r\n")},
	}
}

// hostileClients are clients of a gRPC service. call makes a call with a large message.
func hostileClients(t *testing.T, call func(context.Context, *grpc.ClientConn) error) []*hostile {
	return []*hostile{
		{name: "silent", act: says("")},
		{name: "slow", act: slowly(greeting)},
		{name: "malformed", act: noise("")},
		{name: "malformed after the greeting", act: noise(greeting)},
		{name: "oversized after the greeting", act: endlessly(greeting, "\xff\xff\xff\x00\x00\x00\x00\x00\x01")},
		{name: "idle after the greeting", lasting: true, act: says(greeting)},
		{name: "without token", lasting: true, act: func(conn net.Conn, _ *rand.Rand) error {
			return callWithoutToken(t, conn, call)
		}},
	}
}

// listQueues is a call of the URL Frontier API.
func listQueues(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := pb.NewURLFrontierClient(conn).ListQueues(ctx, &pb.Pagination{CrawlID: strings.Repeat("x", 3<<20)})
	return err
}

// setAlias is a call of the host reservation service.
func setAlias(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := reservepb.NewHostReservationClient(conn).SetAlias(ctx,
		&reservepb.Alias{Alias: strings.Repeat("x", 3<<20)})
	return err
}

// callWithoutToken makes calls with a wrong token over conn, one after the other.
func callWithoutToken(t *testing.T, conn net.Conn, call func(context.Context, *grpc.ClientConn) error) error {
	once := make(chan net.Conn, 1)
	once <- conn
	client, err := grpc.NewClient("passthrough:///service",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case conn := <-once:
				return conn, nil
			default:
				return nil, net.ErrClosed
			}
		}))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer wrong")
	for {
		err := call(ctx, client)
		if code := grpcstatus.Code(err); code == codes.Unavailable {
			return err
		} else if code != codes.Unauthenticated {
			t.Errorf("a call without token: %v", err)
			return err
		}
		time.Sleep(3 * time.Second)
	}
}

// attack runs n clients at a listener, of each kind in turn, until ctx ends. A client whose
// connection is closed connects again after a while.
func attack(ctx context.Context, addr string, kinds []*hostile, n int) (lifted func()) {
	ctx, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range n {
		kind := kinds[i%len(kinds)]
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					kind.came.Add(1)
					stop := context.AfterFunc(ctx, func() { conn.Close() })
					err = kind.act(conn, rng)
					if stop() && !errors.Is(err, os.ErrDeadlineExceeded) {
						kind.cut.Add(1)
					}
					conn.Close()
				}
				select {
				case <-time.After(5*time.Second + time.Duration(rng.IntN(5000))*time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	return func() { end(); all.Wait() }
}

// came returns the number of connections made.
func came(kinds []*hostile) (n int64) {
	for _, k := range kinds {
		n += k.came.Load()
	}
	return n
}

// mustCut returns the kinds whose connections must be closed, and are not.
func mustCut(target string, kinds []*hostile) (missing []string) {
	for _, k := range kinds {
		if k.cut.Load() == 0 && !k.lasting {
			missing = append(missing, fmt.Sprintf("%s: %s", target, k.name))
		}
	}
	return missing
}
