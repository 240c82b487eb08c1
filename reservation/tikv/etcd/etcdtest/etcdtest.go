// Package etcdtest runs etcd clusters of a test's own, on loopback.
package etcdtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"urlserver/internal/testkit/certstest"
	"urlserver/internal/testkit/ports"
)

const (
	patience = 5 * time.Minute  // for what takes a second on an idle machine
	lookTime = 10 * time.Second // for a node to tell how it is
)

// Cluster is an etcd cluster of a test's own.
type Cluster struct {
	t      testing.TB
	scheme string
	tls    *tls.Config // of a client
	args   []string
	nodes  []*node
}

type node struct {
	name, dir    string
	client, peer string // "host:port"
	cmd          *exec.Cmd
	ended        chan struct{} // closed when cmd has
}

// Need skips the test, in sight, where there is no etcd.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("etcd is not installed (Debian: etcd-server): nothing of reservation/tikv/etcd is tested with it")
	}
}

// Start runs a cluster of so many nodes on free ports of loopback, until the test ends.
func Start(t testing.TB, size int) *Cluster {
	t.Helper()
	return start(t, size, Cluster{t: t, scheme: "http://"})
}

// StartTLS runs a node that has a certificate, and takes no client but with that one.
func StartTLS(t testing.TB, own certstest.Certificate) *Cluster {
	t.Helper()
	return start(t, 1, Cluster{t: t, scheme: "https://", tls: own.Trusted(own), args: []string{
		"--cert-file", own.Cert, "--key-file", own.Key, "--trusted-ca-file", own.Cert, "--client-cert-auth",
	}})
}

func start(t testing.TB, size int, empty Cluster) *Cluster {
	t.Helper()
	Need(t)
	for range 20 { // another may take a free port first
		c := new(empty)
		for i := range size {
			port := ports.Free(t, 2)
			c.nodes = append(c.nodes, &node{name: fmt.Sprintf("n%d", i), dir: t.TempDir(),
				client: addr(port), peer: addr(port + 1)})
		}
		for i := range c.nodes {
			c.Restart(i)
		}
		if c.serves() {
			t.Cleanup(c.end)
			return c
		}
		c.end()
	}
	t.Fatal("no etcd cluster came up on any of 20 sets of free ports")
	return nil
}

func addr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Addrs are where the nodes serve clients.
func (c *Cluster) Addrs() (list []string) {
	for _, n := range c.nodes {
		list = append(list, n.client)
	}
	return list
}

// Restart runs a node that is not running, with its data.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	peers := []string{}
	for _, n := range c.nodes {
		peers = append(peers, n.name+"=http://"+n.peer)
	}
	n := c.nodes[i]
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	n.cmd = exec.Command("etcd", append([]string{
		"--name", n.name, "--data-dir", filepath.Join(n.dir, "data"), "--log-outputs", "stderr", "--logger",
		"zap", "--log-level", "warn",
		"--listen-client-urls", c.scheme + n.client, "--advertise-client-urls", c.scheme + n.client,
		"--listen-peer-urls", "http://" + n.peer, "--initial-advertise-peer-urls", "http://" + n.peer,
		"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-token", c.nodes[0].peer,
	}, c.args...)...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	n.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		cmd.Wait()
		close(ended)
	}(n.cmd, n.ended)
}

// Kill ends a node as a crash would.
func (c *Cluster) Kill(i int) {
	n := c.nodes[i]
	n.cmd.Process.Kill()
	<-n.ended
}

func (c *Cluster) end() {
	for i := range c.nodes {
		c.Kill(i)
	}
}

// serves waits until each node answers, and tells if all do: false if one ended.
func (c *Cluster) serves() bool {
	c.t.Helper()
	for i, n := range c.nodes {
		if !c.answers(i) {
			return false
		}
		select {
		case <-n.ended: // it was another's answer
			return false
		default:
		}
	}
	return true
}

func (c *Cluster) answers(i int) bool {
	c.t.Helper()
	n := c.nodes[i]
	client := c.Client(i)
	defer client.Close()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(context.Background(), lookTime)
		status, err := client.Status(ctx, n.client)
		cancel()
		if err == nil && status.Leader != 0 {
			return true
		}
		select {
		case <-n.ended:
			return false
		case <-time.After(10 * time.Millisecond): // between two looks, not for luck
		}
	}
	text, _ := os.ReadFile(filepath.Join(n.dir, "log"))
	c.t.Fatalf("etcd %s does not answer: %.2000s", n.name, text)
	return false
}

// Client is etcd's own client of a node, to be closed.
func (c *Cluster) Client(i int) *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.scheme + c.nodes[i].client},
		TLS: c.tls, Logger: zap.NewNop()})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// Leader waits until a running node leads, and returns its number.
func (c *Cluster) Leader() int {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for i, n := range c.nodes {
			select {
			case <-n.ended:
				continue
			default:
			}
			client := c.Client(i)
			ctx, cancel := context.WithTimeout(context.Background(), lookTime)
			status, err := client.Status(ctx, n.client)
			cancel()
			client.Close()
			if err == nil && status.Leader == status.Header.MemberId {
				return i
			}
		}
	}
	c.t.Fatal("no node leads")
	return 0
}
