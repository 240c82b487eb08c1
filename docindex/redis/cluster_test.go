package redis

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/storetest"
	"urlserver/reservation/redis/redistest"
)

// startCluster runs three masters with a replica each.
func startCluster(t *testing.T) (nodes []*redistest.Server) {
	t.Helper()
	redistest.Need(t)
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("redis-cli is not installed (Debian: redis-tools): Redis Cluster is not tested")
	}
	for range 6 {
		s := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--repl-diskless-sync-delay", "0")
		nodes = append(nodes, s)
	}
	args := append([]string{"--cluster", "create"}, addrsOf(nodes)...)
	if out, err := exec.CommandContext(t.Context(), "redis-cli", append(args, "--cluster-replicas", "1", "--cluster-yes")...).CombinedOutput(); err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, out)
	}
	for _, s := range nodes {
		eventually(t, "the cluster", func() bool {
			info := cli(s.Addr(), "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:6")
		})
	}
	return nodes
}

func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite over Redis Cluster takes a minute; one Redis does in a short run")
	}
	nodes := startCluster(t)
	addrs := addrsOf(nodes)
	f := newFerry()
	defer close(f.jobs)
	storetest.Run(t, func(t *testing.T) docindex.Store { return f.open(t, addrs...) })
	storetest.RunCrawls(t, func(t *testing.T) storetest.CrawlStore { return audit(t, f.open(t, addrs...)) })
	t.Run("fail-over", func(t *testing.T) { testFailOver(t, nodes) })
}

// testFailOver kills a master in the midst of taking: what had reached its replica is handed out all the same.
func testFailOver(t *testing.T, nodes []*redistest.Server) {
	const urls = 300
	s := openStore(t, nil, addrsOf(nodes)...)
	put(t, s, urls)
	masters := 0
	for _, n := range nodes {
		if strings.HasPrefix(cli(n.Addr(), "ROLE"), "master") {
			masters++
			eventually(t, "the replica's copy", func() bool { return isCopied(cli(n.Addr(), "INFO", "replication")) })
			if keys := strings.TrimSpace(cli(n.Addr(), "DBSIZE")); keys == "0" {
				t.Errorf("the master at %s has nothing", n.Addr())
			}
		}
	}
	if masters != 3 {
		t.Errorf("%d masters; want 3", masters)
	}
	seen := map[string]bool{}
	takeSome := func() error {
		var b docindex.Batch
		err := s.Candidates(t.Context(), 20, nil, &b)
		for i := range b.Len() {
			seen[string(b.At(i).URL)] = true
		}
		return err
	}
	if err := takeSome(); err != nil {
		t.Fatal(err)
	}
	nodes[0].Kill()
	eventually(t, "all URLs, after the fail-over,", func() bool { return takeSome() == nil && len(seen) == urls })
}

// isCopied says that a master's replica has all of it.
func isCopied(info string) bool {
	_, all, _ := strings.Cut(info, "master_repl_offset:")
	all, _, _ = strings.Cut(all, "\r")
	_, has, _ := strings.Cut(info, ",offset=")
	has, _, _ = strings.Cut(has, ",")
	return has != "" && has == all
}

func addrsOf(nodes []*redistest.Server) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// cli is what redis-cli says.
func cli(addr string, args ...string) string {
	out, _ := exec.Command("redis-cli", append([]string{"-u", "redis://" + addr}, args...)...).CombinedOutput()
	return string(out)
}

// eventually waits for what others do in their time.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not there after five minutes", what)
		}
	}
}
