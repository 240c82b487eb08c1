package redis

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/internal/testkit/redistest"
)

// oldStore is a store that commit 8c887e0 wrote, at a time: 120 documents of four crawls on 12
// hosts, some completed, some at the slots of a daemon that is no more, some leased to clients,
// with a snapshot of Redis. The queue of h7.example is blocked, that of crawl c1 with h8.example
// has a delay, and that of c2 with h9.example a limit. Crawl stopped was stopped.
type oldStore struct {
	Micros    int64
	Documents map[string]struct {
		ID, Crawl string
		State     docindex.State
		Due       int64
		Priority  int32
	}
	RDB []byte
}

func readOldStore(t *testing.T) (old oldStore) {
	t.Helper()
	file, err := os.Open("testdata/8c887e0.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(text).Decode(&old); err != nil {
		t.Fatal(err)
	}
	return old
}

// check compares all documents of a store with those of the old one. It returns the URLs that are to
// be handed out, and how many that are due are not: their queue is blocked, or has its limit.
func (old *oldStore) check(t *testing.T, s *Store) (wanted map[string]bool, blocked, limited int) {
	t.Helper()
	wanted = map[string]bool{}
	for url, is := range old.Documents {
		doc, err := s.Document(t.Context(), []byte(is.ID))
		if err != nil || string(doc.URL) != url || doc.State != is.State || doc.Due != is.Due ||
			doc.Priority != is.Priority || string(doc.Crawl) != is.Crawl {
			t.Errorf("%s is %+v, %v; want %+v", url, doc, err, is)
		}
		host := string(docindex.HostOf([]byte(url)))
		switch due := is.State != docindex.Completed && is.Due < old.Micros/1_000_000; {
		case due && is.Crawl == "" && host == "h7.example":
			blocked++
		case due && is.Crawl == "c2" && host == "h9.example":
			limited++
		case due:
			wanted[url] = true
		}
	}
	return wanted, blocked, limited
}

// takeFor takes and ends all that is due each minute. It returns how often each URL was handed out.
func (d *daemons) takeFor(s *Store, span time.Duration) map[string]int {
	d.t.Helper()
	got := map[string]int{}
	for range span / time.Minute {
		b := take(d.t, s)
		for _, url := range urls(b) {
			got[url]++
		}
		end(d.t, s, b)
		d.pass(time.Minute)
	}
	return got
}

// TestStoreOf8c887e0: all documents of that store are as they were, what was out is due again when
// its time has passed, and each that is due is handed out once.
func TestStoreOf8c887e0(t *testing.T) {
	old := readOldStore(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), old.RDB, 0o600); err != nil {
		t.Fatal(err)
	}
	d := &daemons{t: t, addr: redistest.Start(t, "--dir", dir).Addr()}
	d.now.Store(old.Micros)
	s, ctx := d.start(), t.Context()

	if len(old.Documents) != 120 {
		t.Fatalf("%d documents; want 120", len(old.Documents))
	}
	wanted, blocked, limited := old.check(t, s)
	if blocked == 0 || len(wanted) < 30 {
		t.Errorf("%d documents are blocked, %d of a limited queue, %d to be handed out", blocked, limited, len(wanted))
	}
	before, err := s.Count(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.pass(2 * time.Hour) // all leases are over
	got := d.takeFor(s, 200*time.Minute)
	for url := range wanted {
		if got[url] != 1 {
			t.Errorf("%s was handed out %d times; want once", url, got[url])
		}
		delete(got, url)
	}
	for url, n := range got {
		if is := old.Documents[url]; n != 1 || is.Crawl != "c2" ||
			string(docindex.HostOf([]byte(url))) != "h9.example" {
			t.Errorf("%s was handed out %d times; want it to stay: %+v", url, n, is)
		}
	}
	after, err := s.Count(ctx, nil)
	if all := before.Scheduled + before.InTransit + before.Completed; err != nil || all != 120 ||
		after.InTransit != 0 || after.Scheduled+after.Completed != all {
		t.Errorf("counts were %+v, and are %+v, %v; want 120 in all and none in transit", before, after, err)
	}
	if err := s.Set(ctx, docindex.Setting{Kind: docindex.SetBlock,
		Scope: docindex.Scope{Key: []byte("h7.example")}}); err != nil {
		t.Fatal(err)
	}
	if b := take(t, s); b.Len() != blocked {
		t.Errorf("%d are handed out when the queue is not blocked any more; want %d", b.Len(), blocked)
	}
	checkCounts(t, s)
}

// TestEndedDocumentIsAList ends a document. Redis keeps it as a list, which is smaller than a map, and
// reads it where an older version kept the time of the end in a field of its own.
func TestEndedDocumentIsAList(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	put(t, s, 1)
	end(t, s, take(t, s))
	at := time.Unix(d.unix(), 0).UTC()
	if doc := find(t, s); !doc.Last.At.Equal(at) {
		t.Errorf("the document ended at %v; want %v", doc.Last.At, at)
	}
	keep := `
local key = redis.call('KEYS', '*:b:*')[1]
local all = redis.call('HGETALL', key)
local doc = cmsgpack.unpack(all[2])
local was = { string.byte(all[2]), #doc }
doc.e, doc[18] = doc[18], nil
redis.call('HSET', key, all[1], cmsgpack.pack(doc))
return was`
	c := reach(t, s)
	was, err := c.Do(t.Context(), c.B().Eval().Script(keep).Numkeys(0).Build()).AsIntSlice()
	const array16 = 0xdc // msgpack's array of 16 elements and more
	if err != nil || len(was) != 2 || was[0] != array16 || was[1] != 18 {
		t.Fatalf("the document began with byte, and had: %x, %v; want an array of 18 elements", was, err)
	}
	if doc := find(t, s); !doc.Last.At.Equal(at) {
		t.Errorf("as an older version kept it, the document ended at %v; want %v", doc.Last.At, at)
	}
}

// find returns the document of host 0 that put stored.
func find(t *testing.T, s *Store) docindex.Document {
	t.Helper()
	scope := docindex.Scope{Key: []byte("h0.test")}
	doc, err := s.Find(t.Context(), scope, []byte("http://h0.test/"))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
