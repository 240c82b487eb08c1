package robots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestLongBodiesWaitForAPlace: a server sends half of a long file, then nothing more, and so
// occupies the only place. Another long file waits longer than the timeout and still arrives. Short
// files do not wait.
func TestLongBodiesWaitForAPlace(t *testing.T) {
	long := append([]byte("User-agent: *\nDisallow: /a\n"), bytes.Repeat([]byte("# nothing\n"), 5000)...)
	stuck := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stuck":
			w.Write(long[:len(long)/2])
			w.(http.Flusher).Flush()
			close(stuck)
			<-r.Context().Done()
		case "/short":
			fmt.Fprint(w, "User-agent: *\nDisallow: /b\n")
		default:
			w.Write(long)
		}
	}))
	defer server.Close()
	c := NewClient(ClientConfig{UserAgent: "x", Timeout: 2 * time.Second})
	c.long = make(chan struct{}, 1)
	addr := netip.MustParseAddr("127.0.0.1")
	get := func(path string) Response {
		return c.Read(t.Context(), server.URL+path, addr, Policy{Agent: "x"},
			[][]byte{[]byte("/a"), []byte("/b")})
	}
	var group sync.WaitGroup
	group.Go(func() {
		if r := get("/stuck"); r.Status != 0 || !errors.Is(r.Err, context.DeadlineExceeded) {
			t.Errorf("stuck: %+v", r)
		}
	})
	<-stuck
	for len(c.long) == 0 { // until the client has read that much
		time.Sleep(time.Millisecond)
	}
	group.Go(func() {
		if r := get("/long"); r.Status != 200 || fmt.Sprint(r.Verdicts()) != "[false true]" {
			t.Errorf("long: %+v", r)
		}
	})
	if r := get("/short"); r.Status != 200 || fmt.Sprint(r.Verdicts()) != "[true false]" || r.Body != nil {
		t.Errorf("short: %+v", r)
	}
	group.Wait()
	if len(c.long) != 0 {
		t.Error("a place is not given back")
	}
}

// TestLackOfRoomIsNoFault: a lack of resources on this machine is not counted as the host's fault.
func TestLackOfRoomIsNoFault(t *testing.T) {
	for _, tc := range []struct {
		err  error
		busy bool
	}{
		{err: syscall.EMFILE, busy: true},
		{err: syscall.ENFILE, busy: true},
		{err: syscall.ECONNREFUSED},
	} {
		err := noFault(fmt.Errorf("dial: %w", tc.err))
		if errors.Is(err, ErrBusy) != tc.busy || !errors.Is(err, tc.err) {
			t.Errorf("%v: busy is %t", err, !tc.busy)
		}
		if !strings.Contains(err.Error(), "dial") {
			t.Errorf("%v does not say what failed", err)
		}
	}
}
