package urlserver

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
)

// TestExplainOfDocumentsElsewhere explains hosts of which the daemon holds no document.
func TestExplainOfDocumentsElsewhere(t *testing.T) {
	r := newRig(t, func(c *configs.Config) {
		c.Frontier.Listen = "127.0.0.1:0" // without a spider the slots take nothing
	})
	defer r.stop()
	r.put("http://127.0.0.1/a", "http://127.0.0.1/b", "http://127.0.0.2/c", "http://127.0.0.3/d")
	r.says(t, "127.0.0.1", "nothing of it is held here; 2 of its documents wait in the doc index")
	var lent docindex.Batch
	if err := r.store.Lease(t.Context(), 10, nil, time.Hour, &lent); err != nil || lent.Len() != 4 {
		t.Fatalf("%d documents are lent, %v; want 4", lent.Len(), err)
	}
	if err := r.d.Block(t.Context(), "127.0.0.3", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	r.says(t, "127.0.0.1", "2 of its documents are out, but not here: ")
	r.says(t, "127.0.0.3", "; 1 of its documents are out, but not here: ") // after the reason why the slots would wait
	var ended docindex.Outcomes
	for i := range lent.Len() {
		ended.Add(docindex.Outcome{DocID: lent.At(i).DocID, URL: lent.At(i).URL, Kind: docindex.Done, Status: 200})
	}
	if err := r.store.Outcomes(t.Context(), &ended); err != nil {
		t.Fatal(err)
	}
	r.says(t, "127.0.0.1", "nothing is to be fetched: all its documents in the doc index are completed (2)")
	if x, ok, err := r.d.Explain(t.Context(), "127.0.0.4"); ok || err != nil {
		t.Errorf("a host that nobody knows: %+v, %v, %v", x, ok, err)
	}
}

func (r *rig) says(t *testing.T, host string, want ...string) {
	t.Helper()
	x, ok, err := r.d.Explain(t.Context(), host)
	for _, one := range want {
		if !ok || err != nil || !strings.Contains(x.Why, one) {
			t.Errorf("of %s: %q, %v, %v; want %s", host, x.Why, ok, err, one)
		}
	}
}

// set changes a setting of a queue, or of a host, in the embedded index.
func (r *rig) set(which docindex.SettingKind, crawl, key string, onHost bool, value uint64) {
	r.t.Helper()
	err := r.store.Set(r.t.Context(), docindex.Setting{
		Kind: which, Scope: docindex.Scope{Crawl: []byte(crawl), Key: []byte(key)}, Host: onHost, Value: value,
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// waitCase is a reason why a document stays in the index, and parts of the text that explains it.
type waitCase struct {
	name string
	do   func(r *rig)
	want []string
}

// frontierWaits returns the reasons that the URL Frontier API and the schedule cause. A block and a
// schedule last until until.
func frontierWaits(until time.Time) []waitCase {
	date, second := until.UTC().Format(time.RFC3339), uint64(until.Unix()-1)
	return []waitCase{
		{"nobody to send to", func(r *rig) {},
			[]string{"1 of its documents wait in the doc index; no spider is connected",
				"; clients of the URL Frontier may have it now"}},
		{"BlockQueueUntil", func(r *rig) { r.set(docindex.SetBlock, "", "a.test", false, second) },
			[]string{"wait in the doc index; not before " + date + ": its queue is blocked (BlockQueueUntil)"}},
		{"SetCrawlLimit", func(r *rig) {
			r.ended("http://a.test/2")
			r.set(docindex.SetLimit, "", "a.test", false, 1)
		}, []string{"the limit of its queue, 1 completed URLs, is reached (SetCrawlLimit)"}},
		{"SetDelay", func(r *rig) {
			r.set(docindex.SetDelay, "", "a.test", false, 3600)
			r.clientTakes("http://a.test/1")
			r.ended("http://a.test/1")
			r.put("http://a.test/2")
		}, []string{"wait in the doc index; not before 20", ": the delay of its queue, 1h0m0s (SetDelay)"}},
		{"scheduled for later", func(r *rig) {
			r.ended("http://a.test/1")
			r.putOne(docindex.Put{URL: []byte("http://a.test/2"), Update: true, Due: until.Unix()})
		}, []string{"wait in the doc index; not before " + date +
			": the first of its documents is scheduled for then"}},
		{"with clients", func(r *rig) { r.clientTakes("http://a.test/1") },
			[]string{"1 of its documents are out, but not here: 1 with clients of the URL Frontier"}},
		{"inactive", func(r *rig) { r.set(docindex.SetActive, "", "", false, 0) },
			[]string{"no spider is connected",
				"; to clients of the URL Frontier: clients are given nothing at all (SetActive)"}},
	}
}

// operatorWaits returns the reasons that an operator and the settings cause. A block lasts until
// until.
func operatorWaits(until time.Time) []waitCase {
	date, second := until.UTC().Format(time.RFC3339), uint64(until.Unix()-1)
	return []waitCase{
		{"block of an operator", func(r *rig) {
			if err := r.d.Block(r.t.Context(), "a.test", until); err != nil {
				r.t.Fatal(err)
			}
		}, []string{"blocked by the operator until 20",
			"; nothing of it is held here; 1 of its documents wait in the doc index"}},
		{"block of an operator of another daemon",
			func(r *rig) { r.set(docindex.SetBlock, "", "a.test", true, second) },
			[]string{"wait in the doc index; not before " + date + ": blocked by the operator"}},
		{"delay of an operator", func(r *rig) {
			if err := r.d.Delay(r.t.Context(), "a.test", 3600); err != nil {
				r.t.Fatal(err)
			}
			r.clientTakes("http://a.test/1")
			r.ended("http://a.test/1")
			r.put("http://a.test/2")
		}, []string{"wait in the doc index; not before 20", ": the operator's delay of 1h0m0s"}},
		{"rule", func(r *rig) {
			cfg := r.d.Settings()
			cfg.Rules = []configs.HostRule{{Hosts: []string{"*.test"}, Block: true}}
			if _, _, err := r.d.Reconfigure(r.t.Context(), cfg); err != nil {
				r.t.Fatal(err)
			}
			if got := r.served(); len(got) > 0 {
				r.t.Errorf("clients get %q, which a rule blocks", got)
			}
		}, []string{"the doc index is asked to leave it out: it is blocked by [[rules]] 1 (*.test)",
			"; to clients of the URL Frontier: blocked by [[rules]] 1 (*.test)"}},
		{"rule with a pace", func(r *rig) {
			cfg := r.d.Settings()
			cfg.Rules = []configs.HostRule{{Hosts: []string{"a.test"}, PerSec: 0.001}}
			if _, _, err := r.d.Reconfigure(r.t.Context(), cfg); err != nil {
				r.t.Fatal(err)
			}
			r.clientTakes("http://a.test/1")
			r.ended("http://a.test/1")
			r.put("http://a.test/2")
			r.putOne(docindex.Put{URL: []byte("http://a.test/3"), Crawl: []byte("c")})
			if got := r.served(); len(got) > 0 {
				r.t.Errorf("clients get %q at once, which a rule allows each thousand seconds", got)
			}
		}, []string{"wait in the doc index; not before 20", ": [[rules]] 1 (a.test)"}},
	}
}

// TestExplainOfWhatWaitsInTheIndex checks the text for each reason: until when, and by which rule.
func TestExplainOfWhatWaitsInTheIndex(t *testing.T) {
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, c := range append(frontierWaits(until), operatorWaits(until)...) {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			memory := memory.New()
			store := &lookedThrough{Store: memory, done: make(chan struct{})}
			r := newRigOver(t, l, Parts{Index: memory, Store: store},
				func(cfg *configs.Config) { cfg.Frontier.Listen = "127.0.0.1:0" })
			defer r.stop()
			<-store.done // the daemon has read the blocks from before its start
			r.put("http://a.test/1")
			r.t = t
			c.do(r)
			r.says(t, "a.test", c.want...)
		})
	}
}

// lookedThrough is a store that reports when the daemon has read all settings at its start.
type lookedThrough struct {
	docindex.Store
	once sync.Once
	done chan struct{}
}

func (l *lookedThrough) Settings(ctx context.Context, visit func(*docindex.Setting) bool) error {
	defer l.once.Do(func() { close(l.done) })
	return l.Store.Settings(ctx, visit)
}

func (r *rig) putOne(p docindex.Put) {
	r.t.Helper()
	var all docindex.Puts
	if err := all.AddExact(p, docindex.HostOf(p.URL)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.store.Put(r.t.Context(), &all); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) ended(url string) {
	r.t.Helper()
	r.putOne(docindex.Put{URL: []byte(url), Update: true, Due: docindex.Never})
}

// clientTakes gets a URL as a URL Frontier client.
func (r *rig) clientTakes(want string) {
	r.t.Helper()
	if got := r.served(); len(got) != 1 || got[0] != want {
		r.t.Fatalf("a client gets %q; want %q", got, want)
	}
}

func (r *rig) served() (urls []string) {
	r.t.Helper()
	err := r.store.Serve(r.t.Context(), docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour},
		func(h *docindex.Served) error {
			for i := range h.Len() {
				urls = append(urls, string(h.At(i).URL))
			}
			return nil
		})
	if err != nil {
		r.t.Fatal(err)
	}
	return urls
}

// TestExplainWhereSlotsAreTaken explains a host whose documents stay in the index because all slots
// are taken.
func TestExplainWhereSlotsAreTaken(t *testing.T) {
	r := newRig(t, func(c *configs.Config) { c.QueueCount = 1 })
	defer r.stop()
	r.put("http://127.0.0.1/1")
	r.await("the first is held", func() bool { return r.store.Stats().InTransit == 1 })
	r.await("its slot is taken, and the index asked for no more", func() bool {
		s, err := r.d.Status(t.Context())
		answered := uint64(0)
		for _, n := range s.CandidateCalls.Seconds.Buckets {
			answered += n
		}
		return err == nil && s.Slots.Used == 1 && answered == s.IndexRequests
	})
	r.put("http://127.0.0.2/1")
	r.says(t, "127.0.0.2", "1 of its documents wait in the doc index; all 1 host slots are taken (Queue_Count)")
}

// TestExplainOverBudgetWhereSlotsHold explains a host of which the slots hold documents, while its
// domain is over its budget.
func TestExplainOverBudgetWhereSlotsHold(t *testing.T) {
	r := newRig(t, func(c *configs.Config) { c.QueueCount, c.Crawl.Budget = 8, 2 })
	defer r.stop()
	blocked := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} // they have work, and no page
	for _, host := range blocked {
		r.set(docindex.SetBlock, "", host, false, uint64(time.Now().Add(time.Hour).Unix()))
		r.put("http://" + host + "/")
	}
	var urls []string
	for i := range 200 {
		urls = append(urls, fmt.Sprintf("http://127.0.0.1/%d", i))
	}
	r.put(urls...)
	r.await("the slots have as much of the host as they take", func() bool {
		x, _, err := r.d.Explain(t.Context(), "127.0.0.1")
		return err == nil && x.Queued > 2 && strings.Contains(x.Why, "over its budget")
	})
	r.says(t, "127.0.0.1", " more wait in the doc index; its domain 127.0.0.1 is over its budget: "+
		"round 2, again after about 6 pages of other domains")
}

func (r *rig) await(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("never: %s", what)
		}
	}
}

// slowToTell is a store that returns the blocks from before the start one by one, when the test
// allows it.
type slowToTell struct {
	*lookedThrough
	read, goOn chan struct{}
}

func (s *slowToTell) Settings(ctx context.Context, visit func(*docindex.Setting) bool) error {
	return s.lookedThrough.Settings(ctx, func(one *docindex.Setting) bool {
		if one.Host && one.Kind == docindex.SetBlock {
			s.read <- struct{}{}
			<-s.goOn
		}
		return visit(one)
	})
}

// TestBlocksOfBeforeAreNotNews: an operator unblocks a host while the daemon, which has just
// started, reads that it is blocked.
func TestBlocksOfBeforeAreNotNews(t *testing.T) {
	memory := memory.New()
	hour := uint64(time.Now().Add(time.Hour).Unix())
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		err := memory.Set(t.Context(), docindex.Setting{Kind: docindex.SetBlock,
			Scope: docindex.Scope{Key: []byte(host)}, Host: true, Value: hour})
		if err != nil {
			t.Fatal(err)
		}
	}
	store := &slowToTell{&lookedThrough{Store: memory, done: make(chan struct{})}, make(chan struct{}),
		make(chan struct{})}
	r := newRigOver(t, listen(t), Parts{Index: store, Store: store}, nil)
	defer r.stop()
	<-store.read
	if err := r.d.Block(t.Context(), "127.0.0.1", time.Now().Add(-time.Second)); err != nil {
		t.Error(err)
	}
	store.goOn <- struct{}{}
	<-store.read
	store.goOn <- struct{}{}
	<-store.done
	hosts, n, err := r.d.Blocked(t.Context(), 10)
	if err != nil || n != 1 || hosts[0].Host != "127.0.0.2" {
		t.Errorf("blocked are %v, %v; want 127.0.0.2 only", hosts, err)
	}
}

// TestBlockHoldsEverywhere: a blocked host's documents go to nobody, in any crawl, also after a
// restart. After an unblock they go to all again.
func TestBlockHoldsEverywhere(t *testing.T) {
	path := t.TempDir()
	open := func() (*rig, func()) {
		store, err := disk.Open(disk.Config{Path: path, Sync: disk.None, Log: zerolog.Nop(),
			Fatal: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r := newRigOver(t, l, Parts{Index: store, Store: store}, nil)
		return r, func() {
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	r, stop := open()
	r.put("http://127.0.0.1/1")
	r.await("it is held", func() bool { return r.store.Stats().InTransit == 1 })
	until := time.Now().Add(time.Hour)
	if err := r.d.Block(t.Context(), "127.0.0.1", until); err != nil {
		t.Fatal(err)
	}
	r.await("it is given back", func() bool { return r.store.Stats().InTransit == 0 })
	r.putOne(docindex.Put{URL: []byte("http://127.0.0.1/2"), Crawl: []byte("later")})
	if got := r.served(); len(got) > 0 {
		t.Errorf("clients get %q of a blocked host", got)
	}
	stop()

	r, stop = open()
	defer func() { stop() }()
	r.await("the slots know", func() bool {
		_, n, err := r.d.Blocked(t.Context(), 10)
		return err == nil && n == 1
	})
	x, ok, err := r.d.Explain(t.Context(), "127.0.0.1")
	if blocked := r.d.Date(x.Blocked); err != nil || !ok || blocked.Before(until.Add(-time.Second)) ||
		blocked.After(until.Add(2*time.Second)) {
		t.Errorf("after a restart it is blocked until %v, %v, %v; want %v", blocked, ok, err, until)
	}
	if got := r.served(); len(got) > 0 || r.store.Stats().InTransit > 0 {
		t.Errorf("after a restart clients get %q of a blocked host, and slots %d", got, r.store.Stats().InTransit)
	}
	if err := r.d.Block(t.Context(), "127.0.0.1", time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	r.await("it goes on", func() bool { return r.store.Stats().InTransit == 2 })
}
