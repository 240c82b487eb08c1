package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
)

// TestRedis stores the reservation in one Redis. It crashes now and then, and its connections break
// and become slow.
func TestRedis(t *testing.T) {
	beside(t)
	redistest.Need(t)
	r := newRig(t)
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	for n := range daemonCount {
		r.proxies = append(r.proxies, startProxy(t, r.world.own(50+n)+":6379", redis.Addr(), nil, nil))
	}
	r.reservation = func(n int) string {
		return fmt.Sprintf("kind = \"redis\"\naddrs = [%q]", r.world.own(50+n)+":6379")
	}
	r.stores = []store{{
		what: "Redis killed", every: 3 * r.lease, away: r.lease / 4, fail: redis.Kill,
		mend: func() {
			if !redis.Restart() {
				t.Fatalf("redis-server does not start again: %s", redis.Tail())
			}
		},
	}}
	r.run()
	redistest.Eventually(t, "the end of all that is counted", func() bool {
		total, _ := strconv.Atoi(strings.TrimSpace(redis.CLI("GET", "chg_total{chg}")))
		known, err := strconv.Atoi(strings.TrimSpace(redis.CLI("HLEN", "chg_known{chg}")))
		return total == 0 && known == 0 && err == nil
	})
}

func wantsAll(t *testing.T) {
	t.Helper()
	if !*all {
		t.Skip("only with -all, as make chaos has it")
	}
}

// TestRedisCluster stores the reservation in a Redis Cluster that loses a master now and then. Its
// replica takes over.
func TestRedisCluster(t *testing.T) {
	wantsAll(t)
	r := newRig(t)
	nodes, addrs := redistest.StartCluster(t, "--appendonly", "yes", "--appendfsync", "always")
	list, err := json.Marshal(addrs) // is valid TOML, too
	if err != nil {
		t.Fatal(err)
	}
	r.reservation = func(int) string { return fmt.Sprintf("kind = \"redis\"\naddrs = %s", list) }
	var dead *redistest.Server
	r.stores = []store{{
		what: "masters killed", every: 6 * r.lease, away: 3 * r.lease,
		fail: func() {
			dead = redistest.Owner(t, nodes, "{chg}")
			dead.Kill()
		},
		mend: func() {
			if !dead.Restart() {
				t.Fatalf("redis-server does not start again: %s", dead.Tail())
			}
		},
	}}
	r.run()
}

// TestEtcd stores the reservation in three etcd behind two host reservation services. The leader
// crashes every 20 s.
func TestEtcd(t *testing.T) {
	wantsAll(t)
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("etcd is not installed (Debian: etcd-server): nothing goes wrong with it")
	}
	const module = "../../reservation/tikv"
	if _, err := os.Stat(module); err != nil {
		t.Skipf("%v: nothing goes wrong with etcd", err)
	}
	r := newRig(t)
	bin := t.TempDir() + "/"
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", module, "-o", bin,
		"./cmd/hostreservation").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	nodes, clients := r.startEtcd()
	var services []string
	for i := range 2 {
		addr := r.world.own(100+i) + ":7072"
		services = append(services, addr)
		s := &process{t: t, name: fmt.Sprintf("service%d", i),
			log: filepath.Join(r.dir, fmt.Sprintf("service%d.log", i))}
		s.args = func() []string {
			return []string{bin + "hostreservation", "serve", "--listen", addr, "--store", "etcd",
				"--addrs", clients,
				"--penalty", r.penalty.String(), "--janitor", r.janitor.String()}
		}
		r.others = append(r.others, s)
		r.again(4*r.lease, func() {
			r.note("services killed", s.name)
			s.kill()
			r.schedule.after(r.some(time.Second), s.start)
		})
	}
	r.reservation = func(n int) string {
		return fmt.Sprintf("kind = \"grpc\"\naddrs = [%q, %q]", services[n%2], services[1-n%2])
	}
	var dead *process
	r.stores = []store{{
		what: "leaders killed", every: min(20*time.Second, *during/3), away: r.lease,
		fail: func() {
			dead = leader(nodes)
			dead.kill()
		},
		mend: func() { dead.start() },
	}}
	r.run()
}

// startEtcd runs three nodes; clients is their addresses for clients.
func (r *rig) startEtcd() (nodes []*process, clients string) {
	cluster := ""
	for i := range 3 {
		host := r.world.own(110 + i)
		cluster += fmt.Sprintf(",n%d=http://%s:2380", i, host)
		clients += fmt.Sprintf(",%s:2379", host)
	}
	for i := range 3 {
		host, name := r.world.own(110+i), fmt.Sprintf("n%d", i)
		nodes = append(nodes, &process{t: r.t, name: host, log: filepath.Join(r.dir, name+".log"),
			args: func() []string {
				return []string{"etcd", "--name", name, "--data-dir", filepath.Join(r.dir, name),
					"--initial-cluster", cluster[1:],
					"--listen-client-urls", "http://" + host + ":2379", "--advertise-client-urls",
					"http://" + host + ":2379",
					"--listen-peer-urls", "http://" + host + ":2380", "--initial-advertise-peer-urls",
					"http://" + host + ":2380",
					"--unsafe-no-fsync", "--log-level", "warn"}
			}})
	}
	r.others = append(r.others, nodes...)
	return nodes, clients[1:]
}

// leader returns the node that says that it leads, or the first one.
func leader(nodes []*process) *process {
	for _, n := range nodes {
		resp, err := http.Post("http://"+n.name+":2379/v3/maintenance/status", "application/json",
			bytes.NewReader([]byte("{}")))
		if err != nil {
			continue
		}
		var status struct {
			Header struct {
				MemberID string `json:"member_id"`
			}
			Leader string
		}
		err = json.NewDecoder(resp.Body).Decode(&status)
		resp.Body.Close()
		if err == nil && status.Leader == status.Header.MemberID {
			return n
		}
	}
	return nodes[0]
}

// TestMutation runs daemons that share no reservation. The oracle must complain.
func TestMutation(t *testing.T) {
	r := newRig(t)
	r.reservation = func(int) string { return "kind = \"none\"" }
	r.launch()
	for over := time.Now().Add(3 * time.Minute); time.Now().Before(over); r.step() {
		if open, soon := r.oracle.seenFaults(); open > 0 && soon > 0 {
			return
		}
	}
	t.Error("the oracle sees nothing wrong with daemons that do not share their politeness")
}
