package spider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

func newPair() (ours, theirs net.Conn) { return net.Pipe() }

// roundTrip is an index without a network.
type roundTrip func(*http.Request, string) (int, string)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, answer := f(r, string(body))
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Request: r,
		Header: http.Header{"Location": r.Header["X-Location"]},
		Body:   io.NopCloser(strings.NewReader(answer)),
	}, nil
}

// indexWith replaces the index of s by answer.
func indexWith(s *Spider, answer roundTrip) { s.index.client.Transport = answer }

func newTestIndex(answer roundTrip) (*index, *counters) {
	count := new(counters)
	x := newIndex("http://index.test/base/", "secret", zerolog.Nop(), count)
	x.client.Transport = answer
	return x, count
}

func numbered(from, to int) (urls []string) {
	for i := from; i < to; i++ {
		urls = append(urls, fmt.Sprintf("http://a.test/%d", i))
	}
	return urls
}

func TestIndexRequest(t *testing.T) {
	x, count := newTestIndex(func(r *http.Request, body string) (int, string) {
		for name, c := range map[string]struct{ got, want string }{
			"method": {got: r.Method, want: "POST"},
			"URL":    {got: r.URL.String(), want: "http://index.test/base/docindex/urls"},
			"type":   {got: r.Header.Get("Content-Type"), want: "application/x-ndjson"},
			"token":  {got: r.Header.Get("Authorization"), want: "Bearer secret"},
			"body":   {got: body, want: "http://a.test/0\nhttp://a.test/1\nhttp://a.test/2\n"},
		} {
			if c.got != c.want {
				t.Errorf("%s is %q; want %q", name, c.got, c.want)
			}
		}
		return 200, `{"new": 1, "known": 1, "invalid": 1, "errors": ["line 2"]}`
	})
	if err := x.put(t.Context(), numbered(0, 3)); err != nil {
		t.Fatal(err)
	}
	if taken, refused := count.linksTaken.Load(), count.linksRefused.Load(); taken != 2 || refused != 1 {
		t.Errorf("%d taken, %d refused; want 2, 1", taken, refused)
	}
}

func TestIndexOfNothing(t *testing.T) {
	x, _ := newTestIndex(func(*http.Request, string) (int, string) {
		t.Error("a request for no links")
		return 200, ""
	})
	if err := x.put(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// Every failure except a refusal is tried again until it succeeds, after pauses of up to 5 s.
func TestIndexTriesAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
	}{
		{name: "no answer", status: 0}, {name: "redirect", status: 302}, {name: "no token", status: 401},
		{name: "not there", status: 404}, {name: "too many", status: 429}, {name: "broken", status: 500},
		{name: "down", status: 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Duration
				start := time.Now()
				x, count := newTestIndex(func(r *http.Request, body string) (int, string) {
					if body != "http://a.test/0\nhttp://a.test/1\n" {
						t.Errorf("request %d has %q", len(at), body)
					}
					at = append(at, time.Since(start))
					if len(at) <= 8 {
						return c.status, "some text"
					}
					return 204, ""
				})
				if err := x.put(t.Context(), numbered(0, 2)); err != nil {
					t.Fatal(err)
				}
				want := "[0s 100ms 300ms 700ms 1.5s 3.1s 6.3s 11.3s 16.3s]"
				if fmt.Sprint(at) != want || count.linksTaken.Load() != 2 {
					t.Errorf("asked at %v, %d taken; want %s, 2", at, count.linksTaken.Load(), want)
				}
			})
		})
	}
}

// One URL that makes the index refuse a request does not affect other URLs.
func TestIndexRefusal(t *testing.T) {
	for _, status := range []int{400, 413, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var taken []string
			x, count := newTestIndex(func(_ *http.Request, body string) (int, string) {
				if strings.Contains(body, "/17\n") || strings.Contains(body, "/99\n") {
					return status, `{"error": "no"}`
				}
				taken = append(taken, strings.Fields(body)...)
				return 200, "{}"
			})
			if err := x.put(t.Context(), numbered(0, 100)); err != nil {
				t.Fatal(err)
			}
			want := append(numbered(0, 17), numbered(18, 99)...)
			if strings.Join(taken, " ") != strings.Join(want, " ") {
				t.Errorf("taken are %v; want all but two, in order", taken)
			}
			if got := count.linksRefused.Load(); got != 2 {
				t.Errorf("%d refused; want 2", got)
			}
		})
	}
}

// Links added during a request share the next one. Requests are bounded.
func TestIndexSharesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		x, _ := newTestIndex(func(_ *http.Request, body string) (int, string) {
			sizes = append(sizes, strings.Count(body, "\n"))
			time.Sleep(time.Second)
			return 200, ""
		})
		var putting sync.WaitGroup
		for i := range 301 {
			putting.Go(func() {
				if err := x.put(t.Context(), numbered(5*i, 5*i+5)); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait() // the first request is open
			}
		}
		putting.Wait()
		sum := 0
		for _, n := range sizes {
			sum += n
		}
		// The last caller may add its links when the third request has just started.
		if len(sizes) < 3 || len(sizes) > 4 || sizes[0] != 5 || sizes[1] != maxBatch || sum != 301*5 {
			t.Errorf("requests of %v links; want one of 5, one of %d, and the other 500 in one, or nearly",
				sizes, maxBatch)
		}
	})
}

// No link is lost and memory is bounded, however slow the index is, however many links there are,
// and whichever callers give up.
func TestIndexUnderPressure(t *testing.T) {
	const pages, each = 50, 700
	synctest.Test(t, func(t *testing.T) {
		got := make(map[string]bool)
		requests := 0
		var x *index
		x, _ = newTestIndex(func(_ *http.Request, body string) (int, string) {
			time.Sleep(100 * time.Millisecond)
			if n := strings.Count(body, "\n"); n > maxBatch || len(body) > maxBatchBytes {
				t.Errorf("a request of %d links, %d bytes", n, len(body))
			}
			if requests++; requests%3 == 0 {
				return 503, ""
			}
			for _, u := range strings.Fields(body) {
				got[u] = true
			}
			return 200, ""
		})
		long := strings.Repeat("x", 3000)
		var putting sync.WaitGroup
		for i := range pages {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			urls := numbered(each*i, each*i+each)
			urls[0] += long
			putting.Go(func() {
				if err := x.put(ctx, urls); i%5 != 0 && err != nil {
					t.Error(err)
				}
			})
			if i%5 == 0 { // its ctx ends at a random time
				putting.Go(func() {
					time.Sleep(time.Duration(i*7+1) * time.Millisecond)
					cancel()
				})
			}
		}
		putting.Wait()
		for i := range pages {
			if i%5 == 0 {
				continue
			}
			for _, u := range numbered(each*i+1, each*i+each) {
				if !got[u] {
					t.Fatalf("%s of page %d is lost", u, i)
				}
			}
		}
		if n := cap(x.pending.lines) + cap(x.sending.lines); n > 4*maxBatchBytes {
			t.Errorf("buffers have grown to %d bytes", n)
		}
	})
}

func TestIndexStopsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := newTestIndex(func(*http.Request, string) (int, string) { return 500, "" })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		if err := x.put(ctx, numbered(0, 1)); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != 10*time.Second {
			t.Errorf("put = %v after %v; want %v after 10s", err, time.Since(start), context.DeadlineExceeded)
		}
	})
}

func TestHalves(t *testing.T) {
	for n := 2; n < 9; n++ {
		whole := batch{lines: []byte(strings.Join(numbered(0, n), "\n") + "\n"), n: n}
		first, second := whole.halves()
		if string(first.lines)+string(second.lines) != string(whole.lines) || first.n+second.n != n ||
			first.n == 0 || second.n == 0 {
			t.Errorf("halves of %d: %d %q, %d %q", n, first.n, first.lines, second.n, second.lines)
		}
	}
}
