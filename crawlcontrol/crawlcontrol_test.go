package crawlcontrol_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/crawlcontrol"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/internal/scope"
)

const (
	crawlText = `{"url":"http://%s.test/","appid":"testapp","crawlid":"c1"}`
	infoText  = `{"action":"info","appid":"testapp","uuid":"u","spiderid":"link"}`
	stopText  = `{"action":"stop","appid":"testapp","uuid":"u","spiderid":"link","crawlid":"c1"}`
)

func crawl(host string) []byte { return fmt.Appendf(nil, crawlText, host) }

// kinds says of each reply what it answers and how.
func kinds(replies []crawlcontrol.Reply) (all []string) {
	for _, r := range replies {
		var body map[string]any
		_ = json.Unmarshal(r.Body, &body)
		word := "info"
		switch {
		case r.Refused:
			word = "refused"
		case body["status"] != nil:
			word = body["status"].(string)
		case body["action"] != nil:
			word = body["action"].(string)
		}
		all = append(all, fmt.Sprintf("%d %s", r.Of, word))
	}
	slices.Sort(all)
	return all
}

// Crawls side by side are stored together, and nothing overtakes anything.
func TestDoInOrder(t *testing.T) {
	f := &fakeCrawls{}
	m := crawlcontrol.New(f, 10)
	replies, done, err := m.Do(t.Context(), [][]byte{
		crawl("a"), crawl("known"), crawl("unstorable"), []byte(stopText), crawl("b"), crawl("stopped"),
		[]byte("?"), crawl("d"), []byte(infoText),
	})
	if err != nil || done != 9 {
		t.Fatalf("Do: %d done, %v", done, err)
	}
	want := []string{"0 new", "1 known", "2 refused", "3 stop", "4 new", "5 dropped", "6 refused", "7 new",
		"8 info"}
	if got := kinds(replies); !slices.Equal(got, want) {
		t.Errorf("replies are\n%v; want\n%v", got, want)
	}
	if f.runs != 3 {
		t.Errorf("stored in %d runs; want 3", f.runs)
	}
	for _, r := range replies {
		if r.NoReply != strings.Contains(string(r.Body), `"status"`) || r.Of != 6 && r.App != "testapp" {
			t.Errorf("reply %+v %s", r, r.Body)
		}
	}
	if got, want := m.Counts(), (crawlcontrol.Counts{Crawl: 5, Info: 1, Stop: 1, Refused: 2,
		Dropped: 1}); got != want {
		t.Errorf("counters are %+v; want %+v", got, want)
	}
}

// When there is no room for another crawl, requests for one are refused, and hold up no others.
func TestTooManyCrawls(t *testing.T) {
	f := &fakeCrawls{full: true, scopes: map[string]scope.Scope{"c1": {}}}
	m := crawlcontrol.New(f, 10)
	another := []byte(`{"url":"http://z.test/","appid":"testapp","crawlid":"c2"}`)
	replies, done, err := m.Do(t.Context(), [][]byte{another, crawl("a"), crawl("unstorable"), another, crawl("b"),
		[]byte(infoText)})
	if err != nil || done != 6 {
		t.Fatalf("Do: %d done, %v", done, err)
	}
	want := []string{"0 refused", "1 new", "2 refused", "3 refused", "4 new", "5 info"}
	if got := kinds(replies); !slices.Equal(got, want) {
		t.Errorf("replies are\n%v; want\n%v", got, want)
	}
	if want := []string{"http://a.test/", "http://b.test/"}; !slices.Equal(f.urls, want) {
		t.Errorf("stored are %q; want %q", f.urls, want)
	}
	if got, want := m.Counts(), (crawlcontrol.Counts{Crawl: 2, Info: 1, Refused: 3}); got != want {
		t.Errorf("counters are %+v; want %+v", got, want)
	}
}

// Wherever the store fails, what was done has its reply and the rest can be tried again: once each
// in the end.
func TestDoGoesOnAfterAnError(t *testing.T) {
	messages := [][]byte{crawl("a"), crawl("b"), []byte(infoText), []byte("?"), crawl("c"),
		[]byte(stopText), crawl("d"), []byte(infoText), crawl("e")}
	f := &fakeCrawls{}
	m := crawlcontrol.New(f, 10)
	var all []string
	for at, calls := 0, 0; at < len(messages); calls++ {
		f.failures = calls % 2 // every other call fails at its first step
		replies, done, err := m.Do(t.Context(), messages[at:])
		if (err != nil) != (done < len(messages)-at) || err != nil && !errors.Is(err, errStore) {
			t.Fatalf("Do: %d of %d done, %v", done, len(messages)-at, err)
		}
		for _, r := range replies {
			if r.Of >= done {
				t.Errorf("reply to message %d of which only %d are done", r.Of, done)
			}
			r.Of += at
			all = append(all, kinds([]crawlcontrol.Reply{r})...)
		}
		at += done
		if calls > 2*len(messages) {
			t.Fatal("it does not get on")
		}
	}
	want := []string{"0 new", "1 new", "2 info", "3 refused", "4 new", "5 stop", "6 new", "7 info", "8 new"}
	if slices.Sort(all); !slices.Equal(all, want) {
		t.Errorf("replies are\n%v; want\n%v", all, want)
	}
	if got := f.urls; len(got) != 5 {
		t.Errorf("stored are %q", got)
	}
}

// Each step of a batch may be the one that fails.
func TestDoFailsAtEachStep(t *testing.T) {
	messages := [][]byte{crawl("a"), []byte(infoText), crawl("b"), []byte(stopText), []byte("?"), crawl("c")}
	for step, want := range []int{0, 1, 2, 3, 5} {
		f := &failAt{step: step}
		replies, done, err := crawlcontrol.New(f, 10).Do(t.Context(), messages)
		if !errors.Is(err, errStore) || done != want || len(replies) != want {
			t.Errorf("failure at step %d: %d replies, %d done, %v; want %d", step, len(replies),
				done, err, want)
		}
	}
}

func TestLongRuns(t *testing.T) {
	f := &fakeCrawls{}
	var messages [][]byte
	for i := range 2500 {
		messages = append(messages, crawl(fmt.Sprintf("h%d", i)))
	}
	replies, done, err := crawlcontrol.New(f, 10).Do(t.Context(), messages)
	if err != nil || done != 2500 || len(replies) != 2500 || f.runs != 3 {
		t.Fatalf("%d replies, %d done in %d runs, %v", len(replies), done, f.runs, err)
	}
	for i, r := range replies {
		if r.Of != i {
			t.Fatalf("reply %d is to message %d", i, r.Of)
		}
	}
}

func TestStopRefused(t *testing.T) {
	replies, _, err := crawlcontrol.New(&fakeCrawls{full: true}, 10).
		Do(t.Context(), [][]byte{[]byte(stopText)})
	if err != nil || len(replies) != 1 || !replies[0].Refused {
		t.Errorf("replies are %v, %v", kinds(replies), err)
	}
}

// What a crawl request says, the store gets.
func TestCrawlRequest(t *testing.T) {
	r, err := crawlcontrol.Parse([]byte(`{"url":"HTTP://A.test/x#y","appid":"testapp","crawlid":"c1","spiderid":"wandering","priority":100,
		"maxdepth":3,"expires":1500000000,"allowed_domains":["a.test","b.test"],"allow_regex":[],"deny_regex":null,"useragent":"é","cookie":null,
		"domain_max_pages":5,"attrs":{"k": [1, {"x": null}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	put, host := r.Put.At(0)
	want := `{"allow_regex":[],"allowed_domains":["a.test","b.test"],"appid":["testapp"],"attrs":["{\"k\":[1,{\"x\":null}]}"],` +
		`"domain_max_pages":["5"],"expires":["1500000000"],"maxdepth":["3"],"spiderid":["wandering"],"useragent":["é"]}`
	if string(put.URL) != "http://a.test/x" || string(host) != "a.test" || string(put.Crawl) != "c1" ||
		put.Priority != 100 || string(put.Metadata) != want {
		t.Errorf("put is %s %s %d\n%s; want\n%s", put.URL, put.Crawl, put.Priority, put.Metadata, want)
	}
	id, expires, ok := docindex.CrawlOf(&put)
	if wantID := (docindex.CrawlID{Spider: "wandering", App: "testapp", Crawl: "c1"}); id != wantID ||
		expires != 1500000000 || !ok || r.ID != wantID {
		t.Errorf("it belongs to %+v, expires %d, %v", id, expires, ok)
	}
}

// A URL without a scheme is http, as in Scrapy Cluster.
func TestCrawlWithoutScheme(t *testing.T) {
	for text, want := range map[string]string{
		"a.test":             "http://a.test/",
		"a.test/x?u=http://": "http://a.test/x?u=http://",
		"a.test:8080/x":      "http://a.test:8080/x",
		"localhost:8080":     "http://localhost:8080/",
		" \n a.test/":        "http://a.test/",
		"1.2.3.4/x":          "http://1.2.3.4/x",
		"[::1]:80/x":         "http://[::1]/x",
		"m\u00fcller.test":   "http://xn--mller-kva.test/",
		"HTTPS://a.test":     "https://a.test/",
		"https:a.test":       "https://a.test/",
		"ftp://a.test/":      "",
		"mailto:a@b.test":    "",
		"javascript:void(0)": "",
		"/x":                 "",
	} {
		message, _ := json.Marshal(map[string]string{"url": text, "appid": "testapp", "crawlid": "c1"})
		r, err := crawlcontrol.Parse(message)
		got := ""
		if err == nil {
			put, _ := r.Put.At(0)
			got = string(put.URL)
		}
		if got != want {
			t.Errorf("%q is taken as %q, %v; want %q", text, got, err, want)
		}
	}
}

// A URL that applications and spiders ask for in crawls of one ID is pending for each of them, as
// in Scrapy Cluster; stopping one crawl leaves the others theirs.
func TestPendingForEach(t *testing.T) {
	m := crawlcontrol.New(crawlcontrol.NewController(memory.New(), &fakeSlots{}, zerolog.Nop()), 10)
	do := func(text string, parts ...string) {
		t.Helper()
		replies, _, err := m.Do(t.Context(), [][]byte{[]byte(text)})
		if err != nil || len(replies) != 1 {
			t.Fatalf("%s: %d replies, %v", text, len(replies), err)
		}
		for _, part := range parts {
			if got := string(replies[0].Body); !strings.Contains(got, part) {
				t.Errorf("%s: %s; want %s", text, got, part)
			}
		}
	}
	ask := func(app, spider, status string) {
		t.Helper()
		do(fmt.Sprintf(`{"url":"http://a.test/","appid":%q,"crawlid":"c","spiderid":%q}`, app, spider),
			`"status":"`+status+`"`)
	}
	pending := func(app, spider string, n int) {
		t.Helper()
		do(fmt.Sprintf(`{"action":"info","appid":%q,"uuid":"u","spiderid":%q,"crawlid":"c"}`, app, spider),
			fmt.Sprintf(`"total_pending":%d,`, n))
	}
	ask("one", "link", "new")
	ask("two", "link", "new")
	ask("one", "wandering", "new")
	ask("one", "link", "known")
	pending("one", "link", 1)
	pending("two", "link", 1)
	pending("one", "wandering", 1)
	do(`{"action":"stop","appid":"one","uuid":"u","spiderid":"link","crawlid":"c"}`, `"total_purged":1,`)
	pending("one", "link", 0)
	pending("two", "link", 1)
	pending("one", "wandering", 1)
	ask("one", "link", "dropped")
	ask("two", "link", "known")
}

func TestCrawlPresets(t *testing.T) {
	r, err := crawlcontrol.Parse(crawl("a"))
	if err != nil {
		t.Fatal(err)
	}
	put, _ := r.Put.At(0)
	if want := `{"appid":["testapp"],"spiderid":["link"]}`; put.Priority != 1 ||
		string(put.Metadata) != want {
		t.Errorf("put has priority %d, metadata %s; want 1, %s", put.Priority, put.Metadata, want)
	}
}

// What a stop has purged counts as told once its reply has got there, and not twice in what is
// answered together.
func TestStopTold(t *testing.T) {
	f := &fakeCrawls{purged: 5}
	m := crawlcontrol.New(f, 10)
	replies, _, err := m.Do(t.Context(), [][]byte{[]byte(stopText), []byte(stopText)})
	if err != nil || len(replies) != 2 {
		t.Fatalf("%d replies, %v", len(replies), err)
	}
	for i, want := range []string{`"total_purged":5,`, `"total_purged":0,`} {
		if got := string(replies[i].Body); !strings.Contains(got, want) {
			t.Errorf("reply %d is %s; want %s", i, got, want)
		}
	}
	if len(f.told) != 0 {
		t.Error("it counts as told before anybody has the reply")
	}
	for i := range replies {
		replies[i].Acknowledged(t.Context())
	}
	if !slices.Equal(f.told, f.stopped) {
		t.Errorf("told is %v; want %v", f.told, f.stopped)
	}
}
