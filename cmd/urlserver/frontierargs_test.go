package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
)

// loadFrontier returns the settings that arguments of the service in Java stand for.
func loadFrontier(args []string, environ ...string) (configs.Config, []string, error) {
	f, err := parseFrontierArgs(args)
	if err != nil {
		return configs.Config{}, nil, err
	}
	overrides, ignored, err := f.overrides(configs.Environ(environ))
	if err != nil {
		return configs.Config{}, nil, err
	}
	cfg, err := configs.LoadWith("", overrides)
	return cfg, ignored, err
}

func TestFrontierArgs(t *testing.T) {
	file := write(t, "config",
		"# of the crawl\nimplementation = a.b.rocksdb.RocksDBService\nrocksdb.path = /from/file\n\n")
	for _, c := range []struct {
		args                     string
		environ                  []string
		listen, kind, path, host string
		ignored                  []string
	}{
		{args: "-h frontier -p 7073 -s 9100 rocksdb.path=/crawl", listen: ":7073", kind: "disk", path: "/crawl",
			host: "frontier"},
		{args: "rocksdb.path=/crawl", listen: ":7071", kind: "disk", path: "/crawl", host: "localhost"},
		{args: "--hostname=f --port=80 implementation=a.b.MemoryFrontierService", listen: ":80", kind: "memory",
			host: "f"},
		{args: "-p 7073", listen: ":7073", kind: "disk", host: "localhost"},
		{args: "-c " + file, listen: ":7071", kind: "disk", path: "/from/file", host: "localhost"},
		{args: "rocksdb.path=/crawl -c " + file + " write.thread.num=4 rocksdb.purge", listen: ":7071", kind: "disk",
			path: "/crawl", host: "localhost", ignored: []string{"rocksdb.purge", "write.thread.num"}},
		{args: "rocksdb.path=/crawl", environ: []string{"URLSERVER_FRONTIER_LISTEN=127.0.0.1:9"},
			listen: "127.0.0.1:9", kind: "disk", path: "/crawl", host: "localhost"},
	} {
		args := strings.Fields(c.args)
		if !isFrontierArgs(args) {
			t.Errorf("%s: not known as arguments of the service", c.args)
		}
		cfg, ignored, err := loadFrontier(args, c.environ...)
		f, _ := parseFrontierArgs(args)
		if err != nil || cfg.Frontier.Listen != c.listen || cfg.DocIndex.Kind != c.kind ||
			cfg.DocIndex.Path != cmp.Or(c.path, "urlserver.db") || f.host != c.host ||
			!slices.Equal(ignored, c.ignored) {
			t.Errorf("%s: %+v, %+v, host %s, ignored %q, error %v; want %+v", c.args, cfg.Frontier, cfg.DocIndex,
				f.host, ignored, err, c)
		}
	}
}

// Clients come from private networks, and listeners without a token are off, unless the environment
// says else.
func TestFrontierArgsDoors(t *testing.T) {
	args := []string{"rocksdb.path=/crawl"}
	cfg, _, err := loadFrontier(args)
	if err != nil || len(cfg.Frontier.AllowFrom) != 8 || cfg.HTTP.Listen != "" || cfg.Spider.Listen != "" {
		t.Errorf("%v, HTTP %q, spiders %q, error %v", cfg.Frontier.AllowFrom, cfg.HTTP.Listen, cfg.Spider.Listen, err)
	}
	cfg, _, err = loadFrontier(args, "URLSERVER_HTTP_TOKEN=0123456789abcdef",
		"URLSERVER_FRONTIER_ALLOW_FROM=0.0.0.0/0")
	if err != nil || len(cfg.Frontier.AllowFrom) != 1 || cfg.HTTP.Listen == "" {
		t.Errorf("%v, HTTP %q, error %v", cfg.Frontier.AllowFrom, cfg.HTTP.Listen, err)
	}
	cfg, _, err = loadFrontier(args, "URLSERVER_FRONTIER_TOKEN=0123456789abcdef")
	if err != nil || len(cfg.Frontier.AllowFrom) != 0 {
		t.Errorf("%v, error %v; want no networks beside a token", cfg.Frontier.AllowFrom, err)
	}
}

// What is no such command line stays ours, and mistakes name the argument.
func TestFrontierArgsRefused(t *testing.T) {
	for _, args := range []string{"", "-h", "--help", "serve a=b", "check", "--version"} {
		if isFrontierArgs(strings.Fields(args)) {
			t.Errorf("%q is taken for arguments of the service in Java", args)
		}
	}
	for args, want := range map[string]string{
		"-p x":                                 "-p: ",
		"-p 7071 -x 1":                         "-x is no option",
		"-p 7071 -s":                           "-s needs a value",
		"-c /nowhere/config":                   "-c: open /nowhere/config",
		"implementation=a.b.IgniteService":     "only those in memory and on RocksDB",
		"rocksdb.path=/c server.tls.cert=/pem": "URLSERVER_FRONTIER_TLS_CERT",
	} {
		got := command(t, "", strings.Fields(args)...)
		if got.code == 0 || !strings.Contains(got.errs, want) {
			t.Errorf("%s: exit status %d, %q; want %q", args, got.code, got.errs, want)
		}
	}
}

// The daemon works with the arguments of the service in Java: it logs the line that test containers
// wait for, lets a client without credentials in, tells the name it was given, and keeps URLs on
// disk.
func TestFrontierArgsServe(t *testing.T) {
	t.Setenv("URLSERVER_FRONTIER_LISTEN", "127.0.0.1:0")
	dir := filepath.Join(t.TempDir(), "rocksdb")
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	log := readLog(t, r)
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"-h", "frontier", "rocksdb.path=" + dir, "read.thread.num=3"},
			strings.NewReader(""), io.Discard, w)
		w.Close()
	}()
	if line := log.until("ignored"); line["arguments"] == nil {
		t.Errorf("the log names no ignored arguments: %v", line)
	}
	addr := log.until("Started URLFrontierServer")["address"].(string)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	nodes, err := pb.NewURLFrontierClient(conn).ListNodes(t.Context(), &pb.Empty{})
	if err != nil || len(nodes.Values) != 1 || !strings.HasPrefix(nodes.Values[0], "frontier:") {
		t.Errorf("nodes %v, %v; want frontier with its port", nodes, err)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("nothing is on disk: %v", err)
	}
}
