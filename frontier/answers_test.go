package frontier_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/frontier"
)

// noting is a store that notes what hosts answered, and how much was put before.
type noting struct {
	docindex.Store
	answers []string
	puts    int
}

func (n *noting) Answered(ctx context.Context, all []docindex.HostAnswer) error {
	for _, a := range all {
		n.answers = append(n.answers,
			fmt.Sprintf("%s %d %v after %d puts", a.Host, a.Status, a.RetryAfter, n.puts))
	}
	return n.Store.Answered(ctx, all)
}

func (n *noting) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	n.puts++
	return n.Store.Put(ctx, p)
}

// TestAnswers takes status and Retry-After from the metadata of known URLs, and of no others.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, url string
		metadata  map[string]string
		want      string // "": nothing is noted
	}{
		{name: "StormCrawler", url: "http://a.test/1", metadata: map[string]string{"fetch.statusCode": "503",
			"protocol.retry-after": "120"}, want: "a.test 503 2m0s"},
		{name: "short names", url: "http://A.test:80/",
			metadata: map[string]string{"status": "429", "Retry-After": " 7 "}, want: "a.test 429 7s"},
		{name: "without Retry-After", url: "http://a.test/1", metadata: map[string]string{"status": "503"},
			want: "a.test 503 0s"},
		{name: "success", url: "http://a.test/1", metadata: map[string]string{"status": "200",
			"retry-after": "9"},
			want: "a.test 200 0s"},
		{name: "a date", url: "http://a.test/1", metadata: map[string]string{"status": "503",
			"retry-after": time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)}, want: "a.test 503 0s"},
		{name: "no status", url: "http://a.test/1", metadata: map[string]string{"retry-after": "9"}},
		{name: "no number", url: "http://a.test/1", metadata: map[string]string{"status": "FETCHED"}},
		{name: "no metadata", url: "http://a.test/1"},
	} {
		store := &noting{Store: memory.New()}
		r := newRig(t, func(cfg *frontier.Config) { cfg.Store = store })
		item := known(c.url, 0)
		found := discovered("http://b.test/")
		for name, value := range c.metadata {
			for _, info := range []*pb.URLInfo{item.GetKnown().Info, found.GetDiscovered().Info} {
				if info.Metadata == nil {
					info.Metadata = map[string]*pb.StringList{}
				}
				info.Metadata[name] = &pb.StringList{Values: []string{value}}
			}
		}
		r.put(item)
		r.put(found)
		var want []string
		if c.want != "" {
			want = []string{c.want + " after 0 puts"}
		}
		if !slices.Equal(store.answers, want) {
			t.Errorf("%s: noted are %q; want %q", c.name, store.answers, want)
		}
	}
}
