package urlserver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
)

// TestSpiderID: spiders announce their spiderid before the daemon sends a backlog that is due.
func TestSpiderID(t *testing.T) {
	for _, c := range []struct {
		name, token, first string
		want               []string // documents expected
		bad                int      // number of bad lines
	}{
		{name: "said", first: "SPIDER link", want: []string{"2"}},
		{name: "with CRLF", first: "SPIDER link\r", want: []string{"2"}},
		{name: "after AUTH", token: "secret", first: "AUTH secret\nSPIDER link", want: []string{"2"}},
		{name: "after an AUTH that nobody asked for", first: "AUTH a\nSPIDER link", want: []string{"2"}},
		{name: "of no document", first: "SPIDER none"},
		{name: "twice", first: "SPIDER link\nSPIDER other", want: []string{"2"}, bad: 1},
		{name: "another", first: "SPIDER other", want: []string{"3"}},
		{name: "late", first: "1.1.1 DONE\nSPIDER link", want: []string{"1", "2", "3"}, bad: 2},
		{name: "AUTH behind it", first: "SPIDER link\nAUTH a", want: []string{"2"}, bad: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, func(cfg *configs.Config) { cfg.Spider.Token = configs.Secret(c.token) })
				defer b.stopped()
				b.index.offer("1 http://10.0.0.1/", "2 http://10.0.0.2/ link", "3 http://10.0.0.3/ other")
				time.Sleep(time.Minute)
				s := b.spider()
				go s.conn.Write([]byte(c.first + "\n"))
				got := map[string]bool{}
				for range c.want {
					trans, id := s.line()
					s.say("%s DONE", trans)
					got[id] = true
				}
				time.Sleep(time.Minute)
				for _, id := range c.want {
					if !got[id] {
						t.Errorf("was sent %v; want %v", got, c.want)
					}
				}
				st, err := b.d.Status(t.Context())
				if err != nil || st.BadLines != uint64(c.bad) || st.Sent != uint64(len(c.want)) {
					t.Errorf("status: %d bad lines, %d sent, %v; want %d and %d", st.BadLines, st.Sent, err,
						c.bad, len(c.want))
				}
			})
		})
	}
}

// A SPIDER line that cannot be parsed ends the connection. Nothing is sent.
func TestBadSpiderID(t *testing.T) {
	for _, line := range []string{"SPIDER", "SPIDER ", "SPIDER a b", "SPIDER ü", "SPIDER " + strings.Repeat("x", 65)} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, nil)
			defer b.stopped()
			b.index.offer("1 http://10.0.0.1/")
			time.Sleep(time.Minute)
			s := b.spider()
			go s.conn.Write([]byte(line + "\n"))
			if rest := s.closed(); rest != "" {
				t.Errorf("%q: was sent %q; want nothing", line, rest)
			}
		})
	}
}

// A spider without SPIDER gets all documents, a moment after it has connected. A spider that
// announces a spiderid later gets those from then on.
func TestSpidersOfTwoKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		defer b.stopped()
		var docs []string
		for i := range 40 {
			docs = append(docs, fmt.Sprintf("%d http://10.0.0.%d/%d %s", i, i%4, i, []string{"", "link"}[i%2]))
		}
		b.index.offer(docs...)
		time.Sleep(time.Minute)
		began := time.Now()
		any, link := b.spider(), b.spider("SPIDER link")
		got := make(chan string)
		for name, s := range map[string]*pipeSpider{"any": any, "link": link} {
			go func() {
				for range 20 {
					trans, id := s.line()
					s.say("%s DONE", trans)
					got <- name + " " + id
				}
			}()
		}
		for range docs {
			var n int
			name, id, _ := strings.Cut(<-got, " ")
			if fmt.Sscan(id, &n); (n%2 == 1) != (name == "link") {
				t.Errorf("document %s went to %s", id, name)
			}
		}
		if took := time.Since(began); took != 9*second+100*time.Millisecond {
			t.Errorf("took %v; ten documents of each host take 9s, after 100ms", took)
		}
	})
}
