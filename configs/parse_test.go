package configs

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// mistakesOf is what Parse says of text, a line each.
func mistakesOf(t *testing.T, text string) []string {
	t.Helper()
	c, err := Parse("u.toml", []byte(text))
	if err == nil {
		return nil
	}
	if !reflect.DeepEqual(c, Config{}) {
		t.Errorf("Parse(%q) erred and gave a configuration too", text)
	}
	all, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("Parse(%q) = %T; want *Error", text, err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(all.Mistakes) {
		t.Errorf("Parse(%q): %d lines for %d mistakes", text, len(lines), len(all.Mistakes))
	}
	return lines
}

// goodSettings are settings, and what they change in those of Default.
var goodSettings = []struct {
	name string
	text string
	want func(c *Config)
}{
	{name: "nothing", text: "", want: func(*Config) {}},
	{name: "only comments", text: "# a\r\n\r\n  # b", want: func(*Config) {}},
	{name: "byte order mark", text: "\ufeffQueue_Len = 9", want: func(c *Config) { c.QueueLen = 9 }},
	{name: "the words as the founding text has them", text: "Spider_Host = " +
		"\"s.example\"\nSpider_Port = 1\nTimeout_Spider_Status = 7\nQueue_Count = 2\nQueue_Len = " +
		"3\nReq_Host_Concurrent = 3\nReq_Host_Per_Sec = 2.5\n",
		want: func(c *Config) {
			c.SpiderHost, c.SpiderPort, c.TimeoutSpiderStatus = "s.example", 1, 7*time.Second
			c.QueueCount, c.QueueLen, c.ReqHostConcurrent, c.ReqHostPerSec = 2, 3, 3, 2.5
		}},
	{name: "any case of keys and tables", text: "SPIDER_HOST = 'x'\n[SpIdEr]\nMAX_ATTEMPTS = 9\n",
		want: func(c *Config) { c.SpiderHost, c.Spider.MaxAttempts = "x", 9 }},
	{name: "whole numbers for fractions", text: "Req_Host_Per_Sec = 3\npoliteness.delay_factor = 2",
		want: func(c *Config) { c.ReqHostPerSec, c.Politeness.DelayFactor = 3, 2 }},
	{name: "once a day", text: "Req_Host_Per_Sec = 0.00001",
		want: func(c *Config) { c.ReqHostPerSec = 0.00001 }},
	{name: "other bases and separators", text: "Queue_Count = 0x1_00\nQueue_Len = 1_000",
		want: func(c *Config) { c.QueueCount, c.QueueLen = 256, 1000 }},
	{name: "dotted keys, twice in one table", text: "log.level = \"warn\"\nlog.format = \"json\"",
		want: func(c *Config) { c.Log = Log{Level: "warn", Format: "json"} }},
	{name: "quoted keys", text: "\"Queue_Len\" = 5\n[\"log\"]\n'level' = 'error'",
		want: func(c *Config) { c.QueueLen, c.Log.Level = 5, "error" }},
	{name: "inline table over lines",
		text: "http = { listen = \"\", # off\n token = \"}\",\n}\nQueue_Len = 5",
		want: func(c *Config) { c.HTTP, c.QueueLen = HTTP{Token: "}"}, 5 }},
	{name: "list over lines", text: "[spider]\ndial = [ # ]\n  \"a:1\",\n  '[::1]:2', ]\nmax_attempts = 1",
		want: func(c *Config) { c.Spider.Dial, c.Spider.MaxAttempts = []string{"a:1", "[::1]:2"}, 1 }},
	{name: "long strings",
		text: "docindex.path = '''\na'b'''\n[spider]\ntls_cert = \"\"\"c\\\"\"\"\"\"\"\ntls_key='k' # \"\"\"",
		want: func(c *Config) {
			c.DocIndex.Path, c.Spider.TLSCert, c.Spider.TLSKey = "a'b", `c"""`, "k"
		}},
	{name: "empty list is the default", text: "resolver.servers = [ ]", want: func(*Config) {}},
	{name: "networks", text: "[resolver]\nallow_networks = [\"127.0.0.0/8\", \"::1/128\"]\nservers " +
		"= [\"127.0.0.1:53\", \"[::1]:5353\"]",
		want: func(c *Config) {
			c.Resolver.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
				netip.MustParsePrefix("::1/128")}
			c.Resolver.Servers = []string{"127.0.0.1:53", "[::1]:5353"}
		}},
	{name: "index over HTTP", text: "[docindex]\nkind = \"http\"\nurl = \"https://[::1]:8443/base/\"",
		want: func(c *Config) { c.DocIndex.Kind, c.DocIndex.URL = KindHTTP, "https://[::1]:8443/base/" }},
	{name: "table in a table, inline",
		text: "[docindex]\nrefetch_after = { ok = \"168h\", gone = \"never\", error = \"1h\" }\nbatch = 7",
		want: func(c *Config) {
			c.DocIndex.RefetchAfter, c.DocIndex.Batch = RefetchAfter{OK: 168 * time.Hour, Error: time.Hour}, 7
		}},
	{name: "table in a table, by its header",
		text: "[DocIndex.Refetch_After]\nGone = \"720h\"\n[docindex]\nbatch = 7",
		want: func(c *Config) { c.DocIndex.RefetchAfter.Gone, c.DocIndex.Batch = 720*time.Hour, 7 }},
	{name: "table in a table, dotted and nested",
		text: "docindex = { refetch_after.ok = \"1s\", refetch_after.error = \"2s\" }",
		want: func(c *Config) { c.DocIndex.RefetchAfter = RefetchAfter{OK: time.Second, Error: 2 * time.Second} }},
	{name: "nothing is fetched again from an index over HTTP",
		text: "[docindex]\nkind = \"http\"\nurl = \"http://a/\"\nrefetch_after = { ok = \"never\" }",
		want: func(c *Config) { c.DocIndex.Kind, c.DocIndex.URL = KindHTTP, "http://a/" }},
	{name: "open listener with a token", text: "[http]\nlisten = \":80\"\ntoken = \"t\"",
		want: func(c *Config) { c.HTTP = HTTP{Listen: ":80", Token: "t"} }},
	{name: "open listener with TLS",
		text: "[spider]\nlisten = \"0.0.0.0:1\"\ntls_cert = \"c\"\ntls_key = \"k\"",
		want: func(c *Config) {
			c.Spider.Listen, c.Spider.TLSCert, c.Spider.TLSKey = "0.0.0.0:1", "c", "k"
		}},
	{name: "open listeners allowed", text: "allow_insecure = true\nhttp.listen = " +
		"\":1\"\nspider.listen = \"s.example:1\"\nfrontier.listen = \"[::]:1\"",
		want: func(c *Config) {
			c.AllowInsecure, c.HTTP.Listen, c.Spider.Listen, c.Frontier.Listen = true, ":1",
				"s.example:1", "[::]:1"
		}},
	{name: "every form of loopback", text: "http.listen = \"LocalHost:1\"\nspider.listen = " +
		"\"127.1.2.3:0\"\nfrontier.listen = \"[::ffff:127.0.0.1]:1\"",
		want: func(c *Config) {
			c.HTTP.Listen, c.Spider.Listen, c.Frontier.Listen = "LocalHost:1", "127.1.2.3:0",
				"[::ffff:127.0.0.1]:1"
		}},
}

func TestParseTakes(t *testing.T) {
	for _, tc := range goodSettings {
		t.Run(tc.name, func(t *testing.T) {
			want := Default()
			tc.want(&want)
			got, err := Parse("u.toml", []byte(tc.text))
			if err != nil {
				t.Fatalf("Parse(%q): %v", tc.text, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("Parse(%q) = %#v; want %#v", tc.text, got, want)
			}
		})
	}
}

// refused is a settings file and its mistakes.
type refused struct {
	name string
	text string
	want []string
}

func (r refused) check(t *testing.T) {
	if got := mistakesOf(t, r.text); !slices.Equal(got, r.want) {
		t.Errorf("Parse(%q):\n%s\nwant:\n%s", r.text, strings.Join(got, "\n"), strings.Join(r.want, "\n"))
	}
}

func TestParseRefusesValues(t *testing.T) {
	for _, tc := range []refused{
		{name: "out of range", text: "\nQueue_Count = 0\nQueue_Len = 1000001\n", want: []string{
			`u.toml:2: Queue_Count: 0 is too small; allowed: a whole number from 1 to 16777216`,
			`u.toml:3: Queue_Len: 1000001 is too large; allowed: a whole number from 1 to 1000000`}},
		{name: "documented spelling whatever was written", text: "QUEUE_COUNT = -1", want: []string{
			`u.toml:1: Queue_Count: -1 is too small; allowed: a whole number from 1 to 16777216`}},
		{name: "not finite", text: "Req_Host_Per_Sec = nan\npoliteness.delay_factor = -inf", want: []string{
			`u.toml:1: Req_Host_Per_Sec: NaN is not a finite number; allowed: a number from 0.000001 to 1000000`,
			`u.toml:2: politeness.delay_factor: -Inf is not a finite number; allowed: a number from 0 to 1000`}},
		{name: "a rate of nothing", text: "Req_Host_Per_Sec = 0", want: []string{
			`u.toml:1: Req_Host_Per_Sec: 0 is too small; allowed: a number from 0.000001 to 1000000`}},
		{name: "seconds that would overflow", text: "Timeout_Spider_Status = 9223372036854775807",
			want: []string{
				`u.toml:1: Timeout_Spider_Status: 9223372036854775807 is too large; allowed: a whole number from 1 to 86400 (seconds)`}},
		{name: "a number too large for TOML", text: "Queue_Len = 99999999999999999999", want: []string{
			`u.toml:1: Queue_Len: 99999999999999999999 is out of range for int64; allowed: a whole number from 1 to 1000000`}},
		{name: "wrong types", text: "Spider_Host = 1\nSpider_Port = \"4100\"\nQueue_Len = " +
			"1.5\nallow_insecure = \"yes\"\n[robots]\nttl = 60\nenabled = 1979-05-27\nuser_agent = " +
			"[1]\n[spider]\ndial = \"a:1\"\n",
			want: []string{
				`u.toml:1: Spider_Host: is a whole number; allowed: "" or a host name or IP address`,
				`u.toml:2: Spider_Port: is a string; allowed: a whole number from 1 to 65535`,
				`u.toml:3: Queue_Len: is a number with a fraction; allowed: a whole number from 1 to 1000000`,
				`u.toml:4: allow_insecure: is a string; allowed: true or false`,
				`u.toml:6: robots.ttl: is a whole number; allowed: a duration from 1ms to 24h, as in "90s" or "1h30m"`,
				`u.toml:7: robots.enabled: is a date or time; allowed: true or false`,
				`u.toml:8: robots.user_agent: is a list; allowed: up to 256 printable ASCII characters, first a letter, "_" or "-"`,
				`u.toml:10: spider.dial: is a string; allowed: a list of "host:port", port 1 to 65535`}},
		{name: "wrong types within lists",
			text: "resolver.servers = [\"1.1.1.1:53\", 5]\nspider.dial = [{a = 1}]", want: []string{
				`u.toml:1: resolver.servers: element 2 is a whole number; allowed: a list of "ip:port"`,
				`u.toml:2: spider.dial: element 1 is a table; allowed: a list of "host:port", port 1 to 65535`}},
		{name: "durations",
			text: "[docindex]\nretry = \"2d\"\nquarantine = \"-1s\"\n" +
				"[politeness]\npatience=\"24h1ns\"", want: []string{
				`u.toml:2: docindex.retry: "2d" is not a duration; allowed: a duration from 1ms to 24h, as in "90s" or "1h30m"`,
				`u.toml:3: docindex.quarantine: -1s is too small; allowed: a duration from 0s to 720h, as in "90s" or "1h30m"`,
				`u.toml:5: politeness.patience: 24h0m0.000000001s is too large; allowed: a duration from 0s to 24h, as in "90s" or "1h30m"`}},
		{name: "words", text: "docindex.kind = \"tikv\"\nresolver.family = \"IPv4\"", want: []string{
			`u.toml:1: docindex.kind: "tikv" is none of these; allowed: memory, disk, redis, http`,
			`u.toml:2: resolver.family: "IPv4" is none of these; allowed: any, ipv4, ipv6`}},
		{name: "networks", text: "[resolver]\nallow_networks = [\n\"10.0.0.0/8\",\n\"10.1.0.0/8\"]",
			want: []string{
				`u.toml:2: resolver.allow_networks: 10.1.0.0/8 has bits set behind its length: is 10.0.0.0/8 meant?; allowed: a list of networks, as in "10.0.0.0/8" or "fd00::/8"`}},
		{name: "a network without its length", text: "resolver.allow_networks = [\"10.0.0.1\"]",
			want: []string{
				`u.toml:1: resolver.allow_networks: "10.0.0.1" is not a network; allowed: a list of networks, as in "10.0.0.0/8" or "fd00::/8"`}},
	} {
		t.Run(tc.name, tc.check)
	}
}

func TestParseRefusesKeysAndTables(t *testing.T) {
	for _, tc := range []refused{
		{name: "unknown keys with a hint",
			text: "Spidr_Host = \"\"\n[docindex]\nulr = \"\"\nmax_retries = \"1s\"\nzebra = 1",
			want: []string{
				`u.toml:1: Spidr_Host: no such key; did you mean Spider_Host`,
				`u.toml:3: docindex.ulr: no such key; did you mean docindex.url`,
				`u.toml:4: docindex.max_retries: no such key; did you mean docindex.max_retry`,
				`u.toml:5: docindex.zebra: no such key`}},
		{name: "right keys in the wrong place", text: "user_agent = \"x\"\n[log]\nQueue_Len = 5",
			want: []string{
				`u.toml:1: user_agent: no such key there; did you mean robots.user_agent`,
				`u.toml:3: log.Queue_Len: no such key there; did you mean Queue_Len, which stands above the first [table]`}},
		{name: "a key that only looks like one",
			text: "\"spider.listen\" = \"\"\n\u212aey = 1\n\"q\\u0000\" = 1", want: []string{
				`u.toml:1: "spider.listen": no such key; did you mean spider.listen`,
				`u.toml:2: this is neither a key with a value nor a [table]`,
				`u.toml:3: "q\u0000": no such key`}},
		{name: "letters that fold to ASCII", text: "\"\u017fpider_Port\" = 1", want: []string{
			"u.toml:1: \"\u017fpider_Port\": no such key"}},
		{name: "unknown table: its keys are not looked at",
			text: "[spidre]\nlisten = 5\ndeep.er = 1\n[spidre.more]\nx = 1\n[elsewhere]\nkind = \"none\"",
			want: []string{
				`u.toml:1: spidre: no such table; did you mean spider`,
				`u.toml:6: elsewhere: no such table`}},
		{name: "unknown below a known one",
			text: "[spider.tls]\ncert = 1\n[spider]\nlisten.host = 1", want: []string{
				`u.toml:1: spider.tls: no such table`,
				`u.toml:4: spider.listen.host: no such key`}},
		{name: "table for a value, value for a table",
			text: "log = 1\n[Queue_Len]\nx = 1\n[[http]]\nlisten = 5", want: []string{
				`u.toml:1: log: is a table, not a single value; allowed: [log] and its keys below it`,
				`u.toml:2: Queue_Len: is a table here; allowed: a whole number from 1 to 1000000`,
				`u.toml:4: http: is one table, not a list of tables; allowed: [http]`,
				`u.toml:5: http.listen: is a whole number; allowed: "" or "host:port", port 0 to 65535`}},
		{name: "twice", text: "Queue_Len = 1\nqueue_len = 2\nQueue_Len = 0", want: []string{
			`u.toml:2: Queue_Len: already set on line 1`,
			`u.toml:3: Queue_Len: already set on line 1`}},
		{name: "table in a table", text: "[docindex]\nrefetch_after = { ok = \"soon\", missing = " +
			"\"1h\",\n eror = 5, gone = 5 }\n[docindex.refetch_after]\nok = \"1h\"", want: []string{
			`u.toml:2: docindex.refetch_after.ok: "soon" is not a duration; allowed: "never" or a duration from 1s to 8760h, as in "90s" or "1h30m"`,
			`u.toml:2: docindex.refetch_after.missing: no such key`,
			`u.toml:3: docindex.refetch_after.eror: no such key; did you mean docindex.refetch_after.error`,
			`u.toml:3: docindex.refetch_after.gone: is a whole number; allowed: "never" or a duration from 1s to 8760h, as in "90s" or "1h30m"`,
			`u.toml:4: docindex.refetch_after: this table already stands on line 2: say everything there`,
			`u.toml:5: docindex.refetch_after.ok: already set on line 2`}},
		{name: "value for a table in a table", text: "[docindex]\nrefetch_after = \"168h\"", want: []string{
			`u.toml:2: docindex.refetch_after: is a table, not a single value; allowed: [docindex.refetch_after] and its keys below it`}},
		{name: "tables twice", text: "[http]\n[HTTP]\ntoken = 'a b'\n[log]\nlevel='x'\n[log]", want: []string{
			`u.toml:2: http: this table already stands on line 1: say everything there`,
			`u.toml:3: http.token: the token has a space, control or non-ASCII character; allowed: "" or up to 1024 printable ASCII characters without space`,
			`u.toml:5: log.level: "x" is none of these; allowed: trace, debug, info, warn, error`,
			`u.toml:6: log: this table already stands on line 4: say everything there`}},
		{name: "tables in two ways", text: "log.level = 'info'\nhttp = {}\nHTTP.token = ''\n[LOG]\n[http]",
			want: []string{
				`u.toml:3: http: this table already stands on line 2: say everything there`,
				`u.toml:4: log: this table already stands on line 1: say everything there`,
				`u.toml:5: http: this table already stands on line 2: say everything there`}},
	} {
		t.Run(tc.name, tc.check)
	}
}

func TestParseRefusesCombinations(t *testing.T) {
	for _, tc := range []refused{
		{name: "refetching from an index over HTTP",
			text: "[docindex]\nkind = \"http\"\nurl = \"http://a/\"\nrefetch_after = { error = \"1h\" }",
			want: []string{
				`u.toml:4: docindex.refetch_after.error: docindex.refetch_after is of an embedded index; with docindex.kind = "http" that index decides when to offer a document again`}},
		{name: "what an index over HTTP cannot do", text: "[docindex]\nkind = \"http\"\nurl = " +
			"\"http://a/\"\nseeds = [\"s\"]\n[frontier]\nlisten = \"127.0.0.1:1\"\n[monitor]\nbrokers = " +
			"[\"a:1\"]", want: []string{
			`u.toml:4: docindex.seeds: docindex.kind = "http" is the index of somebody else, and docindex.seeds go into an embedded index; put them there`,
			`u.toml:6: frontier.listen: docindex.kind = "http" is the index of somebody else, and frontier.listen: the URL Frontier service needs an embedded index; run it there`,
			`u.toml:8: monitor.brokers: docindex.kind = "http" is the index of somebody else, and monitor.brokers: crawl control needs an embedded index; run it there`}},
		{name: "what belongs together", text: "Req_Host_Concurrent = 65\ndocindex.kind = " +
			"\"http\"\nfrontier.tls_key = \"k\"\nspider.tls_ca = \"a\"\nspider.tls_cert = " +
			"\"c\"\nresolver.min_ttl = \"25h\"", want: []string{
			`u.toml:1: Req_Host_Concurrent: Req_Host_Concurrent (65) is more than Queue_Len (64): the active range is part of the queue`,
			`u.toml:2: docindex.kind: docindex.kind = "http" needs docindex.url, the base URL of the index`,
			`u.toml:3: frontier.tls_key: frontier.tls_key needs frontier.tls_cert`,
			`u.toml:5: spider.tls_cert: spider.tls_cert needs spider.tls_key`,
			`u.toml:6: resolver.min_ttl: resolver.min_ttl (25h) is more than resolver.max_ttl (24h)`}},
		{name: "the key that the file sets is to blame",
			text: "Queue_Len = 1\nReq_Host_Concurrent = 1\ndocindex.max_retry = \"10ms\"", want: []string{
				`u.toml:3: docindex.max_retry: docindex.retry (1s) is more than docindex.max_retry (10ms)`}},
		{name: "disk without a path", text: "docindex = { kind = \"disk\", path = \"\" }", want: []string{
			`u.toml:1: docindex.kind: docindex.kind = "disk" needs docindex.path, the folder to keep it in`}},
		{name: "an index in Redis without a place",
			text: "[docindex]\nkind = \"redis\"\naddrs = []\ntls_key = \"k\"", want: []string{
				`u.toml:2: docindex.kind: docindex.kind = "redis" needs docindex.addrs, where it is`,
				`u.toml:4: docindex.tls_key: docindex.tls_key needs docindex.tls_cert`}},
		{name: "reservations without a place",
			text: "[reservation]\nkind = \"grpc\"\naddrs = []\ntls_key = \"k\"", want: []string{
				`u.toml:2: reservation.kind: reservation.kind = "grpc" needs reservation.addrs, where it is`,
				`u.toml:4: reservation.tls_key: reservation.tls_key needs reservation.tls_cert`}},
		{name: "client certificates without TLS", text: "spider.tls_ca = \"a\"", want: []string{
			`u.toml:1: spider.tls_ca: spider.tls_ca asks for client certificates, which needs spider.tls_cert and spider.tls_key`}},
		{name: "open listeners",
			text: "http.listen = \":80\"\nspider.listen = \"10.0.0.1:80\"\nfrontier.listen = " +
				"\"f.example:80\"", want: []string{
				`u.toml:1: http.listen: http.listen (:80) is open to others without token or TLS: set http.token, listen on 127.0.0.1, or say allow_insecure = true`,
				`u.toml:2: spider.listen: spider.listen (10.0.0.1:80) is open to others without token or TLS: set spider.token, or spider.tls_cert with spider.tls_key, listen on 127.0.0.1, or say allow_insecure = true`,
				`u.toml:3: frontier.listen: frontier.listen (f.example:80) is open to others without token or TLS: set frontier.token, frontier.allow_from, or frontier.tls_cert with frontier.tls_key, listen on 127.0.0.1, or say allow_insecure = true`}},
		{name: "no rule about what is wrong by itself",
			text: "Queue_Len = 0\nReq_Host_Concurrent = 100\n[docindex]\nkind = \"http\"\nurl = " +
				"\"ftp://x\"", want: []string{
				`u.toml:1: Queue_Len: 0 is too small; allowed: a whole number from 1 to 1000000`,
				`u.toml:5: docindex.url: this is no http or https URL; allowed: "" or an http or https URL without user, query and fragment`}},
	} {
		t.Run(tc.name, tc.check)
	}
}

const noKey = "this is neither a key with a value nor a [table]"

// syntaxTests has files that are no TOML, and the errors.
var syntaxTests = []struct {
	name string
	text string
	want []string
}{
	{name: "strings without quotes",
		text: "[log]\nlevel = info\n[docindex]\nretry = 1s\nbatch = 0", want: []string{
			`u.toml:2: log.level: info is not valid TOML; a string stands in quotes; allowed: trace, debug, info, warn, error`,
			`u.toml:4: docindex.retry: 1s is not valid TOML; a string stands in quotes; allowed: a duration from 1ms to 24h, as in "90s" or "1h30m"`,
			`u.toml:5: docindex.batch: 0 is too small; allowed: a whole number from 1 to 1000000`}},
	{name: "no value", text: "Queue_Len =\nQueue_Count = # none\nzebra=", want: []string{
		`u.toml:1: Queue_Len: no value behind the =; allowed: a whole number from 1 to 1000000`,
		`u.toml:2: Queue_Count: no value behind the =; allowed: a whole number from 1 to 16777216`,
		`u.toml:3: zebra: no value behind the =`}},
	{name: "no key", text: "Queue_Len 5\n= 5\n5 6 = 7\nQueue_Len\n", want: []string{
		"u.toml:1: " + noKey,
		"u.toml:2: " + noKey,
		"u.toml:3: " + noKey,
		`u.toml:4: Queue_Len: no = and value behind the key; allowed: a whole number from 1 to 1000000`}},
	{name: "a key over lines", text: "\"\"\"a\nb\"\"\" = 1\nQueue_Len = 0", want: []string{
		"u.toml:1: " + noKey,
		`u.toml:3: Queue_Len: 0 is too small; allowed: a whole number from 1 to 1000000`}},
	{name: "half a table", text: "[log\nlevel = \"x\"\n[ a b ]\nignored = 1\n[http]]\n", want: []string{
		`u.toml:1: the table's name does not end in ]`,
		`u.toml:2: log.level: "x" is none of these; allowed: trace, debug, info, warn, error`,
		"u.toml:3: " + noKey,
		`u.toml:5: there is more on the line than belongs to it`}},
	{name: "a string that does not end", text: "docindex.path = \"a\nQueue_Len = 0", want: []string{
		`u.toml:1: docindex.path: the string does not end; allowed: "" or the path of a folder`,
		`u.toml:2: Queue_Len: 0 is too small; allowed: a whole number from 1 to 1000000`}},
	{name: "a string that ends in a backslash",
		text: "docindex.path = \"a\\\nQueue_Len = 0 # \"", want: []string{
			`u.toml:1: docindex.path: the string does not end; allowed: "" or the path of a folder`,
			`u.toml:2: Queue_Len: 0 is too small; allowed: a whole number from 1 to 1000000`}},
	{name: "a string in a list that does not end",
		text: "spider.dial = [\n\"a:1\",\n\"b:1,\n]\n", want: []string{
			`u.toml:3: spider.dial: the string does not end; allowed: a list of "host:port", port 1 to 65535`,
			"u.toml:4: " + noKey}},
	{name: "a list that does not end",
		text: "Queue_Len = 0\nspider.dial = [ \"a:1\",\n[log]\nlevel = 5\n", want: []string{
			`u.toml:1: Queue_Len: 0 is too small; allowed: a whole number from 1 to 1000000`,
			`u.toml:2: spider.dial: the list does not end; what follows was not looked at; allowed: a list of "host:port", port 1 to 65535`}},
	{name: "a long string that does not end",
		text: "\n[docindex]\nkind = \"http\"\npath = \"\"\"a\nurl = \"x\"\\", want: []string{
			`u.toml:4: docindex.path: the string does not end; what follows was not looked at; allowed: "" or the path of a folder`}},
	{name: "an inline table that does not end", text: "http = { listen = \"\",\ntoken = \"\"",
		want: []string{
			`u.toml:1: http: the table does not end; what follows was not looked at`}},
	{name: "a list without its commas", text: "spider.dial = [\n\"a:1\",\n\"b:1\"\n\"c:1\"]",
		want: []string{
			`u.toml:4: spider.dial: is not valid TOML: expected a comma (',') or array terminator (']'), but got '"'; allowed: a list of "host:port", port 1 to 65535`}},
	{name: "crossed brackets", text: "spider.dial = [ }\nhttp = { listen = [ }", want: []string{
		`u.toml:1: spider.dial: a } where the list goes on; allowed: a list of "host:port", port 1 to 65535`,
		`u.toml:2: http.listen: a } where the list goes on; allowed: "" or "host:port", port 0 to 65535`}},
	{name: "an escape there is not", text: `docindex.path = "c:\qed"`, want: []string{
		`u.toml:1: docindex.path: is not valid TOML: invalid escape in string '\q'; allowed: "" or the path of a folder`}},
	{name: "a control character in a comment", text: "Queue_Len = 1\n# a\x01\n", want: []string{
		`u.toml:2: TOML files cannot contain control characters: '0x01'`}},
	{name: "an inline table without its commas",
		text: "\n\nhttp = { listen = \"\" token = \"\" }", want: []string{
			`u.toml:3: expected a comma or an inline table terminator '}', but got 't' instead`}},
	{name: "too deep", text: "x = " + strings.Repeat("[", 100_000) + "\nQueue_Len = 0", want: []string{
		`u.toml:1: x: lists or tables in one another, too many; what follows was not looked at`}},
	{name: "tables too deep", text: "x = " + strings.Repeat("{a=", 1000) + "\n", want: []string{
		`u.toml:1: x.a.a.a.a.a.a.a.a: lists or tables in one another, too many; what follows was not looked at`,
		`u.toml:1: x: no such table`}},
	{name: "too many parts", text: "a" + strings.Repeat(".a", 100_000) + " = 1", want: []string{
		`u.toml:1: no key has so many parts; what follows was not looked at`}},
	{name: "not UTF-8", text: "a = 1\nb = \"\xff\"",
		want: []string{`u.toml:2: this is not UTF-8 text; allowed: TOML in UTF-8`}},
	{name: "NUL", text: "a\x00 = 1",
		want: []string{`u.toml:1: this is not UTF-8 text; allowed: TOML in UTF-8`}},
	{name: "UTF-16", text: "\xff\xfea\x00",
		want: []string{`u.toml:1: this is not UTF-8 text; allowed: TOML in UTF-8`}},
	{name: "too large", text: strings.Repeat("#\n", maxFile/2) + "\n", want: []string{
		`u.toml:1: this is larger than 1048576 bytes, so no settings file`}},
}

func TestParseSyntax(t *testing.T) {
	for _, tc := range syntaxTests {
		t.Run(tc.name, func(t *testing.T) {
			if got := mistakesOf(t, tc.text); !slices.Equal(got, tc.want) {
				t.Errorf("Parse(%.200q):\n%s\nwant:\n%s", tc.text, strings.Join(got, "\n"),
					strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestParseListsAThousand(t *testing.T) {
	for _, text := range []string{strings.Repeat("x = 1\n", 5000), strings.Repeat("???\n", 5000)} {
		_, err := Parse("u.toml", []byte(text))
		e, ok := errors.AsType[*Error](err)
		if !ok || len(e.Mistakes) != maxMistakes {
			t.Fatalf("Parse of 5000 mistakes = %T with %d; want *Error with %d", err,
				len(e.Mistakes), maxMistakes)
		}
		if !e.More || !strings.HasSuffix(err.Error(), "\nand more: put these right first") {
			t.Errorf("nothing says that there are more than %d", maxMistakes)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.toml")
	bad := filepath.Join(dir, "bad.toml")
	for path, text := range map[string]string{good: "Queue_Len = 7\n", bad: "Queue_Len = \"7\"\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := Load(good); err != nil || c.QueueLen != 7 {
		t.Errorf("Load(good) = Queue_Len %d, %v; want 7", c.QueueLen, err)
	}
	if _, err := Load(bad); err == nil || !strings.HasPrefix(err.Error(), bad+":1: Queue_Len: ") {
		t.Errorf("Load(bad) = %v; want the file and line", err)
	}
	if _, err := Load(filepath.Join(dir, "none.toml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of no file = %v; want fs.ErrNotExist", err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Load of a folder = %v; want an error that names it", err)
	}
}
