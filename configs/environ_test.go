package configs

import (
	"fmt"
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
	return LoadWith(file, Environ(environ))
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
		want, ok := map[string]Source{"docindex.kind": FromEnvironment, "Req_Host_Per_Sec": FromEnvironment,
			"docindex.batch": FromFile, "Queue_Len": FromFile, "Queue_Count": FromDefault,
			rulesKey: FromDefault}[one.Name]
		if ok && one.Source != want {
			t.Errorf("%s is from %v; want %v", one.Name, one.Source, want)
		}
	}
}

// What the command line says goes before the environment, and an error names the argument.
func TestFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my.toml")
	if err := os.WriteFile(file, []byte("Queue_Len = 7\n[[rules]]\nhosts = [\"a.example\"]\nper_sec = 1\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	environ := Environ([]string{"URLSERVER_QUEUE_LEN=8", "URLSERVER_DOCINDEX_BATCH=9"})
	c, err := LoadWith(file, append(environ, Override{"Queue_Len", "10", "-q", FromFlag}))
	if err != nil || c.QueueLen != 10 || c.DocIndex.Batch != 9 {
		t.Fatalf("Queue_Len %d, docindex.batch %d, error %v; want 10 and 9", c.QueueLen,
			c.DocIndex.Batch, err)
	}
	for _, one := range c.Shown() {
		want, ok := map[string]Source{"Queue_Len": FromFlag, "docindex.batch": FromEnvironment,
			rulesKey: FromFile}[one.Name]
		if ok && one.Source != want {
			t.Errorf("%s is from %v; want %v", one.Name, one.Source, want)
		}
	}
	for value, want := range map[string]string{"many": "-q: is a string; allowed:",
		"0": "-q: 0 is too small"} {
		_, err := LoadWith(file, append(environ, Override{"Queue_Len", value, "-q", FromFlag}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-q %s: %v; want %q", value, err, want)
		}
	}
}

// A running daemon that takes over new settings knows where each is from.
func TestSourcesApplied(t *testing.T) {
	before, err := loadEnv(t, "Queue_Len = 7\nQueue_Count = 5\n", "URLSERVER_DOCINDEX_BATCH=9")
	if err != nil {
		t.Fatal(err)
	}
	after, err := loadEnv(t, "spider.max_attempts = 3\n", "URLSERVER_DOCINDEX_BATCH=9")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range Apply(before, after).Shown() {
		want := map[string]Source{"Queue_Count": FromFile, "spider.max_attempts": FromFile,
			"docindex.batch": FromEnvironment}[one.Name]
		if one.Source != want {
			t.Errorf("%s is from %v; want %v", one.Name, one.Source, want)
		}
	}
}

// Variables that name no setting are found, with what they were meant to be.
func TestUnknownVariables(t *testing.T) {
	got := UnknownVariables([]string{"URLSERVER_DOCINDEX_KIN=disk", "URLSERVER_AT=x", "URLSERVER_RULES=[]",
		"URLSERVER_RULE=[]", "URLSERVER_QUEUE_LEN=7", "PATH=/bin", "URLSERVER_SERVICE_HOST=10.0.0.1"}, "URLSERVER_AT")
	want := []string{"URLSERVER_DOCINDEX_KIN; did you mean URLSERVER_DOCINDEX_KIND",
		"URLSERVER_RULE; did you mean URLSERVER_RULES",
		"URLSERVER_SERVICE_HOST"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
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

// Tables of the environment replace those of the file, and a mistake in them names the variable.
func TestEnvironmentTables(t *testing.T) {
	file := "[[rules]]\nhosts = [\"file.example\"]\nper_sec = 1\n[[crawls]]\nid = \"file\"\n"
	c, err := loadEnv(t, file,
		`URLSERVER_RULES=[{hosts = ["a.example"], per_sec = 0.5}, {hosts = ["b.example"], block = true}]`,
		`URLSERVER_CRAWLS=[{id = "news", domains = ["a.example"], max_depth = 3}]`,
		`URLSERVER_CANONICAL=[{hosts = ["*"], drop = ["utm_*"]}]`)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rules) != 2 || c.Rules[0].PerSec != 0.5 || !c.Rules[1].Block {
		t.Errorf("rules: %+v; want those of the environment alone", c.Rules)
	}
	if len(c.Crawls) != 1 || c.Crawls[0].ID != "news" || len(c.Canonical) != 1 {
		t.Errorf("crawls: %+v, canonical: %+v; want one each, of the environment", c.Crawls, c.Canonical)
	}
	for _, one := range c.Shown() {
		if isTables(one.Name) && one.Source != FromEnvironment {
			t.Errorf("%s is from %v; want the environment", one.Name, one.Source)
		}
	}
	for text, want := range map[string]string{
		`URLSERVER_RULES=[{hosts = ["a.example"], per_sec = -1}]`: "URLSERVER_RULES: rule 1",
		`URLSERVER_RULES=a.example`:                               "URLSERVER_RULES: ",
		`URLSERVER_CRAWLS=[{name = "news"}]`:                      "URLSERVER_CRAWLS: crawl 1",
	} {
		if _, err := loadEnv(t, "", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
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

// A list may be written with commas between, in TOML, or as nothing, which is an empty list.
func TestEnvironmentLists(t *testing.T) {
	const servers, ports = "URLSERVER_RESOLVER_SERVERS=", "URLSERVER_RESOLVER_ALLOW_PORTS="
	for variable, want := range map[string]string{
		servers + "127.0.0.1:53, [::1]:53": "[127.0.0.1:53 [::1]:53] [7]",
		servers + `["127.0.0.1:53"]`:       "[127.0.0.1:53] [7]",
		servers:                            "[] [7]",
		ports + "81,82":                    "[9.9.9.9:53] [81 82]",
		ports + "[81]":                     "[9.9.9.9:53] [81]",
		ports + "81":                       "[9.9.9.9:53] [81]",
		ports:                              "[9.9.9.9:53] []",
	} {
		c, err := loadEnv(t, "[resolver]\nservers = [\"9.9.9.9:53\"]\nallow_ports = [7]\n", variable)
		if got := fmt.Sprint(c.Resolver.Servers, c.Resolver.AllowPorts); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", variable, got, err, want)
		}
	}
	for _, variable := range []string{ports + "81,x", ports + "81]", servers + "a,b", "URLSERVER_DOCINDEX_KIND=",
		"URLSERVER_QUEUE_LEN="} {
		name, _, _ := strings.Cut(variable, "=")
		if _, err := loadEnv(t, "", variable); err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s: %v; want an error", variable, err)
		}
	}
}
