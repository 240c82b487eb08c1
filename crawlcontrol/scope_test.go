package crawlcontrol_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
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
