package crawlcontrol_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex/export"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
)

// A request whose members do not fit into the lists of its crawl's scope is refused: without them, URLs would
// be fetched that it denies, or refused that it allows. Members that the scope has already need no place.
func TestScopeIsFull(t *testing.T) {
	store := scoped.New(memory.New())
	m := crawlcontrol.New(crawlcontrol.NewController(store, &fakeSlots{}, zerolog.Nop()), 10)
	for i, c := range []struct {
		from, to int // of the members
		want     string
	}{
		{0, 700, `"status":"new"`},
		{0, 700, `"status":"new"`},
		{600, 1000, `"status":"new"`},
		{1000, 1001, `"error":"crawl: the scope of the crawl has no room for what this request adds: ` +
			`deny_extensions: it has 1001 members; at most 1000 are taken","appid":"testapp"`},
		{0, 1000, `"status":"new"`},
	} {
		var members []string
		for n := c.from; n < c.to; n++ {
			members = append(members, fmt.Sprint("e", n))
		}
		list, _ := json.Marshal(members)
		replies, done, err := m.Do(t.Context(), [][]byte{fmt.Appendf(nil,
			`{"url":"http://a.test/%d","appid":"testapp","crawlid":"c1","deny_extensions":%s}`, i, list)})
		if err != nil || done != 1 || len(replies) != 1 || !strings.Contains(string(replies[0].Body), c.want) {
			t.Errorf("request %d: %d done, %v, %s; want %s", i, done, err, replies[0].Body, c.want)
		}
	}
	if n := store.Stats().Scheduled; n != 4 {
		t.Errorf("%d URLs are scheduled; want those of the four requests that were taken", n)
	}
}

// A request that would make its crawl's scope larger than an import takes is refused: without a scope, an import
// would take what the scope refuses.
func TestScopeIsImported(t *testing.T) {
	store := scoped.New(memory.New())
	m := crawlcontrol.New(crawlcontrol.NewController(store, &fakeSlots{}, zerolog.Nop()), 10)
	const crawl = "c1"
	refused := 0
	for i := range 40 {
		var domains []string
		for n := range 25 {
			domains = append(domains, fmt.Sprintf("%s%d-%d.test", strings.Repeat(strings.Repeat("a", 50)+".", 3), i, n))
		}
		list, _ := json.Marshal(domains)
		replies, _, err := m.Do(t.Context(), [][]byte{fmt.Appendf(nil,
			`{"url":"http://%s/","appid":"testapp","crawlid":"%s","allowed_domains":%s}`, domains[0], crawl, list)})
		if err != nil {
			t.Fatal(err)
		}
		if body := string(replies[0].Body); strings.Contains(body, "adds: scope: it has ") {
			refused++
		} else if !strings.Contains(body, `"status":"new"`) || refused > 0 {
			t.Fatalf("request %d: %.300s; want that it is taken, or has no room as those before", i, body)
		}
	}
	want, err := store.Crawl(t.Context(), crawl)
	if err != nil || refused == 0 || len(want.Scope.Domains) != 25*(40-refused) {
		t.Fatalf("%d of 40 requests are refused, the scope has %d domains, %v; want 25 for each that was taken",
			refused, len(want.Scope.Domains), err)
	}
	var dump bytes.Buffer
	if err := export.Write(t.Context(), store, &dump); err != nil {
		t.Fatal(err)
	}
	into := scoped.New(memory.New())
	if res, err := export.Read(t.Context(), into, &dump); err != nil || res.Invalid > 0 {
		t.Fatalf("%+v, %v; want no line that is invalid", res, err)
	}
	if got, err := into.Crawl(t.Context(), crawl); err != nil || !bytes.Equal(got.Scope.Text(), want.Scope.Text()) {
		t.Errorf("imported are %d domains, %v; want %d", len(got.Scope.Domains), err, len(want.Scope.Domains))
	}
}
