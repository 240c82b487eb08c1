package urlserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/urlserver/engine"
)

// hear reads lines until so many answers and so many documents have come. It says that the
// documents are done.
func (f *fake) hear(answers, docs int) (list []string) {
	f.t.Helper()
	for len(list) < answers || docs > 0 {
		words := f.next()
		if words[0] == "PUT" || words[0] == "COUNT" {
			list = append(list, strings.Join(words, " "))
		} else {
			docs--
			f.say("%s DONE 200", words[0])
		}
	}
	return list
}

// TestVerbsCutAtEveryByte says each verb over TCP, in two parts that are cut at each byte in turn.
func TestVerbsCutAtEveryByte(t *testing.T) {
	r := newRig(t, nil)
	defer r.stop()
	const text = "PAYLOAD\r\nROOM 0\r\nPUT a {\"url\":\"http://127.0.0.1/CUT\"}\n" +
		"PUT b {\"url\":\"http://127.0.0.1/CUT\",\"priority\":3}\n" +
		"PUT c {\"url\":\"nonsense\"}\nPUT d nonsense\nCOUNT e CRAWL\nCOUNT !~ no-such-crawl\nPUT f {\"url\":" +
		"\"http://127.0.0.1/CUT\",\"crawl\":\"CRAWL\",\"doc_id\":\"CRAWL-d\"," +
		"\"payload\":\"aGk=\",\"unique\":\"u\"}\nPAYLOAD\nROOM 1\n"
	for cut := range len(text) {
		says := strings.NewReplacer("CUT", fmt.Sprintf("%03d", cut), "CRAWL", fmt.Sprintf("%05d", cut)).Replace(text)
		s := r.spider()
		s.conn.Write([]byte(says[:cut]))
		time.Sleep(time.Millisecond) // usually the daemon reads the parts by themselves
		s.conn.Write([]byte(says[cut:]))
		got := s.hear(7, 2)
		want := []string{
			"PUT a new", "PUT b known", "PUT c invalid", "PUT d invalid",
			"", // it is the first of its crawl, or has been counted before
			"COUNT !~ 0 0 0 0", fmt.Sprintf("PUT f new %05d-d", cut),
		}
		counts := strings.TrimPrefix(got[4], "COUNT e ")
		if !slices.Contains([]string{"0 0 0 0", "1 0 0 0", "0 1 0 0", "0 0 0 1"}, counts) {
			t.Errorf("cut at %d: %q", cut, got[4])
		}
		if want[4] = got[4]; !slices.Equal(got, want) {
			t.Fatalf("cut at %d: answers %q; want %q", cut, got, want)
		}
		s.conn.Close()
	}
	if st, _ := r.d.Status(t.Context()); st.BadLines != 0 {
		t.Errorf("%d bad lines", st.BadLines)
	}
}

// TestPutCountBack has one spider put, count, fetch and give back over its one connection.
func TestPutCountBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		b := (&bubble{t: t, store: store}).start(nil, Parts{Index: store, Store: store})
		defer b.stopped()
		s := b.spider("ROOM 0")
		ask := func(line string) string {
			t.Helper()
			s.say("%s", line)
			answer, err := s.in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSuffix(answer, "\n")
		}
		for _, c := range [][2]string{
			{"COUNT 1", "COUNT 1 0 0 0 0"},
			{`PUT 2 {"url":"http://10.0.0.1/a b"}`, "PUT 2 new"},
			{`PUT 3 {"url":"http://10.0.0.1/a%20b"}`, "PUT 3 known"},
			{`PUT 4 {"url":"http://10.0.0.1/c","crawl":"other","doc_id":"mine"}`, "PUT 4 new mine"},
			{`PUT 5 {"url":"http://10.0.0.1/d","metadata":{"appid":7}}`, "PUT 5 invalid"},
			{`PUT 6 {"doc_id":"none"}`, "PUT 6 invalid"},
			{`PUT 7 {}`, "PUT 7 invalid"},
		} {
			if got := ask(c[0]); got != c[1] {
				t.Errorf("%s: %q; want %q", c[0], got, c[1])
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := ask("COUNT 8"); got != "COUNT 8 0 2 0 0" { // the slots have them, no spider takes any
			t.Errorf("%q", got)
		}
		s.say("ROOM 1")
		trans, _ := s.line()
		s.say("%s BACK", trans)
		trans, _ = s.line()
		s.say("%s DONE 200", trans)
		trans, _ = s.line()
		time.Sleep(time.Second)
		synctest.Wait()
		ended, inFlight := " 0 0 0 1", " 0 1 0 0"
		switch other, usual := ask("COUNT 9 other"), ask("COUNT 9 DEFAULT"); {
		case other == "COUNT 9"+ended && usual == "COUNT 9"+inFlight:
		case other == "COUNT 9"+inFlight && usual == "COUNT 9"+ended:
		default:
			t.Errorf("%q, %q; want one document ended and one in flight", other, usual)
		}
		if got := ask("COUNT 11"); got != "COUNT 11 0 1 0 1" {
			t.Errorf("%q; want one in flight and one ended", got)
		}
		s.say("%s DONE 200", trans)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := ask("COUNT 12"); got != "COUNT 12 0 0 0 2" {
			t.Errorf("%q; want two ended", got)
		}
		s.conn.Close()
	})
}

// TestAskWithoutStore asks a daemon whose index is elsewhere.
func TestAskWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		defer b.stopped()
		s := b.spider("COUNT a", `PUT b {"url":"http://10.0.0.1/"}`, "PUT c {}")
		for _, want := range []string{"COUNT a fail\n", "PUT b fail\n", "PUT c invalid\n"} {
			if got, err := s.in.ReadString('\n'); got != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
		s.conn.Close()
	})
}

// TestVerbsOfOtherForms: what is nearly a verb is a bad line, also as the first line.
func TestVerbsOfOtherForms(t *testing.T) {
	for _, line := range []string{
		"ROOM", "ROOM ", "ROOM -1", "ROOM 1 ", "ROOM x", "ROOM 1 2", "room 1",
		"PUT", "PUT a", "PUT  {}", "PUT ä {}", "PUT " + strings.Repeat("t", 33) + " {}",
		"COUNT", "COUNT ", "COUNT a b c", "COUNT a ", "COUNT " + strings.Repeat("t", 33),
		"PAYLOAD ", "PAYLOAD 1", "payload", "PAYLOADS",
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, nil)
			defer b.stopped()
			b.index.offer("0 http://10.0.0.1/")
			s := b.spider()
			trans, _ := s.line()
			s.say("%s WORKING", trans)
			s.say("%s", line)
			synctest.Wait()
			if st, _ := b.d.Status(t.Context()); st.BadLines != 1 || len(st.Spiders) != 1 {
				t.Errorf("%q: %d bad lines, %d spiders", line, st.BadLines, len(st.Spiders))
			}
			first := b.spider(line)
			synctest.Wait()
			if st, _ := b.d.Status(t.Context()); st.BadLines != 2 || len(st.Spiders) != 2 {
				t.Errorf("%q first: %d bad lines, %d spiders; want 2 and 2", line, st.BadLines, len(st.Spiders))
			}
			first.conn.Close()
			s.conn.Close()
		})
	}
}

// TestSlowStore has a spider put faster than the store takes it. Its lines wait with TCP; other
// spiders are served meanwhile.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stuckStore{Store: memory.New(), release: make(chan struct{})}
		b := (&bubble{t: t}).start(nil, Parts{Index: store, Store: store})
		defer b.stopped()
		eager := b.spider("ROOM 0")
		written := 0
		go func() {
			line := []byte(`PUT t {"url":"http://10.0.0.1/` + strings.Repeat("x", 1000) + `"}` + "\n")
			for ; written < 1000; written++ {
				if _, err := eager.conn.Write(line); err != nil {
					return
				}
			}
		}()
		go func() {
			for {
				if _, err := eager.in.ReadString('\n'); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if written > 100 {
			t.Errorf("%d puts of a kilobyte were read while the store took none", written)
		}
		var p docindex.Puts
		p.Add(docindex.Put{URL: []byte("http://10.0.0.2/")})
		if _, err := store.Store.Put(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		other := b.spider()
		trans, _ := other.line()
		other.say("%s DONE 200", trans)
		close(store.release)
		time.Sleep(time.Second)
		synctest.Wait()
		if written != 1000 {
			t.Errorf("%d puts were read when the store went on; want all", written)
		}
		eager.conn.Close()
		other.conn.Close()
	})
}

// stuckStore takes no puts before release is closed.
type stuckStore struct {
	*memory.Store
	release chan struct{}
}

func (s *stuckStore) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	<-s.release
	return s.Store.Put(ctx, p)
}

// TestOldSpider: what a spider of before is sent is byte for byte what it was.
func TestOldSpider(t *testing.T) {
	store := memory.New()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := newRigOver(t, l, Parts{Index: store, Store: store}, func(cfg *configs.Config) { cfg.ReqHostPerSec = 100 })
	defer r.stop()
	var p docindex.Puts
	for i, u := range []string{"http://127.0.0.1/1", "http://127.0.0.2:8080/2?x=y", "http://[::ffff:127.0.0.3]/"} {
		if err := p.Add(docindex.Put{URL: []byte(u), DocID: fmt.Append(nil, "doc-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	var got []string
	for range 3 {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		trans, rest, _ := strings.Cut(line, " ")
		if strings.Trim(trans, "0123456789.") != "" || strings.Count(trans, ".") != 2 {
			t.Errorf("TRANS_ID %q", trans)
		}
		got = append(got, rest)
		fmt.Fprintf(conn, "%s WORKING\r\n%s DONE 200\n", trans, trans)
	}
	slices.Sort(got)
	want := []string{"doc-0 127.0.0.1 http://127.0.0.1/1\n", "doc-1 127.0.0.2 http://127.0.0.2:8080/2?x=y\n",
		"doc-2 127.0.0.3 http://[::ffff:7f00:3]/\n"}
	if !slices.Equal(got, want) {
		t.Errorf("lines %q; want %q", got, want)
	}
	conn.(*net.TCPConn).CloseWrite()
	if rest, err := in.ReadString('\n'); rest != "" {
		t.Errorf("after its last DONE it is sent %q, %v", rest, err)
	}
}

// TestDoneSaysMore has a spider tell where a redirect goes to: that is put for the same crawl,
// application and spider before the document counts as ended.
func TestDoneSaysMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scoped.New(memory.New())
		index := &heard{Store: store}
		b := (&bubble{t: t}).start(nil, Parts{Index: index, Store: store})
		defer b.stopped()
		s := b.spider("SPIDER s", `PUT 1 {"url":"http://10.0.0.1/a","crawl":"c","doc_id":"a",`+
			`"metadata":{"appid":["x"],"spiderid":["s"],"more":["y"]}}`)
		for _, c := range []struct {
			url, says string
			change    docindex.Change
		}{
			{"http://10.0.0.1/a", "301 changed=1 bytes=5 location=http://10.0.0.1/b#part", docindex.Modified},
			{"http://10.0.0.1/b", "302 7 location=/relative", docindex.ChangeUnknown},
		} {
			var line string
			for !strings.HasSuffix(line, c.url+"\n") {
				var err error
				if line, err = s.in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			trans, _, _ := strings.Cut(line, " ")
			s.say("%s DONE %s", trans, c.says)
			time.Sleep(time.Second)
			synctest.Wait()
			if got := index.last.Change; got != c.change {
				t.Errorf("%s: change %v; want %v", c.says, got, c.change)
			}
		}
		d, err := store.Document(t.Context(), index.last.DocID)
		owner := string(docindex.OwnerOf(d.Metadata))
		if err != nil || string(d.Crawl) != "c" || d.Depth != 1 || owner != `{"appid":["x"],"spiderid":["s"]}` {
			t.Errorf("the target is of crawl %q and %s, %v", d.Crawl, d.Metadata, err)
		}
		n, err := store.Count(t.Context(), nil)
		if err != nil || n.Completed != 2 || n.Scheduled+n.InTransit != 0 {
			t.Errorf("%+v, %v; want both ended, and no third document", n, err)
		}
		if st, _ := b.d.Status(t.Context()); st.Bytes != 5 || st.BadLines != 0 {
			t.Errorf("%d bytes, %d bad lines", st.Bytes, st.BadLines)
		}
		s.conn.Close()
	})
}

// TestRedirectsWaitForRoom has an index without room for the target of a redirect: the outcomes of other
// documents go on, and that of the redirect comes when there is room.
func TestRedirectsWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fullStore{Store: memory.New()}
		b := (&bubble{t: t}).start(func(c *configs.Config) { c.DocIndex.MaxRetry = time.Second },
			Parts{Index: store, Store: store})
		defer b.stopped()
		var puts docindex.Puts
		for i := range 6 {
			_ = puts.Add(docindex.Put{URL: fmt.Appendf(nil, "http://10.0.0.%d/", i), DocID: fmt.Appendf(nil, "d%d", i)})
		}
		if _, err := store.Put(t.Context(), &puts); err != nil {
			t.Fatal(err)
		}
		store.full.Store(true)
		s := b.spider()
		for range 6 {
			if trans, id := s.line(); id == "d1" || id == "d4" {
				s.say("%s DONE 301 location=http://10.1.0.1/to-%s", trans, id)
			} else {
				s.say("%s DONE 200", trans)
			}
		}
		for _, c := range []struct {
			full                           bool
			completed, scheduled, outcomes int
		}{{true, 4, 0, 2}, {false, 6, 2, 0}} {
			store.full.Store(c.full)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			n, err := store.Count(t.Context(), nil)
			st, _ := b.d.Status(t.Context())
			if err != nil || int(n.Completed) != c.completed || st.OutcomesWaiting != c.outcomes {
				t.Errorf("full %t: %+v, %v, and %d outcomes wait; want %d completed, and %d to wait", c.full, n, err,
					st.OutcomesWaiting, c.completed, c.outcomes)
			}
			if targets := int(n.Scheduled + n.InTransit); !c.full && targets != c.scheduled {
				t.Errorf("%d targets were put; want %d", targets, c.scheduled)
			}
		}
		s.conn.Close()
	})
}

// TestGapWhileRedirectsWait has the outcome of a redirect wait for room. The index knows at once which gap its host
// asks for. When the outcome comes, the gap stays that a later one of the same host asked for.
func TestGapWhileRedirectsWait(t *testing.T) {
	for _, says := range [][]string{{"503 location=http://10.1.0.1/"}, {"301 location=http://10.1.0.1/", "503"}} {
		synctest.Test(t, func(t *testing.T) {
			store := &fullStore{Store: memory.New()}
			b := (&bubble{t: t}).start(func(c *configs.Config) { c.DocIndex.MaxRetry = time.Second },
				Parts{Index: store, Store: store})
			defer b.stopped()
			var puts docindex.Puts
			for i := range says {
				_ = puts.Add(docindex.Put{URL: fmt.Appendf(nil, "http://10.0.0.1/%d", i)})
			}
			if _, err := store.Put(t.Context(), &puts); err != nil {
				t.Fatal(err)
			}
			store.full.Store(true)
			s := b.spider()
			for _, says := range says {
				trans, _ := s.line()
				s.say("%s DONE %s", trans, says)
			}
			for room := range 2 {
				time.Sleep(time.Minute)
				synctest.Wait()
				h, err := store.HostStatus(t.Context(), []byte("10.0.0.1"))
				want := len(says) - 1 + room
				if err != nil || int(h.Completed) != want || h.Site.Gap != 2*second {
					t.Errorf("%s: %d completed, gap %v, %v; want %d and 2s", says, h.Completed, h.Site.Gap, err, want)
				}
				store.full.Store(false)
			}
			s.conn.Close()
		})
	}
}

// TestTakeRedirects: the traces of documents stay with their outcomes.
func TestTakeRedirects(t *testing.T) {
	var out docindex.Outcomes
	var s split
	var ends []engine.TraceEnd
	for i := range 6 {
		o := docindex.Outcome{DocID: fmt.Append(nil, i), URL: []byte("http://10.0.0.1/"), Kind: docindex.Done}
		if i%3 == 1 {
			o.Location = []byte("http://10.0.0.2/")
		}
		if out.Add(o); i != 2 {
			ends = append(ends, engine.TraceEnd{At: time.Duration(i), Outcome: i + 1})
		}
	}
	taken := s.takeRedirects(&out, &ends)
	for _, c := range []struct {
		out  *docindex.Outcomes
		ends []engine.TraceEnd
		want string
	}{{&out, ends, "0 2 3 5 traces 0 3 5"}, {&s.redirects, taken, "1 4 traces 1 4"}} {
		var got []string
		for i := range c.out.Len() {
			got = append(got, string(c.out.At(i).DocID))
		}
		got = append(got, "traces")
		for _, e := range c.ends {
			got = append(got, string(c.out.At(e.Outcome-1).DocID))
			if fmt.Sprint(int(e.At)) != got[len(got)-1] {
				t.Errorf("the trace of %d is with document %s", e.At, got[len(got)-1])
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("got %v; want %s", got, c.want)
		}
	}
}

// fullStore has no room for new URLs while it is full.
type fullStore struct {
	*memory.Store
	full atomic.Bool
}

func (f *fullStore) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	if f.full.Load() {
		return docindex.PutResult{}, fmt.Errorf("the index is %w", docindex.ErrFull)
	}
	return f.Store.Put(ctx, p)
}

// heard keeps the last outcome.
type heard struct {
	*scoped.Store
	last docindex.Outcome
}

func (h *heard) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	if o.Len() > 0 {
		h.last = o.At(o.Len() - 1)
		h.last.DocID = slices.Clone(h.last.DocID)
		if len(h.last.Location) > 0 {
			if n, err := h.Store.Count(ctx, nil); err != nil || n.Scheduled+n.InTransit+n.Completed < 2 {
				return fmt.Errorf("an outcome came before its target was put: %+v, %w", n, err)
			}
		}
	}
	return h.Store.Outcomes(ctx, o)
}
