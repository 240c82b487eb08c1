package disk_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// CRASHES is how often TestCrash kills its child, at random moments. Without CRASHES it kills a few
// times, after the same lines in each run.
const crashesVar, childVar = "CRASHES", "DISK_CRASH_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVar); path != "" {
		runCrashChild(path)
		return
	}
	os.Exit(m.Run())
}

// TestCrash repeatedly kills a process that works on a store. After each kill it opens the store.
// Each URL must be in the state that the acknowledged operations left it in, or in the state after
// the operation that was under way. The test continues until an operation of each kind was
// acknowledged.
func TestCrash(t *testing.T) {
	rounds, seed := 4, uint64(1)
	if text := os.Getenv(crashesVar); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s=%s: %v", crashesVar, text, err)
		}
		rounds, seed = n, uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d crashes", seed, rounds)
	rnd := rand.New(rand.NewPCG(seed, 0))
	path := t.TempDir()
	w := newWitness()
	for round := 0; round < rounds || w.missing() != "" && round < 10*rounds; round++ {
		w.watch(t, path, round, rnd)
		s, err := disk.Open(disk.Config{Path: path, Memory: memoryOfTests()})
		if err != nil {
			t.Fatalf("crash %d: %v", round, err)
		}
		if err := s.Check(); err != nil {
			t.Errorf("crash %d: %v", round, err)
		}
		w.check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("crash %d, seed %d", round, seed)
		}
	}
	w.checkSomething(t)
}

// fate is the state that a URL must have.
type fate struct {
	kind  byte // 's' scheduled, 'c' completed, 0 unknown
	due   int64
	lease bool
}

// operation is an operation that a client began, or that was acknowledged.
type operation struct {
	verb byte // p put, k update, c completed, s served, d queue deleted, x crawl stopped
	args []int64
}

// witness records what was acknowledged to each client. Each client has a crawl of its own, and
// does one operation at a time.
type witness struct {
	fates        []map[int64]fate
	pending      []*operation
	stopped      []stoppedCrawl // crawls whose purge was acknowledged
	slow         map[int64]int  // how often each queue was served that may be served only once
	acknowledged map[byte]int
}

type stoppedCrawl struct {
	id    docindex.CrawlID
	count int64 // number of its documents
}

const crashClients = 4

func newWitness() *witness {
	w := &witness{pending: make([]*operation, crashClients), slow: map[int64]int{}, acknowledged: map[byte]int{}}
	for range crashClients {
		w.fates = append(w.fates, map[int64]fate{})
	}
	return w
}

// watch runs a child and kills it after a random number of lines, whatever it is doing.
func (w *witness) watch(t *testing.T, path string, round int, rnd *rand.Rand) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVar+"="+path, fmt.Sprintf("%s=%d", crashesVar, round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	in.Buffer(nil, 1<<20)
	for left := 1 + rnd.IntN(400); in.Scan(); left-- {
		if left == 0 {
			cmd.Process.Kill() // the lines still in the pipe were written before
		}
		w.note(t, in.Text())
	}
	cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Fatalf("crash %d: the child ended by itself: %v", round, cmd.ProcessState)
	}
}

// note records a line of the child: I (intends) or A (acknowledged), the client, the verb, numbers.
func (w *witness) note(t *testing.T, line string) {
	words := strings.Fields(line)
	if len(words) < 3 {
		t.Fatalf("the child said %q", line)
	}
	client, err := strconv.Atoi(words[1])
	d := &operation{verb: words[2][0]}
	for _, word := range words[3:] {
		n, bad := strconv.ParseInt(word, 10, 64)
		err = errors.Join(err, bad)
		d.args = append(d.args, n)
	}
	if err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	if words[0] == "I" {
		w.pending[client] = d
		return
	}
	w.pending[client] = nil
	w.acknowledged[d.verb]++
	apply(w.fates[client], d)
	if d.verb == 'x' {
		w.stopped = append(w.stopped, stoppedCrawl{id: stopCrawl(client, d.args[0]), count: d.args[1]})
	}
	if d.verb == 's' {
		served := map[int64]bool{}
		for _, n := range d.args[1:] {
			if queue := slowQueue(client, n); isSlow(n) && !served[queue] {
				served[queue] = true
				w.slow[queue]++
			}
		}
	}
}

// apply changes fates as an operation does.
func apply(fates map[int64]fate, d *operation) {
	switch d.verb {
	case 'p':
		for n := d.args[0]; n < d.args[1]; n++ {
			if fates[n].kind == 0 {
				fates[n] = fate{kind: 's'}
			}
		}
	case 'k':
		fates[d.args[0]] = fate{kind: 's', due: d.args[1]}
	case 'c':
		for _, n := range d.args {
			fates[n] = fate{kind: 'c'}
		}
	case 's':
		for _, n := range d.args[1:] {
			f := fates[n]
			f.lease = d.args[0] > 0
			fates[n] = f
		}
	case 'd':
		for n := range fates {
			if n%crashHosts == d.args[0] {
				delete(fates, n)
			}
		}
	}
}

// check compares a store with what was acknowledged. It accepts the state of a URL before and after
// the operation that was under way, and records the one that it finds.
func (w *witness) check(t *testing.T, s *disk.Store) {
	t.Helper()
	for client, fates := range w.fates {
		after := map[int64]fate{}
		for n, f := range fates {
			after[n] = f
		}
		d := w.pending[client]
		if d != nil {
			apply(after, d)
		}
		for n := range after {
			if _, ok := fates[n]; !ok {
				fates[n] = fate{}
			}
		}
		for n, before := range fates {
			got := find(t, s, client, n)
			switch {
			case got.is(before), got.is(after[n]):
			case d != nil && d.verb == 's' && before.kind == 's' &&
				got.is(fate{kind: 's', due: before.due, lease: true}):
			default:
				t.Errorf("client %d, URL %d is %+v; want %+v, or %+v", client, n, got, before, after[n])
			}
			if fates[n] = got; got.kind == 0 {
				delete(fates, n)
			} else if before.due == 0 {
				got.due = 0
				fates[n] = got
			}
		}
		w.pending[client] = nil
		got := indextest.Count(t, s, &docindex.Scope{Crawl: crawlOf(client)})
		if total := got.Scheduled + got.InTransit + got.Completed; int(total) != len(fates) {
			t.Errorf("client %d: %d URLs are counted; it knows of %d", client, total, len(fates))
		}
	}
	w.checkStopped(t, s)
	for queue, n := range w.slow {
		if n > 1 {
			t.Errorf("queue %d, which has an hour between servings, was served %d times", queue, n)
		}
	}
}

// checkStopped checks crawls that were stopped and purged: all their documents are completed, and
// the store takes no new ones.
func (w *witness) checkStopped(t *testing.T, s *disk.Store) {
	t.Helper()
	for _, stopped := range w.stopped {
		id := stopped.id
		if n := indextest.Count(t, s, &docindex.Scope{Crawl: []byte(id.Crawl)}); n.Scheduled+
			n.InTransit > 0 || n.Completed != uint64(stopped.count) {
			t.Errorf("stopped crawl %v has %+v; want %d completed", id, n, stopped.count)
		}
		listed := int64(0)
		if err := s.List(t.Context(), docindex.Scope{Crawl: []byte(id.Crawl)}, func(d *docindex.Document) bool {
			if listed++; d.State != docindex.Completed || len(d.URL) == 0 {
				t.Errorf("stopped crawl %v lists %+v", id, d)
			}
			return true
		}); err != nil || listed != stopped.count {
			t.Errorf("stopped crawl %v lists %d documents, %v; want %d", id, listed, err, stopped.count)
		}
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte("http://late.test/"), Crawl: []byte(id.Crawl),
			Metadata: crashApp}); err != nil {
			t.Fatal(err)
		}
		if res, err := s.Put(t.Context(), &p); err != nil || res.Dropped != 1 {
			t.Errorf("a late put of stopped crawl %v: %+v, %v; want it dropped", id, res, err)
		}
	}
}

func (f fate) is(want fate) bool {
	return f.kind == want.kind && (f.lease == want.lease || f.kind != 's') && (want.due == 0 || f.due == want.due)
}

func find(t *testing.T, s *disk.Store, client int, n int64) (f fate) {
	t.Helper()
	url, host := crashURL(client, n)
	d, err := s.Find(t.Context(), docindex.Scope{Crawl: crawlOf(client), Key: host}, url)
	if errors.Is(err, docindex.ErrUnknown) {
		return f
	}
	if err != nil {
		t.Fatal(err)
	}
	switch d.State {
	case docindex.Completed:
		return fate{kind: 'c'}
	case docindex.InTransit:
		return fate{kind: 's', due: d.Due, lease: true}
	}
	return fate{kind: 's', due: d.Due}
}

// checkSomething checks that the test has seen enough operations to mean anything.
func (w *witness) checkSomething(t *testing.T) {
	t.Logf("acknowledged: %d puts, %d news, %d completions, %d servings, %d deletions; %d slow queues served",
		w.acknowledged['p'], w.acknowledged['k'], w.acknowledged['c'], w.acknowledged['s'],
		w.acknowledged['d'], len(w.slow))
	if kinds := w.missing(); kinds != "" {
		t.Errorf("nothing of kinds %s was acknowledged", kinds)
	}
}

// missing returns the kinds of operations of which none was acknowledged.
func (w *witness) missing() (kinds string) {
	for _, verb := range []byte("pkcsx") {
		if w.acknowledged[verb] == 0 {
			kinds += string(verb)
		}
	}
	return kinds
}
