package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

// endings are slots that end what they are told to, and note it.
type endings struct {
	t    *testing.T
	s    *Store
	all  []string
	fail error
}

func (e *endings) condemn(ctx context.Context, o *docindex.Outcomes) (int, error) {
	if e.fail != nil {
		return 0, e.fail
	}
	for i := range o.Len() {
		e.all = append(e.all, fmt.Sprintf("%v %s", o.At(i).Kind, o.At(i).URL))
	}
	slices.Sort(e.all)
	return o.Len(), e.s.Outcomes(ctx, o)
}

// TestStopReachesOthers has one daemon stop what another one's slots have.
func TestStopReachesOthers(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	slots := &endings{t: t, s: b, fail: errors.New("no")}
	b.OnStop(slots.condemn)
	putOf(t, a, of("c", "http://a.test/", 0), of("c", "http://b.test/", 0), of("d", "http://d.test/", 0))
	take(t, b)
	putOf(t, a, of("c", "http://c.test/", 0))
	b.processInboxOnce(t.Context())
	refuse(t, a, "c", docindex.Expired)
	purge(t, a, "c", 1)
	b.processInboxOnce(t.Context())
	slots.fail = nil
	b.sweep(t.Context())
	if len(b.inbox) != 1 {
		t.Fatal("the sweep finds no word of it")
	}
	b.processInboxOnce(t.Context())
	want(t, "at the other's slots end", slots.all, "expired http://a.test/", "expired http://b.test/")
	purge(t, a, "c", 3)
	told(t, a, "c", 0)
	purge(t, a, "c", 0)
	b.processInboxOnce(t.Context())
	d.wantOverdue("after all that", b)
	want(t, "and nothing more", slots.all, "expired http://a.test/", "expired http://b.test/")
	if n := indextest.Count(t, a, nil); n.InTransit != 1 || n.Scheduled != 0 || n.Completed != 3 {
		t.Errorf("counts are %+v; want 3 completed", n)
	}
	<-b.inbox
	if b.sweep(t.Context()); len(b.inbox) != 0 {
		t.Error("there is still word of it")
	}
	checkCounts(t, a)
}

// TestStopWaitsForOthers has a stop count what another daemon's slots end because of it, of which
// that hears at once.
func TestStopWaitsForOthers(t *testing.T) {
	// no heartbeat comes
	cfg := Config{Addrs: []string{redistest.Start(t).Addr()}, Lease: time.Hour, Janitor: time.Hour}
	a, b := New(cfg), New(cfg)
	for _, s := range []*Store{a, b} {
		t.Cleanup(func() { s.Close() })
		reach(t, s)
		s.others = time.Hour
	}
	slots := &endings{t: t, s: b}
	b.OnStop(slots.condemn)
	putOf(t, a, of("c", "http://a.test/", 0), of("c", "http://b.test/", 0))
	take(t, b)
	putOf(t, a, of("c", "http://c.test/", 0))
	refuse(t, a, "c", docindex.Stopped)
	purge(t, a, "c", 3)
	want(t, "at the other's slots end", slots.all, "stopped http://a.test/", "stopped http://b.test/")
	checkCounts(t, a)
}

// TestStopWaitsInVain has a daemon freeze, and one die: neither holds up a stop for ever.
func TestStopWaitsInVain(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	putOf(t, a, of("c", "http://a.test/", 0))
	take(t, b)
	putOf(t, a, of("c", "http://c.test/", 0))
	a.others = 10 * time.Millisecond
	refuse(t, a, "c", docindex.Stopped)
	purge(t, a, "c", 1)
	a.others = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.purged(ctx, nameOfCrawl(crawlID("c"))); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more has %v; want %v", err, context.Canceled)
	}
	d.pass(testLease + time.Millisecond)
	a.sweep(t.Context())
	purge(t, a, "c", 2) // it came back and ended
	checkCounts(t, a)
}

// TestStopGoesOn has a purge fail: its own daemon goes on with it.
func TestStopGoesOn(t *testing.T) {
	d := newDaemons(t)
	a := d.start()
	putOf(t, a, of("c", "http://a.test/", 0))
	take(t, a)
	refuse(t, a, "c", docindex.Stopped)
	d.wantOverdue("before the purge", a)
	failure := errors.New("no")
	if _, err := a.PurgeCrawl(t.Context(), crawlID("c"), func(*docindex.Outcomes) (int, error) {
		return 0,
			failure
	}); !errors.Is(err, failure) {
		t.Errorf("PurgeCrawl: %v; want %v", err, failure)
	}
	d.wantOverdue("after a purge that failed", a, docindex.CrawlEnd{CrawlID: crawlID("c")})
	purge(t, a, "c", 0)
	d.wantOverdue("after one that did not", a)
}

// TestWordOfRefusalLost notifies of a refusal that the shard has lost since: nothing ends because
// of that.
func TestWordOfRefusalLost(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	slots := &endings{t: t, s: b}
	b.OnStop(slots.condemn)
	putOf(t, a, of("c", "http://a.test/", 0))
	take(t, b)
	refuse(t, a, "c", docindex.Stopped)
	c := reach(t, a)
	if err := c.Do(t.Context(), c.B().Del().Key(a.bases[shardOf("a.test")]+":x").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	b.processInboxOnce(t.Context())
	want(t, "of what is not refused end", slots.all)
	if b.sweep(t.Context()); len(b.inbox) != 0 {
		t.Error("there is still word of it")
	}
	purge(t, a, "c", 0) // which refuses it anew
	b.processInboxOnce(t.Context())
	want(t, "of what is refused again end", slots.all, "stopped http://a.test/")
}

// TestForgetWithoutMemory has Redis be full: documents can be forgotten, and who has them at the
// slots hears of it.
func TestForgetWithoutMemory(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	var forgotten []string
	b.OnDelete(func(o *docindex.Outcomes) {
		for i := range o.Len() {
			forgotten = append(forgotten, string(o.At(i).URL))
		}
	})
	putURLs(t, a, "", "http://a.test/")
	take(t, b)
	if _, err := a.one(t.Context(), shardOf("a.test"), dropScript, "@"+nameOf("", "a.test")); err != nil {
		t.Fatal(err)
	}
	c := reach(t, a)
	for _, most := range []string{"1", "0"} {
		if err := c.Do(t.Context(), c.B().ConfigSet().ParameterValue().ParameterValue("maxmemory",
			most).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if most == "1" {
			if err := a.free(t.Context(), shardOf("a.test"), "1"); err != nil {
				t.Errorf("with memory full: %v", err)
			}
		}
	}
	b.processInboxOnce(t.Context())
	want(t, "forgotten by the other's slots", forgotten, "http://a.test/")
}

// TestAnswerOfWordLost has another daemon end what it has, of which Redis does not hear: it ends it
// once more.
func TestAnswerOfWordLost(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	slots := &endings{t: t, s: b}
	b.OnStop(slots.condemn)
	putOf(t, a, of("c", "http://a.test/", 0))
	take(t, b)
	refuse(t, a, "c", docindex.Stopped)
	after(t, b, mineScript, func(answers []rueidis.RedisResult) {
		for i := range answers {
			answers[i] = rueidis.NewErrorResult(errors.New("the connection has ended"))
		}
	})
	b.processInboxOnce(t.Context())
	want(t, "with an answer lost end", slots.all)
	b.processInboxOnce(t.Context())
	want(t, "then end", slots.all, "stopped http://a.test/")
	purge(t, a, "c", 1)
}

// TestDeleteReachesOthers has one daemon delete what another one's slots have.
func TestDeleteReachesOthers(t *testing.T) {
	for what, remove := range map[string]func(s *Store, scope docindex.Scope, now time.Time) (int, error){
		"deleted": func(s *Store, scope docindex.Scope, _ time.Time) (int, error) {
			return s.Delete(t.Context(), scope)
		},
		"purged": func(s *Store, scope docindex.Scope, now time.Time) (int, error) {
			return s.Purge(t.Context(), scope, now)
		},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDaemons(t)
			a, b := d.start(), d.start()
			var forgotten []string
			b.OnDelete(func(o *docindex.Outcomes) {
				for i := range o.Len() {
					forgotten = append(forgotten, string(o.At(i).DocID)+" "+string(o.At(i).URL))
				}
				slices.Sort(forgotten)
			})
			given := of("c", "http://a.test/", 0)
			given.DocID = []byte("mine")
			putOf(t, a, given, of("c", "http://b.test/", 0), of("d", "http://c.test/", 0))
			had := take(t, b)
			var ids []string
			for i := range had.Len() {
				if c := had.At(i); string(c.URL) != "http://c.test/" {
					ids = append(ids, string(c.DocID)+" "+string(c.URL))
				}
			}
			slices.Sort(ids)
			d.pass(time.Minute / 2)
			if n, err := remove(a, docindex.Scope{Crawl: []byte("c")},
				time.UnixMicro(d.now.Load())); n != 2 || err != nil {
				t.Fatalf("%d, %v; want 2", n, err)
			}
			putOf(t, a, given)
			again := take(t, b) // before it hears of that
			b.sweep(t.Context())
			b.processInboxOnce(t.Context())
			want(t, "forgotten by the other's slots", forgotten, ids...)
			b.processInboxOnce(t.Context())
			want(t, "and no more", forgotten, ids...)
			if again.Len() != 1 || indextest.Count(t, a, nil).Scheduled != 1 {
				t.Errorf("what was put again with its DOC_ID, and taken for the old one: %d taken, "+
					"counts %+v; want it scheduled", again.Len(), indextest.Count(t, a, nil))
			}
			checkCounts(t, a)
		})
	}
}
