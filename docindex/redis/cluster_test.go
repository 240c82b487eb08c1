package redis

import (
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite over Redis Cluster takes a minute; one Redis does in a short run")
	}
	nodes, addrs := redistest.StartCluster(t)
	redistest.SetNodeTimeout(t, nodes, time.Minute) // so that a busy machine makes none fail over
	f := newFerry()
	defer close(f.jobs)
	indextest.Run(t, func(t *testing.T) docindex.Store { return f.open(t, addrs...) })
	indextest.RunCrawls(t, 10, func(t *testing.T) docindex.Store { return audit(t, f.open(t, addrs...)) })
	t.Run("slot moves", func(t *testing.T) { testSlotMoves(t, nodes, addrs) })
	t.Run("fail-over", func(t *testing.T) { testFailOver(t, nodes, addrs) })
}

// testSlotMoves moves the slot of a shard to another node, which has only some of its keys for a while: then
// nothing is put. Afterwards all is as before.
func testSlotMoves(t *testing.T, nodes []*redistest.Server, addrs []string) {
	s := openStore(t, nil, addrs...)
	add := func() (res docindex.PutResult, err error) {
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte("http://a.test/")}); err != nil {
			t.Fatal(err)
		}
		return s.Put(t.Context(), &p)
	}
	if res, err := add(); err != nil || res.New != 1 {
		t.Fatalf("Put: %+v, %v; want a new document", res, err)
	}
	base := s.bases[shardOf("a.test")]
	keys := redistest.Owner(t, nodes, base).CLI("KEYS", base+"*")
	move, finish := redistest.MoveSlot(t, nodes, base)
	for key := range strings.FieldsSeq(keys) {
		move(key)
		if res, err := add(); err == nil {
			t.Errorf("Put while %s and others move: %+v; want an error of the cluster", key, res)
		}
	}
	finish()
	if res, err := add(); err != nil || res.Known != 1 {
		t.Errorf("Put after the move: %+v, %v; want a known document", res, err)
	}
}

// testFailOver kills a master in the midst of taking: what had reached its replica is handed out
// all the same.
func testFailOver(t *testing.T, nodes []*redistest.Server, addrs []string) {
	const urls = 300
	s := openStore(t, nil, addrs...)
	put(t, s, urls)
	masters := 0
	for _, n := range nodes {
		if strings.HasPrefix(n.CLI("ROLE"), "master") {
			masters++
			eventually(t, "the replica's copy", func() bool { return isCopied(n.CLI("INFO", "replication")) })
			if keys := strings.TrimSpace(n.CLI("DBSIZE")); keys == "0" {
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
	redistest.SetNodeTimeout(t, nodes, 5*time.Second)
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

// eventually waits for what others do in their time.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not there after five minutes", what)
		}
	}
}
