package demo

import (
	"io"
	"net"
	"slices"
	"testing"
)

// TestLineRecorder splits the daemon's output at every byte.
func TestLineRecorder(t *testing.T) {
	const text = "0.0.1 7 127.77.0.1 http://a.test/\nno line\n0.0.2 8 127.77.0.1 http://a.test/b\n0.0.3 " +
		"9 127.77.0.1 http://a.test/ha"
	want := []string{"http://a.test/", "http://a.test/b"}
	for cut := range len(text) {
		near, far := net.Pipe()
		var sent []string
		c := &recordedConn{Conn: near, sent: func(url []byte) { sent = append(sent, string(url)) }}
		got := make(chan string, 1)
		go func() {
			all, _ := io.ReadAll(far)
			got <- string(all)
		}()
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := io.WriteString(c, part); n != len(part) || err != nil {
				t.Fatalf("Write = %d, %v; want %d", n, err, len(part))
			}
		}
		near.Close()
		if !slices.Equal(sent, want) {
			t.Errorf("cut at %d: sent %q, want %q", cut, sent, want)
		}
		if all := <-got; all != text {
			t.Errorf("cut at %d: %q came through", cut, all)
		}
	}
}

func TestLineRecorderAccepts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	sent := make(chan string, 1)
	recorder := lineRecorder{Listener: l, sent: func(url []byte) { sent <- string(url) }}
	client, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer client.Close()
	conn, err := recorder.Accept()
	must(t, err)
	defer conn.Close()
	if _, err := io.WriteString(conn, "0.0.1 7 127.77.0.1 http://a.test/\n"); err != nil {
		t.Fatal(err)
	}
	if url := <-sent; url != "http://a.test/" {
		t.Errorf("sent %q", url)
	}
	l.Close()
	if _, err := recorder.Accept(); err == nil {
		t.Error("Accept on a closed listener: no error")
	}
}
