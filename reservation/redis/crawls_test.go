package redis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/reservationtest"
)

// byCrawl checks the counts of each crawl. The total, and the sum over all hosts, must be their
// sum.
func byCrawl(t *testing.T, s *Store, when string, want map[string]int64) {
	t.Helper()
	got, err := do(t, s, []string{"HGETALL"}, s.cfg.Prefix+"chg_exec{chg}").AsIntMap()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: chg_exec = %v; want %v", when, got, want)
	}
	sum, hosts := int64(0), int64(0)
	for _, n := range got {
		sum += n
	}
	total, _ := do(t, s, []string{"GET"}, s.cfg.Prefix+"chg_total{chg}").AsInt64()
	counts, _ := do(t, s, []string{"HGETALL"}, s.cfg.Prefix+"chg_count{chg}").AsIntMap()
	for _, n := range counts {
		hosts += n
	}
	if total != sum || hosts != sum {
		t.Errorf("%s: chg_total = %d and all of chg_count = %d; want the sum of chg_exec, %d", when,
			total, hosts, sum)
	}
}

// nothingLeft checks that all counts are 0, and that only the key of the total is left.
func nothingLeft(t *testing.T, b reservationtest.Bench) {
	t.Helper()
	s := b.Store.(*Store)
	byCrawl(t, s, "in the end", map[string]int64{})
	b.Advance(2 * time.Minute)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	byCrawl(t, s, "after the end", map[string]int64{})
	for _, name := range []string{"chg_known{chg}", "chg_count{chg}", "chg_home{chg}", "chg_held{chg}:*",
		"chg_parts{chg}:*", "chg_tellers{chg}", "chg_crawls{chg}:*"} {
		if keys, err := do(t, s, []string{"KEYS"}, s.cfg.Prefix+name).AsStrSlice(); err != nil ||
			len(keys) > 0 {
			t.Errorf("left are %q, %v; want nothing", keys, err)
		}
	}
}

// of returns documents of a host: the total, and the number of each crawl.
func of(host string, n int, crawls ...any) reservation.Holding {
	h := reservation.Holding{Host: host, Documents: n}
	for i := 0; i < len(crawls); i += 2 {
		h.Crawls = append(h.Crawls, reservation.CrawlPart{Crawl: crawls[i].(string),
			Documents: crawls[i+1].(int)})
	}
	return h
}

func teller(t *testing.T, s *Store) func(holder string, first bool, held ...reservation.Holding) {
	return func(holder string, first bool, held ...reservation.Holding) {
		t.Helper()
		if known, err := s.ReportHoldings(t.Context(), holder, first, time.Minute,
			held); err != nil || !known {
			t.Errorf("Hold(%s) = %v, %v; want true", holder, known, err)
		}
	}
}

func TestHoldCountsByCrawl(t *testing.T) {
	b := bench(t, 0, redistest.Start(t).Addr())
	s := b.Store.(*Store)
	tell := teller(t, s)
	tell("a", true, of("x.test", 5, "one", 2, "two", 1), of("y.test", 3))
	byCrawl(t, s, "two crawls", map[string]int64{"one": 2, "two": 1, "DEFAULT": 5})
	tell("b", true, of("x.test", 4, "one", 4), of("::1", 1, "1", 1))
	byCrawl(t, s, "another holder", map[string]int64{"one": 6, "two": 1, "1": 1, "DEFAULT": 5})
	tell("a", false, of("x.test", 5, "two", 2, "three", 3))
	tell("a", false, of("x.test", 5, "two", 2, "three", 3)) // again, as after a lost answer
	byCrawl(t, s, "other ones", map[string]int64{"one": 4, "two": 2, "three": 3, "1": 1, "DEFAULT": 3})
	if _, err := s.Done(t.Context(), "x.test", 1, "one", 1); err == nil {
		t.Error("Done without a reservation succeeds")
	}
	tell("b", false, of("x.test", 4), of("::1", 0))
	byCrawl(t, s, "of no crawl any more", map[string]int64{"two": 2, "three": 3, "DEFAULT": 7})
	tell("a", false, of("x.test", 0), of("y.test", 0))
	tell("b", false, of("x.test", 0))
	nothingLeft(t, b)
}

// TestCrawlsThatCannotBeToldApart: such crawls count as DEFAULT while their documents are held.
func TestCrawlsThatCannotBeToldApart(t *testing.T) {
	b := bench(t, 0, redistest.Start(t).Addr())
	s := b.Store.(*Store)
	tell, odd := teller(t, s), strings.Repeat("x", maxCrawl+1)
	tell("a", true, of("x.test", 15, "", 1, "DEFAULT", 2, odd, 3, "a\nb", 4, odd[1:], 5))
	byCrawl(t, s, "odd ones", map[string]int64{odd[1:]: 5, "DEFAULT": 10})
	many := of("x.test", reservation.MaxCrawlsPerHost+7)
	for i := range many.Documents {
		many.Crawls = append(many.Crawls, reservation.CrawlPart{Crawl: fmt.Sprint("c", i), Documents: 1})
	}
	tell("a", false, many, of("y.test", 1))
	if n, err := do(t, s, []string{"HLEN"}, s.cfg.Prefix+"chg_exec{chg}").AsInt64(); err != nil ||
		n != reservation.MaxCrawlsPerHost+1 {
		t.Errorf("%d crawls are told apart, %v; want %d, and DEFAULT", n, err, reservation.MaxCrawlsPerHost)
	}
	if n, _ := do(t, s, []string{"HGET"}, s.cfg.Prefix+"chg_exec{chg}", "DEFAULT").AsInt64(); n != 8 {
		t.Errorf("DEFAULT has %d; want the 7 of further crawls, and 1", n)
	}
	tell("a", false, of("x.test", 0), of("y.test", 0))
	nothingLeft(t, b)
	for _, bad := range []reservation.Holding{of("x.test", 1, "one", 2), of("x.test", 1, "one", 0),
		of("x.test", -1), of("x.test", 2e9)} {
		if _, err := s.ReportHoldings(t.Context(), "a", false, time.Minute,
			[]reservation.Holding{bad}); err == nil {
			t.Errorf("Hold(%+v) is taken", bad)
		}
	}
}

// TestHoldersOfCrawlsDie: counts that a dead holder reported are removed.
func TestHoldersOfCrawlsDie(t *testing.T) {
	b := bench(t, 0, redistest.Start(t).Addr())
	s := b.Store.(*Store)
	tell := teller(t, s)
	var many []reservation.Holding
	for i := range 100 { // more than the worker handles at a time
		many = append(many, of(fmt.Sprintf("h%d.test", i), 3, "one", 1, "two", 1))
	}
	tell("a", true, many...)
	tell("b", true, of("h0.test", 2, "one", 2), of("h1.test", 1))
	byCrawl(t, s, "both", map[string]int64{"one": 102, "two": 100, "DEFAULT": 101})
	b.Advance(40 * time.Second)
	tell("b", false)
	b.Advance(30 * time.Second)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	byCrawl(t, s, "one has died", map[string]int64{"one": 2, "DEFAULT": 1})
	if _, err := s.ReportHoldings(t.Context(), "b", false, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, b)
}

// TestDeletedDocuments: deleted documents are not counted, in any crawl.
func TestDeletedDocuments(t *testing.T) {
	b := bench(t, 0, redistest.Start(t).Addr())
	s, ctx := b.Store.(*Store), t.Context()
	for crawl, n := range map[string]int{"one": 3, "two": 2, "": 1} {
		if err := s.AddDocuments(ctx, "x.test", time.Time{}, crawl, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddDocuments(ctx, "y.test", time.Time{}, "one", 1); err != nil {
		t.Fatal(err)
	}
	byCrawl(t, s, "added", map[string]int64{"one": 4, "two": 2, "DEFAULT": 1})
	if err := s.DeleteHost(ctx, "x.test", 0, time.Time{}); err != nil {
		t.Fatal(err)
	}
	byCrawl(t, s, "deleted", map[string]int64{"one": 1})
	if err := s.DeleteHost(ctx, "y.test", 0, time.Time{}); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, b)
}

// TestDoneOfACrawl: a holder that ends documents of a crawl reduces only its own counts, and counts
// from before crawls were counted.
func TestDoneOfACrawl(t *testing.T) {
	s, ctx := bench(t, 0, redistest.Start(t).Addr()).Store.(*Store), t.Context()
	for _, host := range []string{"x.test", "y.test"} {
		for crawl, n := range map[string]int{"one": 3, "": 2} {
			if err := s.AddDocuments(ctx, host, time.Time{}, crawl, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := s.TryReserve(ctx, "x.test", time.Minute, "me")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		crawl string
		n     int
		left  int64
		want  map[string]int64
	}{
		{crawl: "one", n: 1, left: 4, want: map[string]int64{"one": 5, "DEFAULT": 4}},
		{crawl: "", n: 9, left: 2, want: map[string]int64{"one": 5, "DEFAULT": 2}},
		{crawl: "one", n: 9, left: 0, want: map[string]int64{"one": 3, "DEFAULT": 2}},
	} {
		if left, err := s.Done(ctx, "x.test", r.Token, step.crawl, step.n); err != nil || left != step.left {
			t.Errorf("Done(%s, %d) = %d, %v; want %d", step.crawl, step.n, left, err, step.left)
		}
		byCrawl(t, s, "done", step.want)
	}
	got, err := s.TryReserve(ctx, "y.test", time.Minute, "me")
	if err != nil {
		t.Fatal(err)
	}
	do(t, s, []string{"DEL"}, s.cfg.Prefix+"chg_crawls{chg}:y.test") // as a daemon of a former version would leave it
	if left, err := s.Done(ctx, "y.test", got.Token, "one", 3); err != nil || left != 2 {
		t.Errorf("Done = %d, %v; want 2", left, err)
	}
	if n, err := do(t, s, []string{"GET"}, s.cfg.Prefix+"chg_total{chg}").AsInt64(); err != nil || n != 2 {
		t.Errorf("chg_total = %d, %v; want 2", n, err)
	}
}

// TestOlderDaemonsBeside: daemons of a former version change counts correctly, as far as they know
// them.
func TestOlderDaemonsBeside(t *testing.T) {
	b := bench(t, 0, redistest.Start(t).Addr())
	s := b.Store.(*Store)
	tell := teller(t, s)
	tell("a", true, of("x.test", 5, "one", 2))
	b.Advance(2 * time.Minute)
	// Their worker subtracts the documents under chg_held from DEFAULT.
	n, err := do(t, s, []string{"HGET"}, s.cfg.Prefix+"chg_held{chg}:a", "x.test").AsInt64()
	if err != nil || n != 3 {
		t.Fatalf("chg_held of a = %d, %v; want what is of DEFAULT, 3", n, err)
	}
	do(t, s, []string{"DEL"}, s.cfg.Prefix+"chg_held{chg}:a")
	do(t, s, []string{"ZREM"}, s.cfg.Prefix+"chg_holders{chg}", "a")
	do(t, s, []string{"HINCRBY"}, s.cfg.Prefix+"chg_count{chg}", "x.test", "-3")
	do(t, s, []string{"HINCRBY"}, s.cfg.Prefix+"CHG{chg}:x.test", "c", "-3")
	do(t, s, []string{"INCRBY"}, s.cfg.Prefix+"chg_total{chg}", "-3")
	do(t, s, []string{"HDEL"}, s.cfg.Prefix+"chg_exec{chg}", "DEFAULT")
	byCrawl(t, s, "after theirs", map[string]int64{"one": 2})
	if err := s.Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, b)
}

// tallyModel is a model of the counts by crawl.
type tallyModel struct {
	rng   *rand.Rand
	told  map[string]map[string]reservation.Holding // reported, by holder and host
	added map[string]map[string]int                 // by host and crawl
	names int
}

var modelCrawls = []string{"one", "two", "3", "DEFAULT"}

func (w *tallyModel) holder() (name string) {
	if len(w.told) == 0 {
		return ""
	}
	return slices.Sorted(maps.Keys(w.told))[w.rng.IntN(len(w.told))]
}

func (w *tallyModel) some() (h reservation.Holding) {
	h.Host = fmt.Sprintf("h%d.test", w.rng.IntN(4))
	for _, crawl := range modelCrawls {
		if n := w.rng.IntN(4); n > 0 && w.rng.IntN(2) == 0 {
			h.Documents += n
			if crawl != "DEFAULT" {
				h.Crawls = append(h.Crawls, reservation.CrawlPart{Crawl: crawl, Documents: n})
			}
		}
	}
	return h
}

func (w *tallyModel) counts() map[string]int64 {
	sum := map[string]int64{}
	for _, hosts := range w.told {
		for _, h := range hosts {
			sum["DEFAULT"] += int64(h.Documents)
			for _, c := range h.Crawls {
				sum[c.Crawl] += int64(c.Documents)
				sum["DEFAULT"] -= int64(c.Documents)
			}
		}
	}
	for _, counts := range w.added {
		for crawl, n := range counts {
			sum[crawl] += int64(n)
		}
	}
	maps.DeleteFunc(sum, func(_ string, n int64) bool { return n == 0 })
	return sum
}

// step makes one change to both.
func (w *tallyModel) step(t *testing.T, s *Store) {
	name, host := w.holder(), fmt.Sprintf("h%d.test", 10+w.rng.IntN(3))
	switch what := w.rng.IntN(8); {
	case what == 0 || name == "": // a new holder
		w.names++
		name = fmt.Sprint("holder", w.names)
		w.told[name] = map[string]reservation.Holding{}
		teller(t, s)(name, true)
	case what == 1: // one dies
		if _, err := s.ReportHoldings(t.Context(), name, false, 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Work(t.Context()); err != nil {
			t.Fatal(err)
		}
		delete(w.told, name)
	case what == 2: // documents are added
		crawl, n := modelCrawls[w.rng.IntN(4)], 1+w.rng.IntN(5)
		if err := s.AddDocuments(t.Context(), host, time.Time{}, crawl, n); err != nil {
			t.Fatal(err)
		}
		if w.added[host] == nil {
			w.added[host] = map[string]int{}
		}
		w.added[host][crawl] += n
	case what == 3: // all of a host are deleted
		if err := s.DeleteHost(t.Context(), host, 0, time.Time{}); (err == nil) != (w.added[host] != nil) {
			t.Fatalf("DeleteHost of what has %v = %v", w.added[host], err)
		}
		delete(w.added, host)
	default:
		h := w.some()
		w.told[name][h.Host] = h
		teller(t, s)(name, false, h)
	}
}

// TestCountsAgainstTheirModel: holders report random counts, and die, while others add documents
// and delete hosts.
func TestCountsAgainstTheirModel(t *testing.T) {
	server := redistest.Start(t)
	for seed := range uint64(3) {
		s := bench(t, 0, server.Addr()).Store.(*Store)
		w := tallyModel{rng: rand.New(rand.NewPCG(seed, 7)),
			told: map[string]map[string]reservation.Holding{}, added: map[string]map[string]int{}}
		for step := range 300 {
			w.step(t, s)
			byCrawl(t, s, fmt.Sprintf("seed %d, step %d", seed, step), w.counts())
			if t.Failed() {
				return
			}
		}
	}
}
