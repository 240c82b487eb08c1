package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	r := New([]Rule{
		{Hosts: []string{"*"}, Drop: []string{"utm_*", "fbclid"}},
		{Hosts: []string{"shop.test", "*.shop.test"}, Drop: []string{"sid"}},
		{Hosts: []string{"none.test"}, Drop: []string{"*"}},
	}, 512)
	long := "http://a.test/" + strings.Repeat("x", 512)
	sum := sha256.Sum256([]byte(long))
	hashed := "sha256:" + hex.EncodeToString(sum[:])
	for _, c := range []struct{ host, url, want string }{
		{"a.test", "http://a.test/", "http://a.test/"},
		{"a.test", "http://a.test/?utm_source=x", "http://a.test/"},
		{"a.test", "http://a.test/?utm_source=x&", "http://a.test/"},
		{"a.test", "http://a.test/?", "http://a.test/?"},
		{"a.test", "http://a.test/?b=%41&utm_a&a=?&fbclid=1&&fbclid2=utm_b#utm_c",
			"http://a.test/?b=%41&a=?&&fbclid2=utm_b#utm_c"},
		{"a.test", "http://a.test/?UTM_source=x&a_utm_=1", "http://a.test/?UTM_source=x&a_utm_=1"},
		{"a.test", "http://a.test/#?utm_a=1", "http://a.test/#?utm_a=1"},
		{"a.test", "http://a.test/?sid=1", "http://a.test/?sid=1"},
		{"shop.test.", "http://shop.test./?sid=1&utm_a=2", "http://shop.test./"},
		{"www.eu.shop.test", "http://www.eu.shop.test/?sid=1&utm_a=2&c=3", "http://www.eu.shop.test/?c=3"},
		{"none.test", "http://none.test/?a&b=2", "http://none.test/"},
		{"a.test", long, hashed},
		{"a.test", long + "?utm_a=1", hashed},
	} {
		if got := string(r.Name([]byte(c.host), []byte(c.url))); got != c.want {
			t.Errorf("%s is known by %q; want %q", c.url, got, c.want)
		}
	}
	if got := r.Name([]byte("a.test"), []byte("http://a.test/\xff")); !strings.HasPrefix(string(got), "sha256:") {
		t.Errorf("what is no UTF-8 is known by %q", got)
	}
}

// A URL whose host no rule is for, and one without a host, have no name.
func TestNoName(t *testing.T) {
	r := New([]Rule{{Hosts: []string{"*.a.test"}, Drop: []string{"b"}}}, 512)
	for _, host := range []string{"a.test", "xa.test", "b.test", ""} {
		if got := r.Name([]byte(host), []byte("http://x/?b=1")); got != nil {
			t.Errorf("on %q it is known by %q", host, got)
		}
	}
	if New(nil, 512) != nil {
		t.Error("no rules are not nil")
	}
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"utm_*": true, "*": true, "a[]": true, "%5B": true, "": false, "a*b": false, "**": false, "a=b": false,
		"a&b": false, "a b": false, "é": false, "a#": false, strings.Repeat("a", 201): false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
