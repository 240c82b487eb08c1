package crawlcontrol_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
)

// laid is what the fake of the golden tests has.
func laid() *fakeCrawls {
	pend := func(total uint64, low, high int32) docindex.Pending {
		return docindex.Pending{Total: total, Low: low, High: high}
	}
	one := docindex.CrawlPending{
		Crawl: "2aaabbb", Pending: pend(1, 29, 29), Expires: 1429216389, Distinct: 1,
		Domains: []docindex.DomainPending{{Domain: "istresearch.com", Pending: pend(1, 29, 29)}},
	}
	many := docindex.CrawlPending{
		Crawl: "1aaabbb", Pending: pend(11, 29, 39), Distinct: 3,
		Domains: []docindex.DomainPending{
			{Domain: "example.co.uk", Pending: pend(7, 29, 31)},
			{Domain: "10.0.0.1", Pending: pend(3, 39, 39)},
		},
	}
	id := func(crawl string) docindex.CrawlID {
		return docindex.CrawlID{Spider: "link", App: "testapp", Crawl: crawl}
	}
	return &fakeCrawls{purged: 524, surveys: map[docindex.CrawlID]docindex.PendingReport{
		id(""):        {Total: 12, Domains: 4, Count: 2, Crawls: []docindex.CrawlPending{many, one}},
		id("2aaabbb"): {Total: 1, Domains: 1, Count: 1, Crawls: []docindex.CrawlPending{one}},
		id("1aaabbb"): {Total: 11, Domains: 3, Count: 1, Crawls: []docindex.CrawlPending{many}},
	}}
}

const bubbleTime = "946684800" // when bubbles begin

// Each row of the table of replies, letter by letter: field names, types, what is left out.
func TestGolden(t *testing.T) {
	for _, c := range []struct{ name, message, want string }{
		{
			name:    "info by appid",
			message: `{"action":"info", "appid":"testapp", "uuid":"someuuid", "spiderid":"link"}`,
			want: `{"server_time":` + bubbleTime + `,"uuid":"someuuid","appid":"testapp","spiderid":"link",` +
				`"total_pending":12,"total_domains":4,"total_crawlids":2,"crawlids":{` +
				`"1aaabbb":{"total":11,"low_priority":29,"high_priority":39,"distinct_domains":3,"domains":{` +
				`"10.0.0.1":{"total":3,"low_priority":39,"high_priority":39},` +
				`"example.co.uk":{"total":7,"low_priority":29,"high_priority":31}},"domains_truncated":true},` +
				`"2aaabbb":{"total":1,"low_priority":29,"high_priority":29,"expires":"1429216389","distinct_domains":1,"domains":{` +
				`"istresearch.com":{"total":1,"low_priority":29,"high_priority":29}}}}}`,
		}, {
			name:    "info by appid that nobody knows",
			message: `{"spiderid":"other","uuid":"u","appid":"<app>","action":"info"}`,
			want: `{"server_time":` + bubbleTime + `,"uuid":"u","appid":"<app>","spiderid":"other",` +
				`"total_pending":0,"total_domains":0,"total_crawlids":0,"crawlids":{}}`,
		}, {
			name:    "info by crawlid",
			message: `{"action":"info", "appid":"testapp", "uuid":"someuuid", "crawlid":"2aaabbb", "spiderid":"link"}`,
			want: `{"server_time":` + bubbleTime +
				`,"uuid":"someuuid","appid":"testapp","spiderid":"link","crawlid":"2aaabbb",` +
				`"total_pending":1,"total_domains":1,"low_priority":29,"high_priority":29,"expires":"1429216389",` +
				`"domains":{"istresearch.com":{"total":1,"low_priority":29,"high_priority":29}}}`,
		}, {
			name:    "info by crawlid, more domains than are listed",
			message: `{"action":"info","appid":"testapp","uuid":"someuuid","crawlid":"1aaabbb","spiderid":"link"}`,
			want: `{"server_time":` + bubbleTime +
				`,"uuid":"someuuid","appid":"testapp","spiderid":"link","crawlid":"1aaabbb",` +
				`"total_pending":11,"total_domains":3,"low_priority":29,"high_priority":39,` +
				`"domains":{"10.0.0.1":{"total":3,"low_priority":39,"high_priority":39},` +
				`"example.co.uk":{"total":7,"low_priority":29,"high_priority":31}},"domains_truncated":true}`,
		}, {
			name:    "info by crawlid that nobody knows",
			message: `{"action":"info","appid":"testapp","uuid":"u","crawlid":"none","spiderid":"link"}`,
			want: `{"server_time":` + bubbleTime +
				`,"uuid":"u","appid":"testapp","spiderid":"link","crawlid":"none",` +
				`"total_pending":0,"total_domains":0,"domains":{}}`,
		}, {
			name:    "stop",
			message: `{"action":"stop", "appid":"testapp", "uuid":"someuuid2", "crawlid":"ABC123", "spiderid":"link"}`,
			want: `{"action":"stop","total_purged":524,"uuid":"someuuid2","spiderid":"link","appid":"testapp",` +
				`"crawlid":"ABC123","server_time":` + bubbleTime + `}`,
		}, {
			name:    "refused",
			message: `{"action":"stop","appid":"testapp","uuid":"u","spiderid":"link"}`,
			want:    `{"error":"stop: crawlid is missing","uuid":"u","appid":"testapp"}`,
		}, {
			name:    "refused, nothing to be read",
			message: `{"action":"stop"`,
			want:    `{"error":"message is not a JSON object, or something follows it"}`,
		}, {
			name:    "crawl",
			message: `{"url":"http://a.test/","appid":"testapp","crawlid":"c"}`,
			want:    `{"action":"crawl","status":"new","spiderid":"link","appid":"testapp","crawlid":"c","server_time":` + bubbleTime + `}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				replies, done, err := crawlcontrol.New(laid(), 2).Do(t.Context(), [][]byte{[]byte(c.message)})
				if err != nil || done != 1 || len(replies) != 1 {
					t.Fatalf("Do: %d replies, %d done, %v", len(replies), done, err)
				}
				if got := string(replies[0].Body); got != c.want {
					t.Errorf("reply is\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}

func TestNotices(t *testing.T) {
	id := docindex.CrawlID{Spider: "link", App: "testapp", Crawl: "abcdef-1"}
	at := time.Unix(1429216294, 999_999_999)
	for _, c := range []struct {
		name string
		got  crawlcontrol.Reply
		want string
	}{
		{"expired", crawlcontrol.ExpiredNotice(id, 75, at),
			`{"action":"expired","total_expired":75,"spiderid":"link","appid":"testapp","crawlid":"abcdef-1","server_time":1429216294}`},
		{"expired, empty", crawlcontrol.ExpiredNotice(id, 0, at),
			`{"action":"expired","total_expired":0,"spiderid":"link","appid":"testapp","crawlid":"abcdef-1","server_time":1429216294}`},
		{"completed", crawlcontrol.CompletedNotice(id, 7, at),
			`{"action":"completed","total_done":7,"spiderid":"link","appid":"testapp","crawlid":"abcdef-1","server_time":1429216294}`},
	} {
		if string(c.got.Body) != c.want || c.got.App != "testapp" || c.got.Of != -1 {
			t.Errorf("%s: %+v %s; want %s", c.name, c.got, c.got.Body, c.want)
		}
	}
}

// The samples of the founding text: what they have, our replies have with the same type.
func TestFoundingSamples(t *testing.T) {
	crawls := laid()
	crawls.surveys[docindex.CrawlID{Spider: "link", App: "myapp", Crawl: "abc123"}] = docindex.PendingReport{
		Crawls: []docindex.CrawlPending{{Crawl: "abc123",
			Pending: docindex.Pending{Total: 28, Low: 39, High: 39}}},
	}
	m := crawlcontrol.New(crawls, 10)
	notice := crawlcontrol.ExpiredNotice(docindex.CrawlID{Spider: "link", App: "testapp",
		Crawl: "abcdef-1"}, 75, time.Now())
	for _, c := range []struct{ name, message, sample string }{
		{
			"info by appid", `{"action":"info", "appid":"testapp", "uuid":"someuuid", "spiderid":"link"}`,
			`{"server_time": 1429216294, "uuid": "someuuid", "total_pending": 12, "total_domains": 0, "total_crawlids": 2, "appid": "testapp",
			"crawlids": {"2aaabbb": {"low_priority": 29, "high_priority": 29, "expires": "1429216389", "total": 1},
			"1aaabbb": {"low_priority": 29, "high_priority": 39, "total": 11}}}`,
		}, {
			"info by crawlid",
			`{"action":"info", "appid":"myapp", "uuid":"someuuid", "crawlid":"abc123", "spiderid":"link"}`,
			`{"server_time": 1429216864, "crawlid": "abc123", "total_pending": 28, "low_priority": 39, "high_priority": 39, "appid": "testapp", "uuid": "someuuid"}`,
		}, {
			"stop", `{"action":"stop", "appid":"testapp", "uuid":"someuuid2", "crawlid":"ABC123", "spiderid":"link"}`,
			`{"total_purged": 524, "uuid": "someuuid", "spiderid": "link", "appid": "testapp", "action": "stop", "crawlid": "ABC123"}`,
		}, {
			"expired", "",
			`{"total_expired": 75, "crawlid": "abcdef-1", "spiderid": "link", "appid": "testapp", "action": "expired"}`,
		},
	} {
		body := notice.Body
		if c.message != "" {
			replies, _, err := m.Do(t.Context(), [][]byte{[]byte(c.message)})
			if err != nil || len(replies) != 1 {
				t.Fatalf("%s: %d replies, %v", c.name, len(replies), err)
			}
			body = replies[0].Body
		}
		var got, want map[string]any
		if err := json.Unmarshal([]byte(c.sample), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		wantFields(t, c.name, got, want)
	}
}

func wantFields(t *testing.T, at string, got, want map[string]any) {
	t.Helper()
	for name, w := range want {
		g := got[name]
		if reflect.TypeOf(g) != reflect.TypeOf(w) {
			t.Errorf("%s: %s is %v; want as in %v", at, name, g, w)
		} else if inner, ok := w.(map[string]any); ok {
			wantFields(t, at+": "+name, g.(map[string]any), inner)
		}
	}
}

// Whatever crawls and domains are called, an info is JSON that says their names as encoding/json
// would.
func TestInfoNames(t *testing.T) {
	names := []string{`"`, `\`, "a\tb\x00", "\x7f", "münchen.test", "\u2028", "\xff\xfe", "<&>", "", "a b",
		`\u0041`}
	crawls := laid()
	var survey docindex.PendingReport
	for i, name := range names {
		one := docindex.CrawlPending{Crawl: name, Distinct: 1,
			Domains: []docindex.DomainPending{{Domain: name}}}
		one.Total, one.Domains[0].Total = uint64(i), uint64(i)
		survey.Crawls = append(survey.Crawls, one)
		survey.Count++
	}
	crawls.surveys[docindex.CrawlID{Spider: "link", App: "testapp"}] = survey
	replies, _, err := crawlcontrol.New(crawls, 10).Do(t.Context(),
		[][]byte{[]byte(`{"action":"info","appid":"testapp","uuid":"é\"","spiderid":"link"}`)})
	if err != nil || len(replies) != 1 {
		t.Fatalf("Do: %d replies, %v", len(replies), err)
	}
	var got struct {
		UUID     string
		CrawlIDs map[string]struct {
			Total   int
			Domains map[string]struct{ Total int }
		}
	}
	if err := json.Unmarshal(replies[0].Body, &got); err != nil {
		t.Fatalf("%v: %s", err, replies[0].Body)
	}
	if got.UUID != `é"` || len(got.CrawlIDs) != len(names) {
		t.Errorf("uuid %q and %d crawls; want %d", got.UUID, len(got.CrawlIDs), len(names))
	}
	for i, name := range names {
		name = strings.ToValidUTF8(name, "\ufffd\ufffd")
		if c := got.CrawlIDs[name]; c.Total != i || c.Domains[name].Total != i || len(c.Domains) != 1 {
			t.Errorf("%q: %+v; want %d", name, c, i)
		}
	}
}
