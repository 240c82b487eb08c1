// Package ports finds ports for servers of tests.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Below where systems take the ports of outgoing connections from, so that none takes that of a server which is down for
// a while.
const (
	lowest  = 20_000
	highest = 32_000
)

// Free finds so many free ports of loopback in a row, and returns the first. Another may take them.
func Free(t testing.TB, count int) int {
	t.Helper()
	for range 1000 {
		if first := lowest + rand.IntN(highest-lowest); free(first, count) {
			return first
		}
	}
	t.Fatalf("no %d free ports in a row", count)
	return 0
}

func free(first, count int) bool {
	for port := first; port < first+count; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
