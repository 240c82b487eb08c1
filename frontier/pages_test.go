package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/memory"
	"urlserver/frontier"
)

// counted is a store that counts the rows of its lists.
type counted struct {
	docindex.Store
	rows int
}

func (c *counted) List(ctx context.Context, s docindex.Scope, visit func(*docindex.Document) bool) error {
	return c.Store.List(ctx, s, func(d *docindex.Document) bool {
		c.rows++
		return visit(d)
	})
}

func (c *counted) Queues(ctx context.Context, crawl []byte, visit func([]byte, bool) bool) error {
	return c.Store.Queues(ctx, crawl, func(key []byte, idle bool) bool {
		c.rows++
		return visit(key, idle)
	})
}

// onStores runs a test over an index in memory and over one on disk, each with 1000 URLs of 100 hosts.
func onStores(t *testing.T, test func(t *testing.T, r *rig, c *counted)) {
	for name, open := range map[string]func(*testing.T) docindex.Store{
		"memory": func(*testing.T) docindex.Store { return memory.New() },
		"disk": func(t *testing.T) docindex.Store {
			s, err := disk.Open(disk.Config{Path: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counted{Store: open(t)}
			c.add(t, 1000, func(i int) docindex.Put {
				return docindex.Put{URL: fmt.Appendf(nil, "http://h%02d.test/%d", i/10, i%10)}
			})
			test(t, newRig(t, func(cfg *frontier.Config) { cfg.Store = c }), c)
		})
	}
}

func (c *counted) add(t *testing.T, n int, one func(i int) docindex.Put) {
	t.Helper()
	var p docindex.Puts
	for i := range n {
		if err := p.Add(one(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) list(start, size uint32) []string {
	r.t.Helper()
	return r.listOf(&pb.ListUrlParams{Start: start, Size: size})
}

func (r *rig) listOf(in *pb.ListUrlParams) (urls []string) {
	r.t.Helper()
	stream := must[pb.URLFrontier_ListURLsClient](r.t)(r.ListURLs(r.t.Context(), in))
	for {
		item, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return urls
		}
		if err != nil {
			r.t.Fatal(err)
		}
		urls = append(urls, item.GetKnown().Info.Url)
	}
}

func (r *rig) keys(in *pb.Pagination) *pb.QueueList {
	r.t.Helper()
	return must[*pb.QueueList](r.t)(r.ListQueues(r.t.Context(), in))
}

// Page by page, a list visits each row once, however many clients read it.
func TestPagesGoOn(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig, c *counted) {
		all := r.list(0, 1000)
		c.rows = 0
		for start := uint32(0); start < 1000; start += 50 {
			for client := range 2 {
				if got := r.list(start, 50); !slices.Equal(got, all[start:start+50]) {
					t.Fatalf("client %d: the page at %d is %q; want %q", client, start, got, all[start:start+50])
				}
			}
		}
		if c.rows != 2000 {
			t.Errorf("two clients' pages of 1000 rows visited %d", c.rows)
		}
		if got := r.list(970, 100); !slices.Equal(got, all[970:]) {
			t.Errorf("the last page is %q; want %q", got, all[970:])
		}
	})
}

// The pages of queues cost their rows, and once more each row of the list for the total.
func TestQueuePagesGoOn(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig, c *counted) {
		all := r.keys(&pb.Pagination{Size: 100}).Values
		c.rows = 0
		for start := uint32(0); start < 100; start += 5 {
			got := r.keys(&pb.Pagination{Start: start, Size: 5})
			if !slices.Equal(got.Values, all[start:start+5]) || got.Total != 100 {
				t.Fatalf("the page at %d is %v; want %q of 100", start, got, all[start:start+5])
			}
		}
		if c.rows != 200 {
			t.Errorf("pages of 100 rows visited %d; want 200", c.rows)
		}
	})
}

// A page shows what its client has changed since the page before.
func TestPagesAfterChange(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig, c *counted) {
		all := r.list(0, 1000)
		r.list(0, 100)
		r.keys(&pb.Pagination{Size: 10})
		must[*pb.Long](t)(r.DeleteQueue(t.Context(), &pb.QueueWithinCrawlParams{Key: "h10.test"}))
		must[*pb.Empty](t)(r.BlockQueueUntil(t.Context(), &pb.BlockQueueParams{Key: "h11.test",
			Time: uint64(time.Now().Unix() + 1000)}))
		if got := r.list(100, 20); !slices.Equal(got, all[110:130]) {
			t.Errorf("after the change the page is %q; want %q", got, all[110:130])
		}
		if got := r.keys(&pb.Pagination{Start: 10, Size: 1}); got.Total != 98 || got.Values[0] != "h12.test" {
			t.Errorf("after the change the queues are %v; want h12.test of 98", got)
		}
	})
}

// A list goes on where a store in memory has lost the place, because others have removed URLs.
func TestPagesAfterPurge(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig, c *counted) {
		c.add(t, 2500, func(i int) docindex.Put {
			put := docindex.Put{URL: fmt.Appendf(nil, "http://big.test/%d", i)}
			if i < 100 {
				put.Created = 1
			}
			return put
		})
		whole := pb.ListUrlParams{Key: "big.test", Size: 1000}
		part := pb.ListUrlParams{Key: "big.test", Size: 900} // the next page begins before the place that gets lost
		r.listOf(&whole)
		r.listOf(&part)
		if n, err := c.Purge(t.Context(), docindex.Scope{}, time.Unix(1000, 0)); n != 100 || err != nil {
			t.Fatalf("purged are %d URLs, %v; want 100", n, err)
		}
		for _, in := range []*pb.ListUrlParams{&whole, &part} {
			in.Start = in.Size
			if got := r.listOf(in); len(got) != int(in.Size) {
				t.Errorf("behind the first %d of 2400 URLs, the page has %d; want as many", in.Start, len(got))
			}
		}
	})
}
