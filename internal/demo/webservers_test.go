package demo

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestListenWebServers(t *testing.T) {
	f, err := listenWebServers(3)
	must(t, err)
	defer f.close()
	for i, l := range f.listeners {
		if want := netip.AddrPortFrom(loopback(i+1), f.port).String(); l.Addr().String() != want {
			t.Errorf("listener %d at %v, want %s", i, l.Addr(), want)
		}
	}
	for _, n := range []int{0, maxAddrs + 1} {
		if _, err := listenWebServers(n); err == nil {
			t.Errorf("%d addresses: no error", n)
		}
	}
}

func TestSend(t *testing.T) {
	tests := []struct {
		name string
		a    answer
		head map[string]string
		body string
	}{
		{name: "page", a: answer{status: 200, kind: "text/html", body: []byte("<p>")}, body: "<p>",
			head: map[string]string{"Content-Type": "text/html", "Content-Length": "3"}},
		{name: "empty", a: answer{status: 200, kind: "text/plain"},
			head: map[string]string{"Content-Type": "text/plain", "Content-Length": "0"}},
		{name: "redirect", a: goTo(308, "/x"), head: map[string]string{"Location": "/x",
			"Content-Length": "0"}},
		{name: "later", a: tryLater(503, 7), head: map[string]string{"Retry-After": "7",
			"Content-Type": "text/plain", "Content-Length": "20"}, body: "Service Unavailable\n"},
		{name: "tagged", a: answer{status: 200, robotsTag: "nofollow", body: []byte("x")},
			head: map[string]string{"X-Robots-Tag": "nofollow", "Content-Length": "1"}, body: "x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			test.a.send(w, func(answer) {})
			got := map[string]string{}
			for name, values := range w.Result().Header {
				if len(values) > 0 {
					got[name] = values[0]
				}
			}
			if w.Code != test.a.status || !maps.Equal(got, test.head) || w.Body.String() != test.body {
				t.Errorf("%d %v %q, want %d %v %q", w.Code, got, w.Body, test.a.status, test.head, test.body)
			}
		})
	}
}

// TestEndIsBeforeTheLastByte checks that end is called before the last byte is written: a client
// that has the whole answer may send its next request, and this one must not count as open then.
func TestEndIsBeforeTheLastByte(t *testing.T) {
	for _, size := range []int{0, 1, 2, 100_000} {
		w := httptest.NewRecorder()
		had := -1
		a := answer{status: 200, body: []byte(strings.Repeat("x", size))}
		a.send(w, func(answer) { had = w.Body.Len() })
		if had != max(size-1, 0) || w.Body.Len() != size {
			t.Errorf("%d bytes: ended after %d, %d in all", size, had, w.Body.Len())
		}
	}
}

// startWebServers serves w on one address until the test ends. get requests a page of a host.
func startWebServers(t *testing.T, sites map[string]site) (get func(ctx context.Context, host,
	target string) (int, string, error), o *oracle) {
	t.Helper()
	f, err := listenWebServers(1)
	must(t, err)
	var hosts []host
	for name, s := range sites {
		hosts = append(hosts, host{name: name, addr: loopback(1), site: s})
	}
	w := newWeb("", f.port, hosts)
	o = newOracle(w, ms)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.serve(ctx, w, o) }()
	client := http.Client{Transport: new(http.Transport)}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return func(ctx context.Context, host, target string) (int, string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet,
			origin(loopback(1).String(), f.port)+target, nil)
		must(t, err)
		req.Host = strings.TrimPrefix(origin(host, f.port), "http://")
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}, o
}

func TestWebServersKnowItsHosts(t *testing.T) {
	made := &syntheticSite{answers: map[string]answer{"/x?y": plain(http.StatusGone)}}
	get, o := startWebServers(t, map[string]site{"a.test": stub{}, "b.test": made, "dead.test": nil})
	tests := []struct {
		host, target string
		status       int
	}{
		{host: "a.test", target: "/", status: http.StatusOK},
		{host: "b.test", target: "/x?y", status: http.StatusGone},
		{host: "b.test", target: "/x", status: http.StatusNotFound},
		{host: "c.test", target: "/", status: http.StatusMisdirectedRequest},
		{host: "dead.test", target: "/", status: http.StatusMisdirectedRequest},
	}
	for _, test := range tests {
		status, _, err := get(t.Context(), test.host, test.target)
		if err != nil || status != test.status {
			t.Errorf("%s%s: %d, %v; want %d", test.host, test.target, status, err, test.status)
		}
	}
	if _, others := o.counts(); others != 3 { // none of them was sent by a daemon
		t.Errorf("%d requests counted, want 3", others)
	}
}

// asked is a site that reports a request, and never answers it.
type asked struct {
	stub
	tell chan struct{}
}

func (s asked) answer(string) answer {
	s.tell <- struct{}{}
	return answer{status: 200, takes: 1 << 62}
}

func TestSlowAnswerEndsWithItsConnection(t *testing.T) {
	tell := make(chan struct{})
	get, o := startWebServers(t, map[string]site{"a.test": asked{tell: tell}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := get(ctx, "a.test", "/")
		ended <- err
	}()
	<-tell
	if rows := o.rows(); rows[0].open != 1 {
		t.Errorf("%d open while it is answered, want 1", rows[0].open)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a cancelled request has an answer")
	}
	// The clean-up fails if the server does not end by itself.
}
