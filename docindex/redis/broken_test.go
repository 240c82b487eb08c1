package redis

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/internal/testkit/redistest"
)

// A broken key costs at most the documents of one queue or host, or those of its shard.
const (
	costsNothing = iota
	costsHost
	costsShard
)

// brokenKeys are all keys of KEYS.md, how much each of them costs while it is of a wrong type, and
// whether what it stood for is served again when it is deleted. Q is the number of a queue of
// bad.test, C that of its crawl.
var brokenKeys = map[string]struct {
	costs int
	lost  bool // with its content
}{
	"names": {costs: costsShard}, // nothing is put
	"q:Q":   {costs: costsHost, lost: true}, "b:Q": {costs: costsHost, lost: true},
	"u:Q": {costs: costsHost}, "s:Q": {costs: costsHost}, "e:Q": {},
	"m:CRAWL": {},
	"h:HOST":  {costs: costsHost}, "paused": {}, "ordered": {}, "set": {}, "preset": {costs: costsShard},
	"r":  {},
	"r1": {costs: costsShard}, "r1:CRAWL": {costs: costsShard}, "r:CRAWL": {costs: costsShard},
	"w1": {costs: costsShard}, "w2": {costs: costsShard},
	"p:CRAWL": {}, "y:CRAWL": {}, "c:CRAWL": {}, "d": {}, "crawls": {costs: costsShard}, "l": {costs: costsShard},
	"a": {}, "o:DAEMON": {costs: costsShard},
	"t:DAEMON": {}, "ids": {}, "g": {costs: costsShard, lost: true}, "n": {}, "n:CRAWL": {}, "gone": {},
	"k": {costs: costsShard}, "kn": {}, "k:C": {costs: costsShard, lost: true}, "k:C:d": {}, "k:C:q": {},
	"k:C:o": {}, "kc": {}, "kt": {},
	"x": {costs: costsShard}, "ke": {}, "kf": {}, "f:xNAME": {}, "f:fNAME": {}, "v:DAEMON": {},
	"j:DAEMON": {}, "z:DAEMON": {}, "pages:CRAWL": {}, "places:CRAWL": {},
	"broken": {},
}

// asideKeys are those that only domains over their budget have: TestBrokenAside.
var asideKeys = []string{"i", "i1", "i2", "i1:NAME", "i2:NAME"}

// TestBrokenKeysAreAll compares that with KEYS.md.
func TestBrokenKeysAreAll(t *testing.T) {
	text, err := os.ReadFile("KEYS.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("`\\{uN\\}:([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		if m[1] != "hint" && !slices.Contains(all, m[1]) { // a channel
			all = append(all, m[1])
		}
	}
	for _, key := range all {
		if _, is := brokenKeys[key]; !is && !slices.Contains(asideKeys, key) {
			t.Errorf("KEYS.md has %s, which is not tested", key)
		}
	}
	if len(all) != len(brokenKeys)+len(asideKeys) {
		t.Errorf("KEYS.md has %d keys; %d are tested", len(all), len(brokenKeys)+len(asideKeys))
	}
}

// brokenBench is a store in which three hosts have documents: two of one shard, one of another.
type brokenBench struct {
	t      *testing.T
	d      *daemons
	s      *Store
	log    bytes.Buffer
	hosts  [3]string // bad, near, far
	rounds int64
}

func newBrokenBench(t *testing.T, addr, prefix string) *brokenBench {
	b := &brokenBench{t: t, d: &daemons{t: t, addr: addr}, hosts: [3]string{"bad.test"}}
	for n := 0; b.hosts[1] == "" || b.hosts[2] == ""; n++ {
		name := fmt.Sprintf("n%d.test", n)
		if at := 2; shardOf(name) == shardOf("bad.test") {
			b.hosts[1] = name
		} else if shardOf(name) != homeOf("4:3:linkappcrawl") {
			b.hosts[at] = name
		}
	}
	b.d.now.Store(time.Now().UnixMicro())
	b.s = patientStore(Config{Addrs: []string{addr}, Prefix: prefix, Lease: testLease,
		Log: zerolog.New(&b.log)}, b.d.now.Load)
	t.Cleanup(func() { b.s.Close() })
	reach(t, b.s)
	return b
}

// branch has the queue of bad.test have a branch, with nothing in it that is due.
func (b *brokenBench) branch() {
	var p docindex.Puts
	for i := range 6 {
		one := docindex.Put{URL: fmt.Appendf(nil, "http://bad.test/link/%d", i), Crawl: []byte("crawl"),
			Metadata: []byte(metadata), Due: b.d.now.Load()/1_000_000 + 1_000_000_000}
		if i == 5 {
			one.Due, one.Page = 0, []byte("http://bad.test/")
		}
		if err := p.Add(one); err != nil {
			b.t.Fatal(err)
		}
	}
	if _, err := b.s.Put(b.t.Context(), &p); err != nil {
		b.t.Fatal(err)
	}
	end(b.t, b.s, take(b.t, b.s))
}

// put puts a URL of each host, and returns those that were stored.
func (b *brokenBench) put(path string) (stored []string) {
	b.t.Helper()
	for _, host := range b.hosts {
		var p docindex.Puts
		one := docindex.Put{URL: fmt.Appendf(nil, "http://%s/%s", host, path), Crawl: []byte("crawl"),
			Metadata: []byte(metadata)}
		if err := p.Add(one); err != nil {
			b.t.Fatal(err)
		}
		if _, err := b.s.Put(b.t.Context(), &p); err != nil && !strings.Contains(err.Error(), "wrong type") {
			b.t.Errorf("Put of %s: %v", one.URL, err)
		}
		if v := p.Verdict(0); v == docindex.New {
			stored = append(stored, host)
		} else if host == b.hosts[2] {
			b.t.Errorf("Put of %s: verdict %d; want it stored", one.URL, v)
		}
	}
	return stored
}

// turn hands out to the slots and to calls, ends what was handed out, and returns its URLs.
func (b *brokenBench) turn() (got []string) {
	b.t.Helper()
	for range 3 {
		b.d.pass(3 * time.Second)
		b.s.sweep(b.t.Context())
		batch := take(b.t, b.s)
		got = append(got, urls(batch)...)
		end(b.t, b.s, batch)
		b.d.pass(3 * time.Second)
		called := call(b.t, b.s)
		b.report(called)
		got = append(got, called...)
	}
	return got
}

// metadata names the crawl of all documents.
const metadata = `{"spiderid":["link"],"appid":["app"]}`

// report says that calls have fetched URLs.
func (b *brokenBench) report(urls []string) {
	for _, url := range urls {
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte(url), Crawl: []byte("crawl"), Metadata: []byte(metadata),
			Update: true, Due: docindex.Never}); err != nil {
			b.t.Fatal(err)
		}
		if _, err := b.s.Put(b.t.Context(), &p); err != nil {
			b.t.Errorf("report of %s: %v", url, err)
		}
	}
}

// rest does what else is done with a store, which needs the other keys. It may fail; the turns may
// not.
func (b *brokenBench) rest() {
	ctx, s, now := b.t.Context(), b.s, time.UnixMicro(b.d.now.Load())
	b.rounds++
	crawl := docindex.CrawlID{Spider: "link", App: "app", Crawl: "crawl"}
	s.ListCrawls(ctx, "", 10)
	s.Crawls(ctx)
	if err := s.EachPause(ctx, func([]byte, time.Duration) {}); err != nil && !errors.Is(err, errBroken) {
		b.t.Errorf("EachPause: %v", err)
	}
	s.Queues(ctx, []byte("crawl"), func([]byte, bool) bool { return true })
	s.Document(ctx, []byte(b.name("given", shardOf("bad.test"))))
	s.ReportPending(ctx, docindex.CrawlID{Spider: "link", App: "app"}, 10, nil)
	s.CrawlsToEnd(ctx, now, 10)
	s.FinishedCrawls(ctx, now, 10)
	s.Settings(ctx, func(*docindex.Setting) bool { return true })
	s.Count(ctx, &docindex.Scope{Crawl: []byte("crawl")})
	s.TakePages(ctx, "crawl", []string{""}, 10, 0)
	s.CountPages(ctx, "crawl", "", 0, nil)
	s.everywhere(ctx, inboxScript)
	s.one(ctx, shardOf("bad.test"), seeScript, endRefused, nameOfCrawl(crawl), decimal(b.rounds),
		endFinished, nameOfCrawl(crawl), "1")
	s.everywhere(ctx, purgedScript, nameOfCrawl(crawl))
	s.sweep(ctx)
}

// name makes a name that is in a shard.
func (b *brokenBench) name(what string, shard int) string {
	for n := 0; ; n++ {
		if name := fmt.Sprintf("%s%d", what, n); shardOf(name) == shard {
			return name
		}
	}
}

func (b *brokenBench) key(kind string) string {
	base := b.s.bases[shardOf("bad.test")] + ":"
	if kind == "pages:CRAWL" || kind == "places:CRAWL" {
		base = b.s.bases[shardOf("crawl")] + ":"
	}
	name := "4:3:linkappcrawl"
	queue, _ := b.do("HGET", base+"names", nameOf("crawl", "bad.test")).ToString()
	no, _ := b.do("HGET", base+"k", name).ToString()
	if kind == "k:C" || strings.HasPrefix(kind, "k:C:") {
		return base + "k:" + no + kind[len("k:C"):]
	}
	return base + strings.NewReplacer("Q", queue, "HOST", "bad.test", "CRAWL", "crawl", "DAEMON", b.s.owner,
		"NAME", name).Replace(kind)
}

func (b *brokenBench) do(command, key string, args ...string) rueidis.RedisResult {
	c := reach(b.t, b.s)
	return c.Do(b.t.Context(), c.B().Arbitrary(command).Keys(key).Args(args...).Build())
}

// TestBrokenKeys: a key of a wrong type costs only what it stands for, whichever key it is. The log
// names it, and when somebody has deleted it, what it stood for is served again.
func TestBrokenKeys(t *testing.T) {
	addr := redistest.Start(t).Addr()
	n := 0
	for kind, is := range brokenKeys {
		n++
		prefix := fmt.Sprintf("t%d:", n)
		t.Run(kind, func(t *testing.T) {
			b := newBrokenBench(t, addr, prefix)
			if kind == "e:Q" {
				b.branch()
			}
			b.put("1")
			taken := take(t, b.s)
			b.put("2")
			b.rest()
			key := b.key(kind)
			was, _ := b.do("TYPE", key).ToString()
			b.do("DEL", key)
			if was == "string" || strings.HasPrefix(kind, "f:") || strings.HasPrefix(kind, "t:") {
				b.do("SADD", key, "x")
			} else {
				b.do("SET", key, "x")
			}

			stored := b.put("3")
			b.rest()
			end(t, b.s, taken)
			got := b.turn()
			b.rest()
			served := map[string]int{}
			for _, url := range got {
				served[string(docindex.HostOf([]byte(url)))]++
			}
			if served[b.hosts[2]] != 2 || is.costs < costsShard && served[b.hosts[1]] != 2 {
				t.Errorf("served is %q; want all of %q", got, b.hosts[1+is.costs/2:])
			}
			if is.costs < costsShard && !slices.Contains(stored, b.hosts[1]) || is.costs == costsNothing &&
				(len(stored) != 3 || served[b.hosts[0]] != 2) {
				t.Errorf("stored is what is of %q, served is %q", stored, got)
			}
			if !strings.Contains(b.log.String(), `"key":"`+key+`"`) {
				t.Errorf("the log has %q; want it to name %s", b.log.String(), key)
			}

			b.do("DEL", key)
			for range 3 { // what daemons had that are not known any more is due again after a lease
				got = append(got, b.turn()...)
				b.d.pass(testLease)
			}
			stored = append(stored, b.put("4")...)
			got = append(got, b.turn()...)
			for _, path := range []string{"2", "3", "4"} {
				for _, host := range b.hosts {
					url := fmt.Sprintf("http://%s/%s", host, path)
					lost := is.lost && path != "4" && host != b.hosts[2] || path == "3" &&
						!slices.Contains(stored[:len(stored)-3], host)
					if n := strings.Count(strings.Join(got, " ")+" ", url+" "); n == 0 && !lost || n > 1 {
						t.Errorf("%s was served %d times", url, n)
					}
				}
			}
			b.s.sweep(t.Context())
			if left, err := b.do("HKEYS",
				b.s.bases[shardOf("bad.test")]+":broken").AsStrSlice(); err != nil || len(left) > 0 {
				t.Errorf("broken are still %q, %v", left, err)
			}
		})
	}
}
