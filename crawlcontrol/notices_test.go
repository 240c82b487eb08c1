package crawlcontrol_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// A notice that was not acknowledged is sent again, also by the next process.
func TestNoticesSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		w := unacknowledged{t: t, path: path}
		w.process(func(m *crawlcontrol.Handler, store *disk.Store) {
			for _, text := range []string{
				fmt.Sprintf(`{"url":"http://a.test/","appid":"testapp","crawlid":"late","expires":%d}`,
					time.Now().Unix()+5),
				`{"url":"http://b.test/","appid":"testapp","crawlid":"done"}`,
			} {
				if _, _, err := m.Do(t.Context(), [][]byte{[]byte(text)}); err != nil {
					t.Fatal(err)
				}
			}
			end(t, store, "http://b.test/")
			time.Sleep(20 * time.Second)
		})
		both := []string{
			`"action":"expired","total_expired":1,"spiderid":"link","appid":"testapp","crawlid":"late"`,
			`"action":"completed","total_done":1,"spiderid":"link","appid":"testapp","crawlid":"done"`,
		}
		w.want("when it happens", both...)
		w.process(func(*crawlcontrol.Handler, *disk.Store) { time.Sleep(20 * time.Second) })
		w.want("since none was acknowledged", both...)
		w.ack = true
		w.process(func(*crawlcontrol.Handler, *disk.Store) { time.Sleep(20 * time.Second) })
		w.want("acknowledged now", both...)
		w.process(func(*crawlcontrol.Handler, *disk.Store) { time.Sleep(20 * time.Second) })
		w.want("after the acknowledgement")
	})
}

// unacknowledged runs daemons one after the other on a store, and records their notices.
type unacknowledged struct {
	t    *testing.T
	path string
	ack  bool // notices are acknowledged

	mu      sync.Mutex
	notices []string
}

func (w *unacknowledged) process(do func(*crawlcontrol.Handler, *disk.Store)) {
	store, err := disk.Open(disk.Config{Path: w.path, Log: zerolog.Nop()})
	if err != nil {
		w.t.Fatal(err)
	}
	controller := crawlcontrol.NewController(store, &fakeSlots{}, zerolog.Nop())
	ctx, cancel := context.WithCancel(w.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		controller.Run(ctx, 10*time.Second, func(r crawlcontrol.Reply, acknowledge func()) {
			w.mu.Lock()
			defer w.mu.Unlock()
			text, _, _ := strings.Cut(string(r.Body), `,"server_time"`)
			w.notices = append(w.notices, text[1:])
			if w.ack {
				acknowledge()
			}
		})
	})
	do(crawlcontrol.New(controller, 10), store)
	cancel()
	watching.Wait()
	if err := store.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// end takes candidates, except those of a.test, and ends the document of url.
func end(t *testing.T, store docindex.Store, url string) {
	t.Helper()
	var b docindex.Batch
	if err := store.Candidates(t.Context(), 10, []string{"a.test"}, &b); err != nil {
		t.Fatal(err)
	}
	var o docindex.Outcomes
	for i := range b.Len() {
		if c := b.At(i); string(c.URL) == url {
			o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL})
		}
	}
	if err := store.Outcomes(t.Context(), &o); err != nil || o.Len() != 1 {
		t.Fatalf("%d outcomes of %s, %v; want 1", o.Len(), url, err)
	}
}

// want compares the notices since the last call.
func (w *unacknowledged) want(when string, notices ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.notices, notices) {
		w.t.Errorf("%s: notices\n%q; want\n%q", when, w.notices, notices)
	}
	w.notices = nil
}
