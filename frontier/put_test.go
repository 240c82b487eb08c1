package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/frontier"
	"urlserver/protocol"
)

// TestStatuses is the table of what each item is answered, by what is known of its URL.
func TestStatuses(t *testing.T) {
	const ok, skipped, fail = pb.AckMessage_OK, pb.AckMessage_SKIPPED, pb.AckMessage_FAIL
	r := newRig(t, nil)
	long := "http://a.test/" + strings.Repeat("x", 9000)
	for _, c := range []struct {
		name string
		item *pb.URLItem
		want pb.AckMessage_Status
	}{
		{"discovered, unknown", discovered("http://a.test/1"), ok},
		{"discovered, scheduled", discovered("http://a.test/1"), skipped},
		{"known 0, scheduled", known("http://a.test/1", 0), ok},
		{"discovered, completed", discovered("http://a.test/1"), skipped},
		{"known 0, completed", known("http://a.test/1", 0), ok},
		{"known date, completed", known("http://a.test/1", 5_000_000_000), ok},
		{"known date, scheduled", known("http://a.test/1", 1<<63), ok},
		{"known 0, unknown", known("http://a.test/2", 0), ok},
		{"known date, unknown", known("http://a.test/3", 1), ok},
		{"neither", &pb.URLItem{ID: "neither"}, skipped},
		{"no info", &pb.URLItem{ID: "no info", Item: &pb.URLItem_Discovered{}}, skipped},
		{"empty URL", discovered(""), skipped},
		{"no host", discovered("://"), skipped},
		{"text", discovered("text"), ok},
		{"another scheme", discovered("ftp://a.test/"), ok},
		{"longest", discovered(long[:protocol.MaxURL]), ok},
		{"long", discovered(long), fail},
		{"long, known", known(long, 0), fail},
		{"long key", discoveredInfo(&pb.URLInfo{Url: "http://a.test/k",
			Key: strings.Repeat("k", 256)}), skipped},
		{"longest key", discoveredInfo(&pb.URLInfo{Url: "http://a.test/k",
			Key: strings.Repeat("\u00fc", 255)}), ok},
		{"long key in UTF-16", discoveredInfo(&pb.URLInfo{Url: "http://a.test/l",
			Key: strings.Repeat("\U0001F600", 128)}), skipped},
		{"much metadata", discoveredInfo(&pb.URLInfo{
			Url:      "http://a.test/m",
			Metadata: map[string]*pb.StringList{"m": {Values: []string{strings.Repeat("m", 9000)}}},
		}), fail},
		{"key and metadata", discoveredInfo(&pb.URLInfo{
			Url: "http://a.test/m", Key: strings.Repeat("k", 200),
			Metadata: map[string]*pb.StringList{"m": {Values: []string{strings.Repeat("m",
				docindex.MaxExtra-200)}}},
		}), fail},
		{"long crawl ID", discoveredInfo(&pb.URLInfo{Url: "http://a.test/m",
			CrawlID: strings.Repeat("c", docindex.MaxExtra+1)}), fail},
	} {
		c.item.ID = "id of " + c.name
		acks := r.put(c.item)
		if got, there := acks[c.item.ID]; !there || got != c.want {
			t.Errorf("%s: acknowledged %v; want %v", c.name, acks, c.want)
		}
	}
	if got := r.put(discovered("http://a.test/id")); len(got) != 1 || got["http://a.test/id"] != ok {
		t.Errorf("without an ID: acknowledged %v; want the URL for an ID", got)
	}
}

func TestPutDiscovered(t *testing.T) {
	r := newRig(t, nil)
	stream := must[interface {
		Send(*pb.DiscoveredBatch) error
		Recv() (*pb.BatchAck, error)
		CloseSend() error
	}](t)(r.PutDiscovered(soon(t)))
	urls := func(texts ...string) (all []*pb.URLInfo) {
		for _, text := range texts {
			all = append(all, &pb.URLInfo{Url: text})
		}
		return all
	}
	for _, c := range []struct {
		id    string
		items []*pb.URLInfo
		want  string
	}{
		{id: "probe", want: "[]"},
		{id: "first", items: urls("http://a.test/1", "http://a.test/2", "http://a.test/1", "",
			"http://b.test/1"), want: "[OK OK SKIPPED SKIPPED OK]"},
		{id: "again", items: urls("http://a.test/2", "http://a.test/3"), want: "[SKIPPED OK]"},
		{id: "long", items: urls("http://a.test/4", "http://a.test/"+strings.Repeat("x", 9000),
			"http://a.test/4"), want: "[OK FAIL SKIPPED]"},
	} {
		if err := stream.Send(&pb.DiscoveredBatch{ID: c.id, Items: c.items}); err != nil {
			t.Fatal(err)
		}
		ack, err := stream.Recv()
		if err != nil || ack.ID != c.id || fmt.Sprint(ack.Statuses) != c.want {
			t.Errorf("batch %s: %v, %v; want %s", c.id, ack, err, c.want)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
}

// TestUnique puts URLs whose metadata say unique and depth, and completes one of them.
func TestUnique(t *testing.T) {
	r := newRig(t, nil)
	with := func(url, unique, depth string) *pb.URLItem {
		item := discovered(url)
		item.GetDiscovered().Info.Metadata = map[string]*pb.StringList{
			"unique": {Values: []string{unique}}, "depth": {Values: []string{depth}}}
		return item
	}
	if acks := r.put(with("http://a.test/1", "u", "2")); acks["http://a.test/1"] != pb.AckMessage_OK {
		t.Errorf("the first is answered %v", acks)
	}
	if acks := r.put(with("http://b.test/", "u", "x")); acks["http://b.test/"] != pb.AckMessage_SKIPPED {
		t.Errorf("another URL with its unique is answered %v", acks)
	}
	var p docindex.Puts
	for _, unique := range []string{"v", "w"} { // not put by gRPC
		if err := p.Add(docindex.Put{URL: []byte("http://a.test/1"), Unique: []byte(unique),
			Depth: 5}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.store.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	var acks []*pb.URLItem
	for _, one := range r.get(&pb.GetParams{MaxQueues: 1, MaxUrlsPerQueue: 10}) {
		if got := one.Metadata["unique"].GetValues(); !slices.Contains([]string{"[u]", "[v]",
			"[w]"}, fmt.Sprint(got)) {
			t.Errorf("unique %q", got)
		}
		acks = append(acks, &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: one}}})
	}
	if len(acks) != 3 {
		t.Fatalf("%d URLs; want 3", len(acks))
	}
	r.put(acks[0], acks[1])
	for i, want := range []docindex.State{docindex.Completed, docindex.Completed, docindex.InTransit} {
		unique := acks[i].GetKnown().Info.Metadata["unique"].Values[0]
		found := false
		if err := r.store.List(t.Context(), docindex.Scope{}, func(d *docindex.Document) bool {
			if string(d.Unique) == unique {
				found = true
				if d.State != want || d.Depth != map[string]uint16{"u": 2, "v": 5, "w": 5}[unique] {
					t.Errorf("%s is %v, depth %d; want %v", unique, d.State, d.Depth, want)
				}
			}
			return true
		}); err != nil || !found {
			t.Errorf("%s: found %v, %v", unique, found, err)
		}
	}
}

// failing is a store that stores nothing while it is told so.
type failing struct {
	docindex.Store
	err error
}

func (f *failing) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	if f.err != nil {
		return docindex.PutResult{}, f.err
	}
	return f.Store.Put(ctx, p)
}

func TestFailure(t *testing.T) {
	store := &failing{Store: memory.New(), err: errors.New("disk full")}
	r := newRig(t, func(c *frontier.Config) { c.Store = store })
	if acks := r.put(discovered("http://a.test/"),
		discovered("http://b.test/")); acks["http://a.test/"] != pb.AckMessage_FAIL ||
		acks["http://b.test/"] != pb.AckMessage_FAIL {
		t.Errorf("acknowledged %v while the store fails; want FAIL for each", acks)
	}
	store.err = nil
	if acks := r.put(discovered("http://a.test/")); acks["http://a.test/"] != pb.AckMessage_OK {
		t.Errorf("acknowledged %v afterwards; want OK", acks)
	}
}

// stuck is a store whose Put waits until it may go on.
type stuck struct {
	docindex.Store
	once          sync.Once
	entered, goOn chan struct{}
}

func (s *stuck) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	s.once.Do(func() { close(s.entered) })
	<-s.goOn
	return s.Store.Put(ctx, p)
}

// TestBackPressure holds a stream to a bound on what it reads while nothing can be stored, and to
// the end acknowledges all. In a bubble, where all goroutines can be waited for, what is not sent
// by then is held back.
func TestBackPressure(t *testing.T) { synctest.Test(t, testBackPressure) }

func testBackPressure(t *testing.T) {
	store := &stuck{Store: memory.New(), entered: make(chan struct{}), goOn: make(chan struct{})}
	r := newRig(t, func(c *frontier.Config) { c.Store = store })
	stream := must[interface {
		Send(*pb.URLItem) error
		Recv() (*pb.AckMessage, error)
		CloseSend() error
	}](t)(r.PutURLs(t.Context()))
	const items, most = 20_000, 5_000
	var count atomic.Int64
	sent := make(chan error, 1)
	go func() {
		for i := range items {
			if err := stream.Send(discovered(fmt.Sprintf("http://a.test/%s/%d", strings.Repeat("x", 500),
				i))); err != nil {
				sent <- err
				return
			}
			count.Add(1)
		}
		sent <- stream.CloseSend()
	}()
	<-store.entered
	synctest.Wait()
	if n := count.Load(); n == 0 || n > most {
		t.Errorf("%d items were sent while the first batch was being stored; want at most %d", n, most)
	}
	close(store.goOn)
	for n := range items {
		if ack, err := stream.Recv(); err != nil || ack.Status != pb.AckMessage_OK {
			t.Fatalf("acknowledgement %d is %v, %v; want OK", n, ack, err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestStop has a stream open when the service ends: what comes then is answered, with FAIL.
func TestStop(t *testing.T) {
	r := newRig(t, nil)
	stream := must[interface {
		Send(*pb.URLItem) error
		Recv() (*pb.AckMessage, error)
		CloseSend() error
	}](t)(r.PutURLs(soon(t)))
	status := func(i int) pb.AckMessage_Status {
		if err := stream.Send(discovered(fmt.Sprintf("http://a.test/%d", i))); err != nil {
			t.Fatal(err)
		}
		ack, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return ack.Status
	}
	if got := status(0); got != pb.AckMessage_OK {
		t.Errorf("before the end: %v; want OK", got)
	}
	ended := make(chan struct{})
	go func() { r.stop(); close(ended) }()
	got := pb.AckMessage_OK
	for i := 1; got == pb.AckMessage_OK; i++ { // until the service has heard that it ends
		got = status(i)
	}
	if got != pb.AckMessage_FAIL {
		t.Errorf("while it ends: %v; want FAIL", got)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	<-ended
}
