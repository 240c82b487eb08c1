package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Fake is a Redis Cluster of two nodes. Each node claims all slots. Both answer every script with
// Says.
type Fake struct {
	Addrs   []string
	Scripts atomic.Int64           // number of scripts received
	Says    atomic.Pointer[string] // an error, without "-"; nil: the slot is at the other node
}

// misleads is how often it redirects to the other node before it refuses. So a client that follows
// redirects for ever is found.
const misleads = 1000

// StartFake runs a Fake until the test ends.
func StartFake(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{}
	var nodes []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nodes, f.Addrs = append(nodes, l), append(f.Addrs, l.Addr().String())
	}
	var working sync.WaitGroup
	ctx, end := context.WithCancel(context.Background())
	for i, l := range nodes {
		working.Go(func() { f.accept(ctx, l, f.Addrs[1-i]) })
	}
	t.Cleanup(func() {
		end()
		for _, l := range nodes {
			l.Close()
		}
		working.Wait()
	})
	return f
}

func (f *Fake) accept(ctx context.Context, l net.Listener, other string) {
	var working sync.WaitGroup
	defer working.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		working.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			f.serve(conn, other)
		})
	}
}

func (f *Fake) serve(conn net.Conn, other string) {
	host, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	for in := bufio.NewReader(conn); ; {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		switch strings.ToUpper(command[0]) {
		case "HELLO":
			fmt.Fprint(conn, "%2\r\n+version\r\n+7.0.0\r\n+proto\r\n:3\r\n")
		case "CLUSTER":
			fmt.Fprintf(conn, "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n+%s\r\n:%s\r\n+node\r\n", host, port)
		case "GET":
			fmt.Fprint(conn, "+1\r\n")
		case "EVAL", "EVALSHA":
			switch n, says := f.Scripts.Add(1), f.Says.Load(); {
			case says != nil:
				fmt.Fprintf(conn, "-%s\r\n", *says)
			case n > misleads:
				fmt.Fprint(conn, "-ERR that is enough\r\n")
			default:
				fmt.Fprintf(conn, "-MOVED 1 %s\r\n", other)
			}
		default:
			fmt.Fprint(conn, "+OK\r\n")
		}
	}
}

// readCommand reads a command of a client: an array of bulk strings.
func readCommand(in *bufio.Reader) (words []string, err error) {
	n, err := readLength(in, '*')
	if err != nil || n < 1 {
		return nil, fmt.Errorf("no command of %d words: %w", n, err)
	}
	for range n {
		size, err := readLength(in, '$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	return words, nil
}

func readLength(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("line %q does not begin with %c", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
