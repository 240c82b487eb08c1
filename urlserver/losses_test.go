package urlserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// onLoopback returns n URLs, each at an address of its own.
func onLoopback(n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://127.1.%d.%d/good", i/250, 1+i%250))
	}
	return urls
}

// works runs spiders one after the other, each until its connection ends. They answer all documents
// except the deadly one. Between two of them none is connected until the daemon holds nothing, or
// for the given time.
func (r *rig) works(deadly string, rest time.Duration, until func() bool) (lives int) {
	for !until() {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			r.t.Error(err)
			return lives
		}
		lives++
		over := time.AfterFunc(patience, func() { conn.Close() })
		stop := make(chan struct{})
		go func() {
			for !until() {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
			conn.Close()
		}()
		for in := bufio.NewScanner(conn); in.Scan(); {
			f := strings.Fields(in.Text())
			if deadly != "" && strings.Contains(in.Text(), deadly) {
				break
			}
			time.AfterFunc(50*time.Millisecond, func() { fmt.Fprintf(conn, "%s DONE 200\n", f[0]) })
		}
		close(stop)
		over.Stop()
		conn.Close()
		for end := time.Now().Add(rest); time.Now().Before(end) && r.store.Stats().InTransit > 0; {
			time.Sleep(time.Millisecond)
		}
	}
	return lives
}

// outcomesOf returns the number of outcomes of a kind.
func (r *rig) outcomesOf(kind docindex.Kind) int { return r.store.Stats().Outcomes[kind] }

// TestSpidersThatDieAtOnce: three spiders in a row die without sending anything. No document ends,
// and a fourth spider gets them all done. It waits a little for its first documents.
func TestSpidersThatDieAtOnce(t *testing.T) {
	t.Parallel()
	// so that no pause is longer than half of it
	r := newRig(t, func(cfg *configs.Config) { cfg.TimeoutSpiderStatus = 4 * time.Second })
	r.put(onLoopback(200)...)
	for range 3 {
		s := r.spider()
		s.next()
		s.conn.Close()
	}
	r.await("the spiders are named", func() bool {
		st, err := r.d.Status(t.Context())
		return err == nil && len(st.Notes) == 1 &&
			strings.Contains(st.Notes[0], "the last 3 connections of spiders at 127.0.0.1")
	})
	var done atomic.Bool
	go r.works("", 0, done.Load)
	r.await("all are done", func() bool { return r.outcomesOf(docindex.Done) == 200 })
	done.Store(true)
	if n := r.outcomesOf(docindex.Timeout); n != 0 {
		t.Errorf("%d documents ended as timeout; want none", n)
	}
	if st, err := r.d.Status(t.Context()); err != nil || len(st.Notes) != 0 {
		t.Errorf("notes %q (%v) after a spider has spoken; want none", st.Notes, err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// TestDeadlyURL has 500 good documents and one that kills its spider. That one ends as timeout, and
// no other. The same holds if URL Frontier clients share the index, which takes documents back
// while no spider is connected.
func TestDeadlyURL(t *testing.T) {
	t.Parallel()
	for _, frontier := range []string{"", "127.0.0.1:0"} { // nothing listens there; it is only a setting
		t.Run("frontier"+frontier, func(t *testing.T) { testDeadlyURL(t, frontier) })
	}
}

func testDeadlyURL(t *testing.T, frontier string) {
	r := newRig(t, func(cfg *configs.Config) { cfg.Frontier.Listen = frontier })
	urls := onLoopback(501)
	urls[250] = strings.Replace(urls[250], "good", "deadly", 1)
	r.put(urls...)
	lives := make(chan int, 1)
	go func() {
		lives <- r.works("deadly", 500*time.Millisecond,
			func() bool { return r.outcomesOf(docindex.Done)+r.outcomesOf(docindex.Timeout) == len(urls) })
	}()
	began := time.Now()
	r.await("all have ended",
		func() bool { return r.outcomesOf(docindex.Done)+r.outcomesOf(docindex.Timeout) == len(urls) })
	if done, timeout := r.outcomesOf(docindex.Done), r.outcomesOf(docindex.Timeout); done != 500 || timeout != 1 {
		t.Errorf("%d done, %d timeout; want 500 and 1", done, timeout)
	}
	t.Logf("after %v and %d spiders", time.Since(began), <-lives)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// TestSpiderThatResumes: a spider stops for longer than Timeout_Spider_Status with 200 lines in its
// socket. Its connection ends, and another spider gets all documents done. What it sends after it
// has resumed changes nothing.
func TestSpiderThatResumes(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *configs.Config) { cfg.TimeoutSpiderStatus = 2 * time.Second })
	still := r.spider()
	r.put(onLoopback(200)...)
	r.await("all lines are with the spider", func() bool {
		st, err := r.d.Status(t.Context())
		return err == nil && st.Slots.InFlight == 200
	})
	r.await("its connection has ended", func() bool {
		st, err := r.d.Status(t.Context())
		return err == nil && len(st.Spiders) == 0
	})
	var over atomic.Bool
	go r.works("", 0, over.Load)
	r.await("all are done", func() bool { return r.outcomesOf(docindex.Done) == 200 })
	still.conn.SetDeadline(time.Now().Add(patience))
	old, _ := io.ReadAll(still.in) // the data in its socket, and then the end or an error
	if n := strings.Count(string(old), "\n"); n > 200 {
		t.Errorf("%d lines came to the spider that stood still", n)
	}
	for line := range strings.Lines(string(old)) {
		if _, err := fmt.Fprintf(still.conn, "%s DONE 500\n", strings.Fields(line)[0]); err != nil {
			break
		}
	}
	over.Store(true)
	st := r.store.Stats()
	if st.Outcomes[docindex.Done] != 200 || st.Outcomes[docindex.Timeout] != 0 {
		t.Errorf("outcomes %v; want 200 done", st.Outcomes)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
