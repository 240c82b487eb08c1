package configs

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/internal/canonical"
)

// fields walks every setting of a Config: each exported field that is no struct itself.
func fields(v reflect.Value, path string, visit func(path string, field reflect.Value)) {
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		f, name := v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, ".")
		if f.Kind() == reflect.Struct {
			fields(f, name, visit)
			continue
		}
		visit(name, f)
	}
}

// alter gives a field another value than it has.
func alter(t *testing.T, field reflect.Value) {
	t.Helper()
	switch v := field.Addr().Interface().(type) {
	case *int:
		*v++
	case *float64:
		*v += 0.25
	case *bool:
		*v = !*v
	case *time.Duration:
		*v += time.Second
	case *string:
		*v += "x"
	case *Secret:
		*v += "x"
	case *[]string:
		*v = append(slices.Clone(*v), "x")
	case *[]int:
		*v = append(slices.Clone(*v), 25)
	case *[]HostRule:
		*v = append(slices.Clone(*v), HostRule{Hosts: []string{"x"}, Block: true})
	case *[]Crawl:
		*v = append(slices.Clone(*v), Crawl{ID: "x"})
	case *[]canonical.Rule:
		*v = append(slices.Clone(*v), canonical.Rule{Hosts: []string{"x"}, Drop: []string{"y"}})
	case *[]netip.Prefix:
		*v = append(slices.Clone(*v), netip.MustParsePrefix("10.0.0.0/8"))
	default:
		t.Fatalf("a field of type %T: which setting is that?", v)
	}
}

// Each field is one setting's and each setting has one field, or else Changes
// would miss a field or name another.
func TestEveryFieldIsOneSetting(t *testing.T) {
	var named []string
	c := Default()
	fields(reflect.ValueOf(&c).Elem(), "", func(path string, field reflect.Value) {
		before := reflect.ValueOf(field.Interface())
		alter(t, field)
		live, restart := Changes(Default(), c)
		if changed := slices.Concat(live, restart); len(changed) != 1 {
			t.Errorf("%s altered: Changes = %q; want one", path, changed)
		} else if want := strings.ToLower(path); lower(strings.ReplaceAll(changed[0], "_", "")) != want {
			t.Errorf("%s altered: Changes = %q", path, changed)
		} else {
			named = append(named, changed[0])
		}
		field.Set(before)
	})
	for _, s := range settings() {
		if !slices.Contains(named, s.name) {
			t.Errorf("%s is no field's setting", s.name)
		}
	}
	if len(named) != len(settings()) {
		t.Errorf("%d fields, %d settings", len(named), len(settings()))
	}
}

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	got, err := Parse("u.toml", nil)
	if err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("Parse of nothing = %v, %v; want Default", got, err)
	}
}

func TestValidate(t *testing.T) {
	c := Default()
	c.QueueLen = 0
	c.TimeoutSpiderStatus = 1500 * time.Millisecond
	c.ReqHostPerSec = math.Inf(1)
	c.HTTP.Listen = ":80"
	c.Resolver.AllowNetworks = []netip.Prefix{{}}
	err := c.Validate()
	want := strings.Join([]string{
		`Timeout_Spider_Status: 1.5s is not a whole number of seconds; allowed: a whole number from 1 to 86400 (seconds)`,
		`Queue_Len: 0 is too small; allowed: a whole number from 1 to 1000000`,
		`Req_Host_Per_Sec: +Inf is not a finite number; allowed: a number from 0.000001 to 1000000`,
		`resolver.allow_networks: one of them is no network; allowed: a list of networks, as in "10.0.0.0/8" or "fd00::/8"`,
		`http.listen: http.listen (:80) is open to others without token or TLS: set http.token, listen on 127.0.0.1, or say allow_insecure = true`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("Validate:\n%v\nwant:\n%s", err, want)
	}
	if all, ok := errors.AsType[*Error](err); !ok || all.Mistakes[0].Line != 0 ||
		all.Mistakes[0].Key != "Timeout_Spider_Status" {
		t.Errorf("Validate = %#v; want an *Error without lines", err)
	}
	if (Config{}).Validate() == nil {
		t.Error("the zero Config is valid")
	}
}

// ranges has values at and beyond the bounds of each setting, by its key.
var ranges = []struct {
	key      string
	in       []string // taken
	out      []string // refused
	together string   // what else must be set for in to be taken
}{
	{key: "Spider_Host", in: []string{`""`, `"a"`, `"a_b.example."`, `"10.0.0.1"`, `"::1"`,
		`"xn--a.example"`},
		out: []string{`"a b"`, `"[::1]"`, `"1.2.3"`, `"a..b"`, `"-a"`, `"a:1"`, `"é"`, `"."`,
			`"` + strings.Repeat("a", 64) + `"`, `"` + strings.Repeat("a.", 127) + `aa"`}},
	{key: "Spider_Port", in: []string{"1", "65535"}, out: []string{"0", "65536", "-1"}},
	{key: "Timeout_Spider_Status", in: []string{"1", "86400"}, out: []string{"0", "86401", `"120s"`}},
	{key: "Queue_Count", in: []string{"1", "16777216"}, out: []string{"0", "16777217"}},
	{key: "Queue_Len", in: []string{"1", "1000000"}, out: []string{"0", "1000001"}},
	{key: "Req_Host_Concurrent", in: []string{"1", "1024"}, out: []string{"0", "1025"},
		together: "Queue_Len = 1024"},
	{key: "Req_Host_Per_Sec", in: []string{"0.000001", "1e-6", "1_000_000", "1e6"},
		out: []string{"0", "-0.0", "-1", "1000000.1", "9e-7", "1e400", "1e-400"}},
	{key: "allow_insecure", in: []string{"true", "false"}, out: []string{"1", `"true"`, "True"}},
	{key: "spider.listen", in: []string{`""`, `"127.0.0.1:0"`, `"localhost:65535"`},
		out: []string{`"127.0.0.1"`, `"127.0.0.1:65536"`, `"127.0.0.1:http"`, `"::1:80"`,
			`"127.0.0.1:+1"`, `":1"`}},
	{key: "spider.dial", in: []string{"[]", `["a:1", "[::1]:65535"]`},
		out: []string{`[""]`, `["a:0"]`, `[":1"]`, `["a:1", "b"]`, `"a:1"`}},
	{key: "spider.token", in: []string{`""`, `"!~"`, `"` + strings.Repeat("x", 1024) + `"`},
		out: []string{`"a b"`, `"a\n"`, `"é"`, `"` + strings.Repeat("x", 1025) + `"`}},
	{key: "spider.max_in_flight", in: []string{"1", "10000000"}, out: []string{"0", "10000001"}},
	{key: "spider.max_attempts", in: []string{"1", "1000"}, out: []string{"0", "1001"}},
	{key: "spider.max_fetch", in: []string{`"1ms"`, `"24h"`}, out: []string{`"0s"`, `"24h1s"`, "60"}},
	{key: "spider.tls_cert", in: []string{`"c.pem"`},
		out: []string{`"\u0000"`, `"` + strings.Repeat("x", 4097) + `"`}, together: `spider.tls_key = "k"`},
	{key: "leftover.max", in: []string{"1", "1000000000"}, out: []string{"0", "1000000001"}},
	{key: "politeness.delay_factor", in: []string{"0", "1000.0"}, out: []string{"-0.1", "1000.1"}},
	{key: "politeness.max_delay", in: []string{`"0s"`, `"0"`, `"24h"`},
		out: []string{`"-1s"`, `"24h1s"`, "0", `"9999999h"`}},
	{key: "politeness.patience", in: []string{`"0s"`, `"24h"`}, out: []string{`"-1s"`, `"25h"`}},
	{key: "vhosts.reject_over", in: []string{"1", "1000000000"}, out: []string{"0", "1000000001"}},
	{key: "docindex.kind", in: []string{`"memory"`, `"disk"`, `"redis"`, `"http"`},
		out: []string{`""`, `"grpc"`}, together: `docindex.url = "http://a/"`},
	{key: "docindex.path", in: []string{`"a b"`}, out: []string{`"a\u0000"`}},
	{key: "docindex.sync", in: []string{`"batch"`, `"interval"`, `"none"`}, out: []string{`""`, `"always"`}},
	{key: "docindex.url", in: []string{`""`, `"http://a"`, `"https://10.0.0.1:8080/x"`},
		out: []string{`"a"`, `"http://"`, `"ftp://a"`, `"http://u:p@a"`, `"http://a/?x"`,
			`"http://a/?"`, `"http://a/#"`, `"http://a:0"`, `"http://a:99999"`, `"http://a/é"`,
			`"http://a_é/"`, `"http://a%zz/"`, `"http://a b/"`}},
	{key: "docindex.addrs", in: []string{`["a:1", "[::1]:65535"]`, "[]"},
		out: []string{`["a"]`, `["a:0"]`, `"a:1"`}},
	{key: "docindex.prefix", in: []string{`""`, `"crawl:"`}, out: []string{`"{a}"`, `"a b"`}},
	{key: "docindex.tls_ca", in: []string{`"ca.pem"`}, out: []string{`"\u0000"`}},
	{key: "docindex.seeds", in: []string{`["a", "b"]`}, out: []string{`[""]`, `[1]`}},
	{key: "docindex.memory", in: []string{`"16MiB"`, `"1TiB"`}, out: []string{`"15MiB"`, `"2TiB"`, `""`, "16777216"}},
	{key: "docindex.batch", in: []string{"1", "1000000"}, out: []string{"0", "1000001"}},
	{key: "docindex.retry", in: []string{`"1ms"`, `"24h"`}, out: []string{`"0s"`, `"999us"`, `"25h"`},
		together: `docindex.max_retry = "24h"`},
	{key: "docindex.max_retry", in: []string{`"1s"`, `"24h"`}, out: []string{`"0s"`, `"25h"`}},
	{key: "docindex.quarantine", in: []string{`"0s"`, `"720h"`}, out: []string{`"-1ns"`, `"721h"`}},
	{key: "docindex.outcomes_max", in: []string{"1", "1000000000"}, out: []string{"0", "1000000001"}},
	{key: "docindex.refetch_after.ok", in: []string{`"never"`, `"1s"`, `"8760h"`},
		out: []string{`"999ms"`, `"0s"`, `"0"`, `"-1s"`, `"8760h1s"`, `"Never"`, `""`, "0", "false"}},
	{key: "docindex.refetch_after.gone", in: []string{`"never"`, `"1s"`, `"8760h"`},
		out: []string{`"0s"`, `"8761h"`}},
	{key: "docindex.refetch_after.error", in: []string{`"never"`, `"1s"`, `"8760h"`},
		out: []string{`"0s"`, `"8761h"`}},
	{key: "resolver.servers", in: []string{`["1.1.1.1:53", "[fe80::1%eth0]:1"]`},
		out: []string{`["1.1.1.1"]`, `["dns.example:53"]`, `["1.1.1.1:0"]`, `[""]`}},
	{key: "resolver.timeout", in: []string{`"1ms"`, `"1m"`}, out: []string{`"0s"`, `"61s"`}},
	{key: "resolver.attempts", in: []string{"1", "20"}, out: []string{"0", "21"}},
	{key: "resolver.concurrency", in: []string{"1", "65536"}, out: []string{"0", "65537"}},
	{key: "resolver.min_ttl", in: []string{`"0s"`, `"168h"`}, out: []string{`"-1s"`, `"169h"`},
		together: `resolver.max_ttl = "168h"`},
	{key: "resolver.max_ttl", in: []string{`"1m"`, `"168h"`}, out: []string{`"59s"`, `"169h"`}},
	{key: "resolver.negative_ttl", in: []string{`"0s"`, `"168h"`}, out: []string{`"-1s"`, `"169h"`}},
	{key: "resolver.give_up", in: []string{`"0s"`, `"168h"`}, out: []string{`"-1s"`, `"169h"`}},
	{key: "resolver.allow_ports", in: []string{`[]`, `[25, 0, 65535]`},
		out: []string{`[65536]`, `[-1]`, `["25"]`, `25`}},
	{key: "resolver.family", in: []string{`"any"`, `"ipv4"`, `"ipv6"`}, out: []string{`""`, `"ip4"`}},
	{key: "resolver.allow_networks", in: []string{"[]", `["0.0.0.0/0", "::/0", "10.0.0.1/32"]`},
		out: []string{`["10.0.0.1"]`, `["10.0.0.0/33"]`, `["::ffff:10.0.0.0/104"]`, `["fd00::1/8"]`}},
	{key: "robots.enabled", in: []string{"true", "false"}, out: []string{"0"}},
	{key: "robots.user_agent", in: []string{`"a"`, `"My-Bot/1.0 (+https://example.com/bot)"`},
		out: []string{`""`, `" a"`, `"a "`, `"1a"`, `"a\r\nb"`, `"é"`,
			`"a` + strings.Repeat("x", 256) + `"`}},
	{key: "robots.timeout", in: []string{`"1ms"`, `"5m"`}, out: []string{`"0s"`, `"6m"`}},
	{key: "robots.ttl", in: []string{`"1ms"`, `"24h"`}, out: []string{`"0s"`, `"25h"`}},
	{key: "robots.error_ttl", in: []string{`"1ms"`, `"24h"`}, out: []string{`"0s"`, `"25h"`}},
	{key: "robots.max_crawl_delay", in: []string{`"0s"`, `"720h"`}, out: []string{`"-1s"`, `"721h"`}},
	{key: "robots.memory", in: []string{`"1MiB"`, `"1024KiB"`, `"1TiB"`, `"268435456B"`, `"64 MiB"`},
		out: []string{`"1023KiB"`, `"1025GiB"`, `"2TiB"`, `"0B"`, `"9999999999999TiB"`, `"-1MiB"`,
			`"+5MiB"`, `"1.5GiB"`, `"1MB"`, `"MiB"`, `""`, "268435456"}},
	{key: "robots.sitemaps", in: []string{"true", "false"}, out: []string{"1", `"true"`}},
	{key: "robots.max_size", in: []string{"512000", "67108864"}, out: []string{"511999", "67108865"}},
	{key: "trace.endpoint", in: []string{`""`, `"http://127.0.0.1:4318"`, `"https://a/otlp"`},
		out: []string{`"127.0.0.1:4318"`, `"grpc://a"`, `"http://u:p@a"`, `"http://a/?x"`}},
	{key: "trace.sample", in: []string{"0", "1", "0.001", "1e-9"}, out: []string{"-0.1", "1.001", "2"}},
	{key: "http.listen", in: []string{`""`, `"[::1]:8080"`}, out: []string{`"8080"`, `"127.0.0.1:"`}},
	{key: "http.token", in: []string{`"t"`}, out: []string{`"\t"`}},
	{key: "http.hosts", in: []string{`[]`, `["crawler", "a.example.", "::1"]`},
		out: []string{`["a:1"]`, `[""]`, `"a"`}},
	{key: "frontier.allow_from", in: []string{"[]", `["10.0.0.0/8", "fd00::/8"]`, `["0.0.0.0/0"]`},
		out: []string{`["10.0.0.1"]`, `["10.0.0.1/8"]`, `"10.0.0.0/8"`, `["a"]`}},
	{key: "frontier.max_message", in: []string{"1024", "1073741824"}, out: []string{"1023", "1073741825"}},
	{key: "reservation.kind", in: []string{`"none"`, `"redis"`, `"grpc"`}, out: []string{`""`, `"tikv"`}},
	{key: "reservation.addrs", in: []string{`["a:1", "[::1]:65535"]`, "[]"},
		out: []string{`["a"]`, `["a:0"]`, `"a:1"`}},
	{key: "reservation.prefix", in: []string{`""`, `"crawl:"`},
		out: []string{`"{a}"`, `"a b"`, `"é"`, `"` + strings.Repeat("x", 101) + `"`}},
	{key: "reservation.lease", in: []string{`"1s"`, `"24h"`}, out: []string{`"999ms"`, `"25h"`, "60"}},
	{key: "reservation.penalty", in: []string{`"0s"`, `"24h"`}, out: []string{`"-1s"`, `"25h"`}},
	{key: "reservation.janitor", in: []string{`"100ms"`, `"1h"`}, out: []string{`"99ms"`, `"61m"`}},
	{key: "reservation.tls_ca", in: []string{`"ca.pem"`}, out: []string{`"\u0000"`}},
	{key: "monitor.brokers", in: []string{`[]`, `["k1:9092", "[::1]:1"]`},
		out: []string{`["k1"]`, `"k1:9092"`, `["k1:0"]`}},
	{key: "monitor.prefix", in: []string{`"a"`, `"a.b_c-D9"`},
		out: []string{`""`, `"a b"`, `"é"`, `"` + strings.Repeat("x", 140) + `"`}},
	{key: "monitor.inbound", in: []string{`[]`, `["a", "` + strings.Repeat("x", 249) + `"]`},
		out: []string{`[""]`, `["."]`, `[".."]`, `["a/b"]`, `["` + strings.Repeat("x", 250) + `"]`,
			`["demo.outbound_firehose"]`}},
	{key: "monitor.group", in: []string{`"g"`}, out: []string{`""`, `"a b"`, `"` +
		strings.Repeat("x", 256) + `"`}},
	{key: "monitor.max_domains", in: []string{"1", "5000"}, out: []string{"0", "5001"}},
	{key: "monitor.completed_after", in: []string{`"1s"`, `"24h"`}, out: []string{`"999ms"`, `"25h"`}},
	{key: "monitor.security_protocol", in: []string{`"PLAINTEXT"`, `"SSL"`}, out: []string{`""`, `"ssl"`}},
	{key: "monitor.sasl_mechanism", in: []string{`"PLAIN"`, `"SCRAM-SHA-256"`, `"SCRAM-SHA-512"`},
		out: []string{`"GSSAPI"`}},
	{key: "monitor.sasl_username", in: []string{`""`, `"u"`}, out: []string{`"a b"`}},
	{key: "monitor.tls_ca", in: []string{`"f"`}, out: []string{`"\u0000"`},
		together: `monitor.security_protocol = "SSL"`},
	{key: "log.level", in: []string{`"trace"`, `"debug"`, `"info"`, `"warn"`, `"error"`},
		out: []string{`"INFO"`, `"fatal"`}},
	{key: "log.format", in: []string{`"auto"`, `"pretty"`, `"json"`}, out: []string{`"text"`}},
}

func TestRanges(t *testing.T) {
	for _, tc := range ranges {
		t.Run(tc.key, func(t *testing.T) {
			for _, v := range tc.in {
				if _, err := Parse("u.toml", fmt.Appendf(nil, "%s\n%s = %s\n", tc.together, tc.key,
					v)); err != nil {
					t.Errorf("%s = %s: %v; want it taken", tc.key, v, err)
				}
			}
			for _, v := range tc.out {
				_, err := Parse("u.toml", fmt.Appendf(nil, "%s\n%s = %s\n", tc.together, tc.key, v))
				if err == nil || !strings.HasPrefix(err.Error(), "u.toml:2: "+tc.key+": ") {
					t.Errorf("%s = %s: %v; want a mistake on line 2", tc.key, v, err)
				}
			}
		})
	}
}

func TestSpiderAddrs(t *testing.T) {
	for _, tc := range []struct {
		name string
		host string
		dial []string
		want []string
	}{
		{name: "none", want: nil},
		{name: "IPv6 gets its brackets", host: "::1", want: []string{"[::1]:4100"}},
		{name: "none twice", host: "s", dial: []string{"t:1", "s:4100", "t:1"},
			want: []string{"s:4100", "t:1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Default()
			c.SpiderHost, c.Spider.Dial = tc.host, tc.dial
			if got := c.SpiderAddrs(); !slices.Equal(got, tc.want) {
				t.Errorf("SpiderAddrs of %q and %q = %q; want %q", tc.host, tc.dial, got, tc.want)
			}
		})
	}
}
