package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func loadEnv(t *testing.T, text string, environ ...string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "my.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadEnv(file, environ)
}

// What the environment says goes before the file, the file before the default.
func TestEnvironment(t *testing.T) {
	c, err := loadEnv(t, "Queue_Len = 7\n[docindex]\nkind = \"redis\"\nbatch = 5\n",
		"URLSERVER_DOCINDEX_KIND=disk", "URLSERVER_REQ_HOST_PER_SEC=2", "URLSERVER_ROBOTS_TTL=2h",
		"URLSERVER_ROBOTS_ENABLED=false",
		"URLSERVER_SPIDER_DIAL=a.example:1, b.example:2", `URLSERVER_MONITOR_BROKERS=["c.example:3"]`,
		"URLSERVER_HTTP_TOKEN=123456",
		"URLSERVER_RESOLVER_ALLOW_NETWORKS=10.0.0.0/8,127.0.0.0/8", "URLSERVER_SPIDER_TOKEN=a=b\"c",
		"URLSERVER_AT=http://x", "URLSERVER_SERVICE_HOST=10.0.0.1", "PATH=/bin")
	if err != nil {
		t.Fatal(err)
	}
	if c.DocIndex.Kind != KindDisk || c.ReqHostPerSec != 2 || c.Robots.TTL != 2*time.Hour ||
		c.Robots.Enabled || c.HTTP.Token != "123456" ||
		c.Spider.Token != "a=b\"c" || !slices.Equal(c.Spider.Dial, []string{"a.example:1", "b.example:2"}) ||
		!slices.Equal(c.Monitor.Brokers, []string{"c.example:3"}) || len(c.Resolver.AllowNetworks) != 2 {
		t.Errorf("the environment does not hold: %+v", c)
	}
	if c.QueueLen != 7 || c.DocIndex.Batch != 5 {
		t.Errorf("the file does not hold: %+v", c)
	}
	for _, one := range c.Shown() {
		if want := one.Name == "docindex.kind"; want && !one.Environ {
			t.Errorf("%s is not told to be from the environment", one.Name)
		}
		if one.Environ && (one.Name == "docindex.batch" || one.Name == "Queue_Len") {
			t.Errorf("%s is told to be from the environment", one.Name)
		}
	}
}

// Mistakes in the environment are told with those of the file, by the variable's name, and never
// with a token.
func TestEnvironmentMistakes(t *testing.T) {
	_, err := loadEnv(t, "Queue_Len = 0\n", "URLSERVER_QUEUE_COUNT=many", "URLSERVER_ROBOTS_TTL=48h",
		"URLSERVER_HTTP_TOKEN=sec ret", "URLSERVER_DOCINDEX_KIND=sqlite")
	if err == nil {
		t.Fatal("no mistakes")
	}
	for _, want := range []string{
		"my.toml:1: Queue_Len: 0 is too small", "URLSERVER_QUEUE_COUNT: is a string; allowed: a whole number",
		"URLSERVER_ROBOTS_TTL: 48h is too large", "URLSERVER_HTTP_TOKEN: ", "URLSERVER_DOCINDEX_KIND: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("mistakes:\n%v\nwant %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "sec ret") {
		t.Errorf("a token shows: %v", err)
	}
}

// A value of the environment mends one of the file that is out of range.
func TestEnvironmentReplacesMistake(t *testing.T) {
	c, err := loadEnv(t, "Queue_Len = 0\n", "URLSERVER_QUEUE_LEN=9")
	if err != nil || c.QueueLen != 9 {
		t.Errorf("Queue_Len %d, error %v", c.QueueLen, err)
	}
}

// No two settings share a variable.
func TestEnvironmentNames(t *testing.T) {
	seen := map[string]string{}
	for _, s := range settings() {
		if other, twice := seen[envName(s.name)]; twice {
			t.Errorf("%s and %s are both %s", other, s.name, envName(s.name))
		}
		seen[envName(s.name)] = s.name
	}
}
