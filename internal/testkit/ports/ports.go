// Package ports finds free ports for servers of tests.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The range lies below the ports that systems use for outgoing connections, so that no such
// connection takes the port of a server that is down for a while.
const (
	lowest  = 12_000
	highest = 22_000 // the cluster bus of a Redis is 10,000 above
)

// Free finds count consecutive free ports of loopback and returns the first. No other test, in any
// process, gets these ports until this test ends, also while their servers are down: Free holds a
// listener on each port at another loopback address.
func Free(t testing.TB, count int) int {
	t.Helper()
	for range 1000 {
		first := lowest + rand.IntN(highest-lowest-count)
		if listeners, free := listen(first, count); free {
			t.Cleanup(func() { closeAll(listeners) })
			return first
		}
	}
	t.Fatalf("no %d free ports in a row", count)
	return 0
}

// listen opens listeners on count ports from first on; free is false if a port is not free.
func listen(first, count int) (listeners []net.Listener, free bool) {
	for port := first; port < first+count; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.99:%d", port))
		if err != nil {
			closeAll(listeners)
			return nil, false
		}
		listeners = append(listeners, l)
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			closeAll(listeners)
			return nil, false
		}
		l.Close()
	}
	return listeners, true
}

func closeAll(all []net.Listener) {
	for _, l := range all {
		l.Close()
	}
}
