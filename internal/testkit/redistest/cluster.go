package redistest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// StartCluster runs a Redis Cluster of three masters with a replica each until the test ends. It
// skips the test if that is not possible.
func StartCluster(t testing.TB, args ...string) (nodes []*Server, addrs []string) {
	t.Helper()
	Need(t)
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-cli is not installed (Debian: redis-tools): Redis Cluster is not tested")
	}
	args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "3000",
		"--repl-diskless-sync-delay", "0"}, args...)
	for range 6 {
		s := Start(t, args...)
		nodes, addrs = append(nodes, s), append(addrs, s.Addr())
	}
	create := append([]string{"--cluster", "create"}, addrs...)
	if out, err := exec.CommandContext(t.Context(), "redis-cli", append(create, "--cluster-replicas", "1",
		"--cluster-yes")...).CombinedOutput(); err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, out)
	}
	for _, s := range nodes {
		Eventually(t, "the cluster", func() bool {
			info := s.CLI("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, "cluster_known_nodes:6")
		})
	}
	return nodes, addrs
}

// SetNodeTimeout sets how long a node may be silent before the others take it for dead. The default
// is three seconds.
func SetNodeTimeout(t testing.TB, nodes []*Server, d time.Duration) {
	t.Helper()
	for _, s := range nodes {
		if out := strings.TrimSpace(s.CLI("CONFIG", "SET", "cluster-node-timeout",
			fmt.Sprint(d.Milliseconds()))); out != "OK" {
			t.Fatalf("CONFIG SET cluster-node-timeout: %s", out)
		}
	}
}

// CLI runs redis-cli and returns its output.
func (s *Server) CLI(args ...string) string {
	_, port, _ := strings.Cut(s.Addr(), ":")
	out, _ := exec.Command("redis-cli", append([]string{"-h", "127.0.0.1", "-p", port}, args...)...).CombinedOutput()
	return string(out)
}

// Owner returns the master of a key's slot. It waits until there is one.
func Owner(t testing.TB, nodes []*Server, key string) (master *Server) {
	t.Helper()
	Eventually(t, "a master of the keys", func() bool {
		for _, s := range nodes {
			if out := strings.TrimSpace(s.CLI("EXISTS", key)); (out == "0" || out == "1") &&
				strings.HasPrefix(s.CLI("ROLE"), "master") {
				master = s
				return true
			}
		}
		return false
	})
	return master
}

// MoveSlot begins to move a slot, which is that of a key, to another master. move moves one key of it, or none if
// there is no such key; finish moves the others, and then the slot.
func MoveSlot(t testing.TB, nodes []*Server, of string) (move func(key string), finish func()) {
	t.Helper()
	cli := func(at *Server, args ...string) string {
		t.Helper()
		out := strings.TrimSpace(at.CLI(args...))
		if strings.Contains(out, "ERR") || strings.Contains(out, "BUSYKEY") {
			t.Fatalf("redis-cli %v: %s", args, out)
		}
		return out
	}
	from, to := Owner(t, nodes, of), (*Server)(nil)
	for i := 0; to == nil; i++ {
		if other := Owner(t, nodes, fmt.Sprintf("{%d}", i)); other != from {
			to = other
		}
	}
	slot := cli(from, "CLUSTER", "KEYSLOT", of)
	source, target := cli(from, "CLUSTER", "MYID"), cli(to, "CLUSTER", "MYID")
	cli(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	cli(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	host, port, _ := strings.Cut(to.Addr(), ":")
	move = func(key string) {
		t.Helper()
		cli(from, "MIGRATE", host, port, key, "0", "5000")
	}
	return move, func() {
		t.Helper()
		for key := range strings.FieldsSeq(cli(from, "CLUSTER", "GETKEYSINSLOT", slot, "100000")) {
			move(key)
		}
		cli(to, "CLUSTER", "SETSLOT", slot, "NODE", target)
		cli(from, "CLUSTER", "SETSLOT", slot, "NODE", target)
	}
}

// Eventually calls until repeatedly until it returns true. It fails the test after a while.
func Eventually(t testing.TB, what string, until func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		if until() {
			return
		}
		time.Sleep(20 * time.Millisecond) // a pause between two calls
	}
	t.Fatalf("%s did not come", what)
}
