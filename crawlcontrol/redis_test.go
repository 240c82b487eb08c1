package crawlcontrol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/redis"
	"urlserver/internal/testkit/redistest"
)

// tellingSlots tell what they are to end, each once.
type tellingSlots struct {
	fakeSlots
	cancelled chan []string
	ended     sync.Map // by URL
}

func (s *tellingSlots) Cancel(_ context.Context, o *docindex.Outcomes) (int, error) {
	var all []string
	for i := range o.Len() {
		url := string(o.At(i).URL)
		if _, was := s.ended.LoadOrStore(url, true); !was {
			all = append(all, fmt.Sprintf("%v %s", o.At(i).Kind, url))
		}
	}
	if len(all) > 0 {
		s.cancelled <- all
	}
	return len(all), nil
}

// keepingDaemon is crawl control of a daemon.
type keepingDaemon struct {
	store      *redis.Store
	slots      *tellingSlots
	handler    *crawlcontrol.Handler
	controller *crawlcontrol.Controller
}

func startKeeping(t *testing.T, cfg redis.Config) *keepingDaemon {
	t.Helper()
	d := &keepingDaemon{store: redis.New(cfg), slots: &tellingSlots{cancelled: make(chan []string, 10)}}
	t.Cleanup(func() { d.store.Close() })
	for {
		_, err := d.store.Document(t.Context(), []byte("1"))
		if errors.Is(err, docindex.ErrUnknown) {
			break
		}
		t.Log(err) // a busy machine may not connect in time at once
	}
	d.controller = crawlcontrol.NewController(d.store, d.slots, zerolog.Nop())
	d.handler = crawlcontrol.New(d.controller, 10)
	return d
}

// do has the daemon handle a request, and returns its reply.
func (d *keepingDaemon) do(t *testing.T, text string) crawlcontrol.Reply {
	t.Helper()
	replies, _, err := d.handler.Do(t.Context(), [][]byte{[]byte(text)})
	if err != nil || len(replies) != 1 {
		t.Fatalf("%s: %d replies, %v", text, len(replies), err)
	}
	return replies[0]
}

// watch sends what the daemon tells of crawls that end, without the time.
func (d *keepingDaemon) watch(ctx context.Context, notices chan<- string) {
	d.controller.Run(ctx, time.Hour, func(r crawlcontrol.Reply, told func()) {
		told()
		text, _, _ := strings.Cut(string(r.Body), `,"server_time"`)
		notices <- text[1:]
	})
}

// Two daemons share an index in Redis: what one is asked to do with a crawl, the other does with
// what it has of it.
func TestKeepersShareRedis(t *testing.T) {
	cfg := redis.Config{Addrs: []string{redistest.Start(t).Addr()}, Lease: time.Hour,
		Janitor: 10 * time.Millisecond}
	var daemons [2]*keepingDaemon
	for i := range daemons {
		daemons[i] = startKeeping(t, cfg)
	}
	want := func(i int, text, part string) {
		t.Helper()
		if got := daemons[i].do(t, text); !strings.Contains(string(got.Body), part) {
			t.Errorf("%s: %s; want %s", text, got.Body, part)
		}
	}
	for _, host := range []string{"a", "b"} {
		want(0, string(crawl(host)), `"status":"new"`)
	}
	var b docindex.Batch
	if err := daemons[1].store.Candidates(t.Context(), 2, nil, &b); err != nil || b.Len() != 2 {
		t.Fatalf("%d candidates, %v", b.Len(), err)
	}
	want(0, string(crawl("c")), `"status":"new"`)
	want(0, infoText, `"total_pending":3,`)
	want(0, stopText, `"total_purged":3,`)
	want(1, stopText, `"total_purged":3,`) // as when the first daemon died before its reply was there
	r := daemons[1].do(t, stopText)
	r.Acknowledged(t.Context())
	want(0, stopText, `"total_purged":0,`)
	want(1, string(crawl("d")), `"status":"dropped"`)

	late := fmt.Sprintf(`{"url":"http://e.test/","appid":"testapp","crawlid":"late","expires":%d}`,
		time.Now().Unix()-1)
	want(0, late, `"status":"new"`)
	notices := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	for _, d := range daemons {
		watching.Go(func() { d.watch(ctx, notices) })
	}
	var cancelled []string
	for len(cancelled) < 2 { // they are of two shards
		cancelled = append(cancelled, <-daemons[1].slots.cancelled...)
	}
	if slices.Sort(cancelled); cancelled[0] != "stopped http://a.test/" ||
		cancelled[1] != "stopped http://b.test/" {
		t.Errorf("the other's slots are to end %q; want what they have of the stopped crawl", cancelled)
	}
	if got, want := <-notices,
		`"action":"expired","total_expired":1,"spiderid":"link","appid":"testapp","crawlid":"late"`; got != want {
		t.Errorf("notice is %s; want %s", got, want)
	}
}
