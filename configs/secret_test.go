package configs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSecretsAreAll(t *testing.T) {
	c := Default()
	for _, s := range settings() {
		if !s.secret {
			continue
		}
		if err := s.read(&c, "of-"+s.name); err != nil {
			t.Fatal(err)
		}
		if got := c.Secrets(); !slices.Contains(got, "of-"+s.name) {
			t.Errorf("Secrets = %q; want %s among them", got, s.name)
		}
	}
	if got := Default().Secrets(); len(got) > 0 {
		t.Errorf("Secrets of the default = %q", got)
	}
}

// A password that stands in an address is refused, and not repeated.
func TestFaultsShowNoPassword(t *testing.T) {
	for _, c := range []struct{ key, value string }{
		{key: "Spider_Host", value: `"us:s3cret@spider.example"`},
		{key: "docindex.url", value: `"https://us:s3cret@index.example/"`},
		{key: "docindex.url", value: `"https://index.example/?token=s3cret"`},
		{key: "trace.endpoint", value: `"https://us:s3cret@index.example/"`},
		{key: "docindex.addrs", value: `["redis://:s3cret@10.0.0.6:6379"]`},
		{key: "docindex.addrs", value: `["us:s3cret@10.0.0.6"]`},
		{key: "reservation.addrs", value: `["[us:s3cret@redis.example]:6379"]`},
		{key: "monitor.brokers", value: `["us:s3cret@kafka.example:9092"]`},
		{key: "monitor.brokers", value: `["s3cret@kafka.example:9092"]`},
		{key: "spider.dial", value: `["s3cret@spider.example:0"]`},
		{key: "spider.listen", value: `"s3cret@127.0.0.1:x"`},
		{key: "resolver.servers", value: `["us:s3cret@10.0.0.1:53"]`},
	} {
		_, err := Parse("f.toml", []byte(c.key+" = "+c.value+"\n"))
		if err == nil || !strings.Contains(err.Error(), c.key) ||
			strings.Contains(fmt.Sprint(err), "s3cret") {
			t.Errorf("%s = %s: %v; want a fault of it that does not repeat the password", c.key, c.value, err)
		}
	}
}
