package protocol

import "testing"

func TestForeign(t *testing.T) {
	for _, c := range []struct {
		name, first string // first is what has come
		want        bool
	}{
		{name: "nothing yet", first: ""},
		{name: "DONE", first: "17.0.1 DONE 200\n"},
		{name: "TLS ClientHello", first: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", want: true},
		{name: "STUN over TCP", first: "\x00\x03\x00\x00\x21\x12\xa4\x42", want: true},
		{name: "nonsense", first: "nonsense\n"},
		{name: "high bytes", first: "\xff\xfe\x00\x01\xff\xfe\x00\x01"},
	} {
		if got := IsForeign([]byte(c.first)); got != c.want {
			t.Errorf("%s: IsForeign(%q) = %v; want %v", c.name, c.first, got, c.want)
		}
	}
}

func TestIsHTTP(t *testing.T) {
	for line, want := range map[string]bool{
		"GET / HTTP/1.1": true, "POST /a%20b HTTP/1.0": true, "PUT /t HTTP/1.1": true, "AUTH / HTTP/1.1": true,
		"1.0.1 / HTTP/1.1": true, "PRI * HTTP/2.0": true, "HTTP/1.1 400 Bad Request": true,
		"": false, "17.0.1 DONE 200": false, "AUTH s3cr3t": false, "nonsense": false, "PUT t {}": false, "HTTP": false,
		"SPIDER link": false, "GET /": false,
	} {
		if got := IsHTTP([]byte(line)); got != want {
			t.Errorf("IsHTTP(%q) = %v; want %v", line, got, want)
		}
	}
}
