package scoped_test

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

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
	"urlserver/docindex/redis"
	"urlserver/docindex/scoped"
	"urlserver/internal/canonical"
	"urlserver/internal/scope"
	"urlserver/internal/testkit/redistest"
)

// TestSuite runs the suite of all stores on a store whose crawls have scopes, though none of the
// suite's: then each call takes the longer way.
func TestSuite(t *testing.T) {
	indextest.Run(t, func(t *testing.T) docindex.Store { return scoped.New(memory.New()) })
	t.Run("with parameters that do not count", func(t *testing.T) {
		indextest.Run(t, func(t *testing.T) docindex.Store {
			return scoped.New(memory.New(), canonical.Rule{Hosts: []string{"beside.test"}, Drop: []string{"a"}})
		})
	})
	t.Run("with a scope", func(t *testing.T) {
		indextest.Run(t, func(t *testing.T) docindex.Store {
			s := scoped.New(memory.New())
			set(t, s, "a crawl beside", `{"domains":["a.test"]}`)
			return hidden{s}
		})
	})
}

// hidden is a store without the settings of the crawl beside.
type hidden struct{ *scoped.Store }

func (h hidden) CrawlSettings(ctx context.Context, since uint64,
	visit func(string, []byte)) (uint64, error) {
	return h.Store.CrawlSettings(ctx, since, func(crawl string, text []byte) {
		if crawl != "a crawl beside" {
			visit(crawl, text)
		}
	})
}

// onStores runs a test on each kind of store.
func onStores(t *testing.T, test func(t *testing.T, s *scoped.Store), rules ...canonical.Rule) {
	t.Run("memory", func(t *testing.T) { test(t, scoped.New(memory.New(), rules...)) })
	t.Run("disk", func(t *testing.T) {
		s, err := disk.Open(disk.Config{Path: t.TempDir(), Sync: disk.None})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		test(t, scoped.New(s, rules...))
	})
	t.Run("redis", func(t *testing.T) {
		s := redis.New(redis.Config{Addrs: []string{redistest.Start(t).Addr()}, Lease: time.Minute,
			Janitor: time.Minute})
		t.Cleanup(func() { s.Close() })
		test(t, scoped.New(s, rules...))
	})
}

func set(t *testing.T, s *scoped.Store, crawl, text string) {
	t.Helper()
	sc, err := scope.Parse([]byte(text))
	if err == nil {
		err = s.SetCrawl(t.Context(), crawl, scoped.Change{Scope: &sc})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// put puts URLs of a crawl, and returns the verdict of each and the result.
func put(t *testing.T, s docindex.Store, all ...docindex.Put) (verdicts []docindex.Verdict, res docindex.PutResult) {
	t.Helper()
	var p docindex.Puts
	for _, one := range all {
		if err := p.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Put(t.Context(), &p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Len() {
		verdicts = append(verdicts, p.Verdict(i))
	}
	return verdicts, res
}

func of(crawl string, urls ...string) (all []docindex.Put) {
	for _, url := range urls {
		all = append(all, docindex.Put{URL: []byte(url), Crawl: []byte(crawl)})
	}
	return all
}

// take takes all candidates: those to send, and those that end, as "URL KIND".
func take(t *testing.T, s docindex.Store) (urls, ended []string) {
	t.Helper()
	for {
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 1000, nil, &b); err != nil {
			t.Fatal(err)
		}
		var o docindex.Outcomes
		for i := range b.EndedLen() {
			c := b.EndedAt(i)
			ended = append(ended, fmt.Sprintf("%s %v", c.URL, c.Kind))
			o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Kind: c.Kind, NoStatus: true})
		}
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			urls = append(urls, string(b.At(i).URL))
		}
		if b.Len()+b.EndedLen() == 0 {
			slices.Sort(urls)
			slices.Sort(ended)
			return urls, ended
		}
	}
}

func TestPut(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		set(t, s, "c", `{"domains":["a.test"],"deny":["/no/"],"deny_extensions":["gif"],"max_depth":2}`)
		all := append(of("c", "http://a.test/", "http://b.test/", "http://a.test/no/x", "http://w.a.test/x.gif"),
			of("", "http://b.test/")...)
		deep := of("c", "http://a.test/deep", "http://a.test/deeper")
		deep[0].Depth, deep[1].Depth = 2, 3
		verdicts, res := put(t, s, append(all, deep...)...)
		want := []docindex.Verdict{docindex.New, docindex.Outside, docindex.Outside, docindex.Outside, docindex.New,
			docindex.New, docindex.Outside}
		if !slices.Equal(verdicts, want) || res.New != 3 || res.OutOfScope != 4 {
			t.Errorf("verdicts %v, %+v; want %v", verdicts, res, want)
		}
		for _, rule := range []scope.Rule{scope.Domain, scope.Deny, scope.Extension, scope.Depth} {
			if res.Rules[rule] != 1 {
				t.Errorf("%d were refused by rule %v; want 1", res.Rules[rule], rule)
			}
		}
		urls, _ := take(t, s)
		if want := []string{"http://a.test/", "http://a.test/deep", "http://b.test/"}; !slices.Equal(urls, want) {
			t.Errorf("candidates %q; want %q", urls, want)
		}
		i, err := s.Crawl(t.Context(), "c")
		if err != nil || i.OutOfScope() != 4 || i.InTransit != 2 {
			t.Errorf("crawl: %+v, %v; want 4 out of scope, 2 in transit", i, err)
		}
	})
}

// A link belongs to crawl and owner of its page, one deeper.
func TestVia(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		set(t, s, "c", `{"domains":["a.test"],"max_depth":2}`)
		seed := docindex.Put{URL: []byte("http://a.test/"), Crawl: []byte("c"), DocID: []byte("seed"),
			Metadata: []byte(`{"appid":["app"],"spiderid":["s"],"cookie":["x"]}`)}
		put(t, s, seed)
		take(t, s)
		link := func(via, url, id string) docindex.Put {
			return docindex.Put{URL: []byte(url), Via: []byte(via), DocID: []byte(id)}
		}
		for depth, p := range []docindex.Put{
			link("seed", "http://a.test/1", "one"), link("one", "http://a.test/2", "two"),
			link("two", "http://a.test/3", "three"),
		} {
			v, res := put(t, s, p, link("seed", "http://b.test/", ""), link("unknown", "http://a.test/u", ""))
			if len(res.Refused) != 1 || !errors.Is(res.Refused[0].Err, docindex.ErrUnknown) ||
				res.Refused[0].Index != 2 || v[2] != docindex.Refused || v[1] != docindex.Outside {
				t.Errorf("verdicts %v, refused %v; want the page of the third not to be known", v, res.Refused)
			}
			if depth == 2 {
				if v[0] != docindex.Outside || res.Rules[scope.Depth] != 1 {
					t.Errorf("depth 3: %v, rules %v; want that the rule depth refuses it", v[0], res.Rules)
				}
				continue
			}
			d, err := s.Document(t.Context(), p.DocID)
			if err != nil || string(d.Crawl) != "c" || int(d.Depth) != depth+1 ||
				string(d.Metadata) != `{"appid":["app"],"spiderid":["s"]}` {
				t.Errorf("the link is of crawl %q at depth %d with %s, %v", d.Crawl, d.Depth, d.Metadata, err)
			}
		}
		if _, err := s.Document(t.Context(), []byte("three")); !errors.Is(err, docindex.ErrUnknown) {
			t.Errorf("a link out of scope was stored: %v", err)
		}
	})
}

func TestMaxPages(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		put(t, s, of("c", "http://a.test/0")...)
		set(t, s, "c", `{"max_pages":4,"max_pages_domain":2}`)
		v, res := put(t, s, of("c", "http://x.a.test/0", "http://a.test/0", "http://x.a.test/0", "http://y.a.test/1",
			"http://b.test/1", "http://b.test/2", "http://c.test/")...)
		want := []docindex.Verdict{docindex.New, docindex.Same, docindex.Same, docindex.Outside, docindex.New,
			docindex.New, docindex.Outside}
		if !slices.Equal(v, want) || res.Rules[scope.Pages]+res.Rules[scope.PagesDomain] != 2 {
			t.Errorf("verdicts %v, rules %v; want %v", v, res.Rules, want)
		}
		if i, err := s.Crawl(t.Context(), "c"); err != nil || i.Scheduled != 4 {
			t.Errorf("%+v, %v; want 4 documents", i.Counts, err)
		}
		put(t, s, of("other", "http://a.test/0", "http://a.test/1", "http://a.test/2")...)
		set(t, s, "c", `{"max_pages":5}`)
		if v, _ := put(t, s, of("c", "http://d.test/1", "http://d.test/2")...); v[0] != docindex.New ||
			v[1] != docindex.Outside {
			t.Errorf("after a wider scope: %v; want one more", v)
		}
	})
}

// TestMaxPagesOfOneURL puts one URL several times: what it is known by differs, or who owns it.
func TestMaxPagesOfOneURL(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		set(t, s, "c", `{"max_pages":2}`)
		unique := func(as string) docindex.Put {
			return docindex.Put{URL: []byte("http://a.test/"), Crawl: []byte("c"), Unique: []byte(as)}
		}
		owned := unique("")
		owned.Metadata = docindex.EncodeMetadata(map[string][]string{"appid": {"one"}})
		owned.Unique = nil
		v, _ := put(t, s, unique("1"), unique("2"), unique("3"), owned)
		want := []docindex.Verdict{docindex.New, docindex.New, docindex.Outside, docindex.Outside}
		if !slices.Equal(v, want) {
			t.Errorf("verdicts %v; want %v", v, want)
		}
		if i, err := s.Crawl(t.Context(), "c"); err != nil || i.Scheduled != 2 {
			t.Errorf("%+v, %v; want 2 documents", i.Counts, err)
		}
	})
}

// TestMaxPagesAgain limits a crawl, lifts the limit, and limits it again: what came in between
// counts.
func TestMaxPagesAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		for _, limit := range []string{`{"max_pages":3}`, `{"max_pages_domain":3}`} {
			crawl := limit
			set(t, s, crawl, limit)
			put(t, s, of(crawl, "http://a.test/1")...)
			set(t, s, crawl, `{}`)
			put(t, s, of(crawl, "http://a.test/2", "http://a.test/3")...)
			set(t, s, crawl, limit)
			if v, _ := put(t, s, of(crawl, "http://a.test/4")...); v[0] != docindex.Outside {
				t.Errorf("%s: verdict %v on a fourth document; want %v", limit, v[0], docindex.Outside)
			}
		}
	})
}

// TestMaxPagesOfCustomKeys: documents with queue keys that name no host count for the registered
// domains of their URLs, when they are put and when they are counted anew.
func TestMaxPagesOfCustomKeys(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		keyed := func(url, key string) docindex.Put {
			return docindex.Put{URL: []byte(url), Crawl: []byte("c"), Key: []byte(key)}
		}
		set(t, s, "c", `{"max_pages_domain":2}`)
		put(t, s, keyed("http://a.test/1", "queue"), keyed("http://b.test/1", "queue"),
			keyed("http://x.a.test/2", "192.0.2.1"), keyed("http://c.test/", "c.test"))
		for _, recount := range []bool{false, true} {
			if recount {
				queue := docindex.Scope{Crawl: []byte("c"), Key: []byte("c.test")}
				if _, err := s.Delete(t.Context(), queue); err != nil {
					t.Fatal(err)
				}
			}
			v, _ := put(t, s, keyed("http://a.test/3", "other"), keyed("http://b.test/2", "queue"),
				keyed("http://b.test/3", "queue"))
			want := []docindex.Verdict{docindex.Outside, docindex.New, docindex.Outside}
			if recount {
				want[1] = docindex.Same
			}
			if !slices.Equal(v, want) {
				t.Errorf("counted anew: %v: verdicts %v; want %v", recount, v, want)
			}
		}
	})
}

// TestMaxPagesOfSeveral has three daemons put documents of a crawl into one Redis at once, each at full
// speed. Together they store as many as the crawl may have, and none of a domain more.
func TestMaxPagesOfSeveral(t *testing.T) {
	addr := redistest.Start(t).Addr()
	var stores []*scoped.Store
	for range 3 {
		s := redis.New(redis.Config{Addrs: []string{addr}, Lease: time.Minute, Janitor: time.Minute})
		t.Cleanup(func() { s.Close() })
		stores = append(stores, scoped.New(s))
	}
	set(t, stores[0], "c", `{"max_pages":300,"max_pages_domain":40}`)
	var all sync.WaitGroup
	for n, s := range stores {
		all.Go(func() {
			for i := range 40 {
				var urls []string
				for j := range 20 { // half of them are another daemon's, too
					urls = append(urls, fmt.Sprintf("http://d%d.test/%d/%d", j%10, (n+j%2)%3, 20*i+j))
				}
				put(t, s, of("c", urls...)...)
			}
		})
	}
	all.Wait()
	for _, s := range stores {
		n, err := s.Count(t.Context(), &docindex.Scope{Crawl: []byte("c")})
		if err != nil || n.Scheduled != 300 {
			t.Errorf("%+v are stored, %v; want 300", n, err)
		}
	}
	for i := range 10 {
		key := fmt.Sprintf("d%d.test", i)
		n, err := stores[0].Count(t.Context(), &docindex.Scope{Crawl: []byte("c"), Key: []byte(key)})
		if err != nil || n.Scheduled > 40 {
			t.Errorf("%+v of %s are stored, %v; want 40 at most", n, key, err)
		}
	}
	// What is deleted makes room.
	queue := docindex.Scope{Crawl: []byte("c"), Key: []byte("d0.test")}
	if _, err := stores[1].Delete(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if v, _ := put(t, stores[1], of("c", "http://d0.test/new")...); v[0] != docindex.New {
		t.Errorf("after a queue was deleted a put gets %v", v)
	}
}

// TestViaOfTheSamePut puts a page, its link, and the link's link at once.
func TestViaOfTheSamePut(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		set(t, s, "c", `{"max_depth":1}`)
		one := func(url, id, via string) docindex.Put {
			return docindex.Put{URL: []byte(url), DocID: []byte(id), Via: []byte(via)}
		}
		page := one("http://a.test/", "page", "")
		page.Crawl = []byte("c")
		v, res := put(t, s, page, one("http://a.test/1", "link", "page"), one("http://a.test/2", "", "link"),
			one("http://a.test/3", "", "later"), one("http://a.test/4", "later", ""))
		want := []docindex.Verdict{docindex.New, docindex.New, docindex.Outside, docindex.Refused, docindex.New}
		if !slices.Equal(v, want) || res.New != 3 || res.OutOfScope != 1 || res.Rules[scope.Depth] != 1 ||
			len(res.Refused) != 1 || res.Refused[0].Index != 3 {
			t.Errorf("verdicts %v, %+v; want %v", v, res, want)
		}
		link, err := s.Document(t.Context(), []byte("link"))
		if err != nil || string(link.Crawl) != "c" || link.Depth != 1 {
			t.Errorf("the link is of crawl %q at depth %d, %v", link.Crawl, link.Depth, err)
		}
	})
}

// reviewed runs the reviews of a store until check says so.
func reviewed(t *testing.T, s *scoped.Store, check func() bool) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, zerolog.New(zerolog.NewTestWriter(t)))
	}()
	for deadline := time.Now().Add(5 * time.Minute); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the documents of the crawl were not reviewed")
			break
		}
	}
	end()
	<-done
}

// A changed scope ends what is stored, before it is sent; a wider one has it back.
func TestChange(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		urls := []string{"http://a.test/", "http://a.test/x", "http://b.test/", "http://b.test/x"}
		put(t, s, of("c", urls...)...)
		var recalled []string
		s.OnRecall(func(o *docindex.Outcomes) { // as slots that have sent nothing
			for i := range o.Len() {
				recalled = append(recalled, string(o.At(i).URL))
			}
		})
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 2, nil, &b); err != nil || b.Len() != 2 {
			t.Fatal(err, b.Len())
		}
		set(t, s, "c", `{"domains":["b.test"]}`)
		var o docindex.Outcomes
		reviewed(t, s, func() bool {
			i, err := s.Crawl(t.Context(), "c")
			return err == nil && !i.Review && i.Completed == 1
		})
		first := string(b.At(0).URL)
		if !slices.Equal(recalled, []string{first}) || !strings.Contains(first, "a.test") {
			t.Errorf("recalled %q; want %q", recalled, first)
		}
		for i := range b.Len() {
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
		}
		if err := s.Return(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		sent, ended := take(t, s)
		if !slices.Equal(sent, urls[2:]) || !slices.Equal(ended, []string{string(b.At(0).URL) + " out_of_scope"}) {
			t.Errorf("sent %q, ended %q; want the URLs of b.test sent, the one that came back ended", sent, ended)
		}
		set(t, s, "c", `{"domains":["a.test","b.test"]}`)
		reviewed(t, s, func() bool {
			i, err := s.Crawl(t.Context(), "c")
			return err == nil && !i.Review && i.Scheduled == 2
		})
		if sent, ended := take(t, s); !slices.Equal(sent, urls[:2]) || len(ended) > 0 {
			t.Errorf("of the wider scope sent %q, ended %q; want %q", sent, ended, urls[:2])
		}
	})
}

// A stopped crawl ID takes nothing more and sends nothing more, for good.
func TestStop(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		put(t, s, append(of("c", "http://a.test/", "http://b.test/"), of("", "http://a.test/")...)...)
		if err := s.StopCrawlID(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		if v, res := put(t, s, of("c", "http://c.test/")...); v[0] != docindex.Dropped || res.Dropped != 1 {
			t.Errorf("put after the stop: %v, %+v; want that it is dropped", v, res)
		}
		sent, ended := take(t, s)
		if !slices.Equal(sent, []string{"http://a.test/"}) ||
			!slices.Equal(ended, []string{"http://a.test/ stopped", "http://b.test/ stopped"}) {
			t.Errorf("sent %q, ended %q; want the other crawl's alone", sent, ended)
		}
		one := 1
		err := s.SetCrawl(t.Context(), "c", scoped.Change{Scope: &scope.Scope{MaxDepth: &one}})
		if !errors.Is(err, scoped.ErrStopped) {
			t.Errorf("a scope after the stop: %v; want ErrStopped", err)
		}
	})
}

// TestStopEndsWhatComesBack: documents that were in transit when their crawl was stopped, and are
// scheduled again later, end although nobody asks for candidates, in the next process, too.
func TestStopEndsWhatComesBack(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		put(t, s, of("c", "http://a.test/", "http://b.test/")...)
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 9, nil, &b); err != nil || b.Len() != 2 {
			t.Fatalf("%d candidates, %v; want two", b.Len(), err)
		}
		if err := s.StopCrawlID(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		now := time.Now().Unix()
		for i := range b.Len() {
			s.SetClock(func() int64 { return now })
			if _, err := s.Crawl(t.Context(), "c"); err != nil { // reads the settings
				t.Fatal(err)
			}
			var back docindex.Outcomes
			back.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
			for _, late := range []bool{false, true} {
				if now++; late {
					if err := s.Return(t.Context(), &back); err != nil {
						t.Fatal(err)
					}
				}
				if failed, err := s.Review(t.Context()); err != nil {
					t.Fatal(failed, err)
				}
			}
			c, err := s.Crawl(t.Context(), "c")
			if err != nil || c.Scheduled != 0 || c.Completed != uint64(i+1) || c.Review != (i == 0) {
				t.Errorf("%d documents came back: %+v, %v; want as many completed, and a review while one is away",
					i+1, c, err)
			}
			s = scoped.New(s.Store)
		}
	})
}

// TestComesBackOutOfScope: documents were in transit when the scope of their crawl changed, and come back
// one after the other. Each ends soon after, although nobody asks for candidates and others of the crawl
// are still away. What ends in transit is not looked at again.
func TestComesBackOutOfScope(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		now := time.Now().Unix()
		s.SetClock(func() int64 { return now })
		put(t, s, of("c", "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/")...)
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 9, nil, &b); err != nil || b.Len() != 4 {
			t.Fatalf("%d candidates, %v; want four", b.Len(), err)
		}
		set(t, s, "c", `{"domains":["b.test"]}`)
		review := func() (i scoped.Info) {
			t.Helper()
			if failed, err := s.Review(t.Context()); err != nil {
				t.Fatal(failed, err)
			}
			i, err := s.Crawl(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		if i := review(); i.InTransit != 4 || i.Review {
			t.Errorf("%+v; want four documents in transit, and the review over", i)
		}
		var done docindex.Outcomes
		for i := range b.Len() {
			var o docindex.Outcomes
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200})
			if string(b.At(i).URL) == "http://a.test/3" {
				done = o
			} else if err := s.Return(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			now += 60
			review()
		}
		if i := review(); i.InTransit != 1 || i.Scheduled != 1 || i.Completed != 2 || i.OutOfScope() != 2 {
			t.Errorf("%+v; want one in transit, that of b.test scheduled, and two out of scope", i)
		}
		if err := s.Outcomes(t.Context(), &done); err != nil {
			t.Fatal(err)
		}
		now += 60
		if i := review(); i.Completed != 3 || i.OutOfScope() != 2 {
			t.Errorf("%+v; want three documents completed, two of them out of scope", i)
		}
	})
}

// A change of the weight leaves the scope as it is, and a change of the scope the weight.
func TestSetCrawlPart(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		set(t, s, "c", `{"domains":["a.test"]}`)
		if err := s.SetCrawl(t.Context(), "c", scoped.Change{Weight: 4}); err != nil {
			t.Fatal(err)
		}
		if v, _ := put(t, s, of("c", "http://b.test/")...); v[0] != docindex.Outside {
			t.Errorf("put of another domain after a change of the weight: %v; want Outside", v[0])
		}
		set(t, s, "c", `{"domains":["a.test","b.test"]}`)
		i, err := s.Crawl(t.Context(), "c")
		if err != nil || i.Weight != 4 || len(i.Scope.Domains) != 2 {
			t.Errorf("after a change of the scope: %+v, %v; want weight 4 and two domains", i.Settings, err)
		}
		for _, bad := range []float64{scoped.MaxWeight + 1, scoped.MinWeight / 2, 1e-320} {
			err = s.SetCrawl(t.Context(), "c", scoped.Change{Weight: bad})
			if i, _ := s.Crawl(t.Context(), "c"); !errors.Is(err, scoped.ErrWeight) || i.Weight != 4 {
				t.Errorf("weight %v: %v, then weight %v; want ErrWeight and 4", bad, err, i.Weight)
			}
		}
	})
}

// A document that is taken as out of scope, while its outcome is on its way, when the scope is
// widened, is scheduled again.
func TestWidenedWhileItEnds(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		set(t, s, "c", `{}`)
		put(t, s, of("c", "http://a.test/1")...)
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 {
			t.Fatalf("%d candidates, %v; want one", b.Len(), err)
		}
		set(t, s, "c", `{"domains":["b.test"]}`)
		back := docindex.Outcomes{}
		back.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL})
		if err := s.Return(t.Context(), &back); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		if err := s.Candidates(t.Context(), 1, nil, &b); err != nil || b.EndedLen() != 1 {
			t.Fatalf("%d candidates that end, %v; want one", b.EndedLen(), err)
		}
		set(t, s, "c", `{"domains":["a.test"]}`)
		if failed, err := s.Review(t.Context()); err != nil {
			t.Fatal(failed, err)
		}
		c := b.EndedAt(0)
		end := docindex.Outcomes{}
		end.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Crawl: c.Crawl, Kind: c.Kind, NoStatus: true})
		if err := s.Outcomes(t.Context(), &end); err != nil {
			t.Fatal(err)
		}
		if urls, ended := take(t, s); fmt.Sprint(urls) != "[http://a.test/1]" || len(ended) > 0 {
			t.Errorf("sent %q, ended %q; want the document sent", urls, ended)
		}
	})
}
