package protocol

import "testing"

func TestMayBegin(t *testing.T) {
	for _, c := range []struct {
		name, first string // first is what has come
		want        bool
	}{
		{name: "nothing yet", first: "", want: true},
		{name: "DONE", first: "17.0.1 DONE 200\n", want: true},
		{name: "WORKING", first: "4294967295.4294967295.4294967295 WORKING\n", want: true},
		{name: "AUTH", first: "AUTH s3cr3t\n", want: true},
		{name: "SPIDER", first: "SPIDER link\n", want: true},
		{name: "ROOM", first: "ROOM 16\n", want: true},
		{name: "COUNT", first: "COUNT t crawl\n", want: true},
		{name: "PUT", first: "PUT t {\"url\":\"http://a.example/\"}\n", want: true},
		{name: "HTTP PUT", first: "PUT /t HTTP/1.1\r\n"},
		{name: "HTTP PUT of a long path", first: "PUT /123456789012345678901234567890123456789 HTTP/1.1\r\n"},
		{name: "PUT without an object", first: "PUT t\n"},
		{name: "HTTP GET", first: "GET / HTTP/1.1\r\n"},
		{name: "HTTP POST", first: "POST / HTTP/1.1\r\n"},
		{name: "a method that is nearly a verb", first: "SEARCH / HTTP/1.1\r\n"},
		{name: "HTTP answer", first: "HTTP/1.1 400 Bad Request\r\n"},
		{name: "HTTP/2", first: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{name: "TLS ClientHello", first: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{name: "SSH", first: "SSH-2.0-OpenSSH_9.6\r\n"},
		{name: "SMTP", first: "EHLO a.example\r\n"},
		{name: "Redis", first: "*1\r\n$4\r\nPING\r\n"},
		{name: "SOCKS", first: "\x05\x01\x00"},
		{name: "STUN over TCP", first: "\x00\x03\x00\x00\x21\x12\xa4\x42"},
		{name: "memcached", first: "stats\r\n"},
		{name: "PROXY", first: "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"},
		{name: "empty line", first: "\n"},
		{name: "space", first: " 17.0.1 DONE\n"},
		{name: "lower case", first: "auth s3cr3t\n"},
		{name: "word", first: "nonsense\n"},
		{name: "digits without end", first: "11111111111111111111111111111111111111"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := MayBegin([]byte(c.first)); got != c.want {
				t.Errorf("MayBegin(%q) = %v; want %v", c.first, got, c.want)
			}
			for n := range c.first { // what may be the beginning of a line may be so with fewer bytes, too
				if c.want && !MayBegin([]byte(c.first[:n])) {
					t.Errorf("MayBegin(%q) = false; want true as for %q", c.first[:n], c.first)
				}
			}
		})
	}
}
