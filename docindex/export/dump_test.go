package export_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/export"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
)

// write is the dump of a store.
func write(t *testing.T, s docindex.Store) string {
	t.Helper()
	var out bytes.Buffer
	if err := export.Write(t.Context(), s, &out); err != nil {
		t.Fatalf("Write: %v", err)
	}
	return out.String()
}

// read puts lines into a store, all of which it takes.
func read(t *testing.T, s docindex.Store, text string) export.Result {
	t.Helper()
	res, err := export.Read(t.Context(), s, strings.NewReader(text))
	if err != nil || res.Invalid > 0 {
		t.Fatalf("Read = %+v, %v; want that all is taken", res, err)
	}
	return res
}

// wantText compares dumps, and shows the first line that differs. Settings, which come first, may
// be in any order.
func wantText(t *testing.T, got, want string) {
	t.Helper()
	g, w := sorted(got), sorted(want)
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("line %d of %d is\n%.1000s\nwant, of %d,\n%.1000s", i+1, len(g), g[i], len(w), w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("the dump has %d lines; want %d", len(g), len(w))
	}
}

// sorted is the lines of a dump with its settings in order.
func sorted(text string) []string {
	all := strings.Split(text, "\n")
	n := 0
	for n < len(all) && strings.HasPrefix(all[n], `{"set":`) {
		n++
	}
	slices.Sort(all[:n])
	return all
}

// documents are those of all crawls, by crawl, key and URL.
func documents(t *testing.T, s docindex.Store) map[string]docindex.Document {
	t.Helper()
	all := map[string]docindex.Document{}
	for _, crawl := range indextest.CrawlsOf(t, s) {
		err := s.List(t.Context(), docindex.Scope{Crawl: []byte(crawl)}, func(d *docindex.Document) bool {
			all[fmt.Sprintf("%q %q %q", d.Crawl, d.Key, d.URL)] = *d
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// texts have what JSON has to escape.
var texts = []string{"a", "B c", "\"quoted\\\"", "<&>", "\u00fc\u4e16\U0001F600", "tab\tnull\x00", "\u2028",
	"DEFAULT", strings.Repeat("k", 300)}

// randomPut is any URL that a store may be given.
func randomPut(rnd *rand.Rand, i int) docindex.Put {
	text := func() string { return texts[rnd.IntN(len(texts))] }
	now := time.Now().Unix()
	p := docindex.Put{
		URL:     fmt.Appendf(nil, "http://h%d.test/%d", rnd.IntN(20), i),
		Due:     []int64{0, docindex.Now, docindex.Never, now - 5, now + 1000, 1 << 40, 1<<63 - 2}[rnd.IntN(7)],
		Created: []int64{0, 1, now - 100, now + 100, 1<<32 - 1}[rnd.IntN(5)],
	}
	if rnd.IntN(4) == 0 {
		p.URL, p.Key = fmt.Appendf(nil, "%s %d", text(), i), []byte(text())
	}
	if rnd.IntN(3) == 0 {
		p.Crawl = []byte(text())
	}
	if rnd.IntN(3) == 0 {
		p.DocID = fmt.Appendf(nil, "%d", 3*i)
	}
	if rnd.IntN(5) == 0 {
		p.DocID = fmt.Appendf(nil, "<doc-%d\">", i)
	}
	if m := map[string][]string{}; rnd.IntN(2) == 0 {
		for range rnd.IntN(4) {
			m[text()] = [][]string{{}, {text()}, {text(), "", text()}}[rnd.IntN(3)]
		}
		if rnd.IntN(3) == 0 {
			m["appid"], m["spiderid"] = []string{text(), "more"}, [][]string{nil, {}, {text()}}[rnd.IntN(3)]
		}
		if rnd.IntN(2) == 0 {
			m["priority"] = []string{fmt.Sprint(rnd.IntN(5) - 2)}
		}
		if rnd.IntN(3) == 0 {
			m["unique"], m["depth"] = []string{text()}, []string{fmt.Sprint(rnd.IntN(5))}
		}
		p.Metadata, p.Priority = docindex.EncodeMetadata(m), docindex.PriorityOf(m)
	}
	if rnd.IntN(3) == 0 {
		p.Unique, p.Depth = fmt.Append(nil, text(), i), uint16(rnd.Uint32())
	}
	if rnd.IntN(3) == 0 && p.Due != docindex.Never {
		p.Payload = fmt.Append(nil, text(), "\xff")
	}
	if rnd.IntN(3) == 0 {
		p.Priority = int32(rnd.Uint32())
	}
	return p
}

// fill puts into a store whatever it may hold, in all states.
func fill(t *testing.T, s docindex.Store, rnd *rand.Rand) {
	var p docindex.Puts
	for i := range 300 {
		put := randomPut(rnd, i)
		if err := p.AddExact(put, docindex.HostOf(put.URL)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		queue := docindex.Scope{Key: fmt.Appendf(nil, "h%d.test", rnd.IntN(25)), Crawl: []byte(texts[rnd.IntN(7)])}
		one := docindex.Setting{Kind: docindex.SettingKind(i % 3), Scope: queue,
			Value: uint64(time.Now().Unix()) + uint64(100_000+rnd.IntN(1000))}
		if i < 6 && one.Kind != docindex.SetLimit {
			one.Host, one.Crawl = true, nil
		}
		if err := s.Set(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []docindex.Setting{{Kind: docindex.SetDelay, Value: 3}, {Kind: docindex.SetActive}} {
		var b docindex.Batch
		var o docindex.Outcomes
		if err := s.Serve(t.Context(), docindex.Request{AnyCrawl: true, MaxQueues: 3, Lease: time.Hour},
			func(*docindex.Served) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := s.Candidates(t.Context(), 20, nil, &b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() / 2 {
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, Kind: docindex.Kind(i % docindex.Kinds)})
		}
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		if err := s.Set(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoundTrip carries a store with everything to an empty one: both hold the same, and so do
// their dumps.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		from, to := memory.New(), memory.New()
		fill(t, from, rand.New(rand.NewPCG(seed, 1)))
		if n := indextest.Count(t, from, nil); n.InTransit == 0 || n.Completed == 0 || n.Scheduled == 0 {
			t.Fatalf("seed %d: the store has %+v; want URLs in each state", seed, n)
		}
		text := write(t, from)
		res := read(t, to, text)
		wantText(t, write(t, to), text)
		want, got := documents(t, from), documents(t, to)
		if len(got) != len(want) || res.New != len(want) || indextest.Active(t, to) {
			t.Errorf("seed %d: %d URLs, %+v, active %v; want %d, not active", seed, len(got), res,
				indextest.Active(t, to), len(want))
		}
		for name, w := range want {
			if w.State == docindex.Completed {
				w.Metadata, w.Priority = docindex.OwnerOf(w.Metadata), 0
			} else {
				w.State = docindex.Scheduled
			}
			if g := got[name]; !reflect.DeepEqual(plain(g), plain(w)) {
				t.Errorf("seed %d: %s is\n%+v; want\n%+v", seed, name, g, w)
			}
		}
	}
}

// TestReadCountsDropped: a dump has URLs of a crawl that was stopped here, and one of them has a DOC_ID
// that is taken. The result counts them.
func TestReadCountsDropped(t *testing.T) {
	s := memory.New()
	other := docindex.Puts{}
	if err := other.Add(docindex.Put{URL: []byte("http://a.test/"), DocID: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), &other); err != nil {
		t.Fatal(err)
	}
	id := docindex.CrawlID{Spider: "link", App: "app", Crawl: "c"}
	if err := s.StopCrawl(t.Context(), id, docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	const of = `"metadata":{"appid":{"values":["app"]},"spiderid":{"values":["link"]}},"crawlID":"c"}}`
	text := ""
	for i := 1; i <= 3; i++ {
		text += fmt.Sprintf(`{"known":{"info":{"url":"http://b.test/%d",%s,"ID":"%d"}`+"\n", i, of, i)
	}
	if res := read(t, s, text); res.Dropped != 3 || res.New+res.Known+res.Renumbered != 0 {
		t.Errorf("Read = %+v; want that three are dropped", res)
	}
}

// plain is a document in a form where nothing and empty are the same.
func plain(d docindex.Document) string {
	return fmt.Sprintf("%q %q %d %q %q %q %d %v %v", d.URL, d.DocID, d.Priority, d.Crawl, d.Key, d.Metadata,
		d.Due, d.State, d.Created)
}

// TestOwners carries a URL of several owners, completed or not: each knows it afterwards, and
// nobody else.
func TestOwners(t *testing.T) {
	from, to := memory.New(), memory.New()
	put := func(s docindex.Store, app string, due int64) docindex.PutResult {
		t.Helper()
		var p docindex.Puts
		one := docindex.Put{URL: []byte("http://a.example/"), Due: due}
		if app != "" {
			one.Metadata = docindex.EncodeMetadata(map[string][]string{"appid": {app}, "other": {"x"}})
		}
		if err := p.Add(one); err != nil {
			t.Fatal(err)
		}
		res, err := s.Put(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for app, due := range map[string]int64{"": docindex.Now, "a": docindex.Now, "b": docindex.Never,
		"c": docindex.Never} {
		if res := put(from, app, due); res.New != 1 {
			t.Fatalf("put for %q: %+v", app, res)
		}
	}
	text := write(t, from)
	if res := read(t, to, text); res.New != 4 {
		t.Errorf("%+v of\n%s; want 4 new", res, text)
	}
	wantText(t, write(t, to), text)
	for _, app := range []string{"", "a", "b", "c"} {
		if res := put(to, app, docindex.Now); res.Known != 1 {
			t.Errorf("put for %q: %+v; want it known", app, res)
		}
	}
	if res := put(to, "d", docindex.Now); res.New != 1 {
		t.Errorf("put for d: %+v; want it new", res)
	}
}

// TestAgain reads a dump into the store that it comes from, and twice into another: nothing
// changes.
func TestAgain(t *testing.T) {
	from := memory.New()
	fill(t, from, rand.New(rand.NewPCG(1, 1)))
	text := write(t, from)
	if res := read(t, from, text); res.New != 0 || res.Known != len(documents(t, from)) {
		t.Errorf("read into its own store: %+v; want that all is known", res)
	}
	wantText(t, write(t, from), text)
}

// TestExamples holds FORMAT.md to what is written and read.
func TestExamples(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Fatalf("FORMAT.md has %d blocks; want a URL, settings, the end", len(blocks))
	}
	want := string(blocks[1][1]) + string(blocks[0][1]) + string(blocks[2][1])
	s := memory.New()
	read(t, s, want)
	wantText(t, write(t, s), want)
}

// TestReference reads lines as the clients of the URL Frontier write them.
func TestReference(t *testing.T) {
	s := memory.New()
	began := time.Now().Unix()
	res := read(t, s, "\ufeff"+`{"known":{"info":{"url":"http://a.test/1","key":"a.test","crawlID":"DEFAULT"},"refetchableFromDate":"1700000000"},"creationDate":"1600000000"}
{"known":{"info":{"url":"http://a.test/2","key":"k","metadata":{"m":{"values":["v"]},"priority":{"values":["4"]}},"crawlID":"c"},"refetchable_from_date":1700000001},"creation_date":1600000001}
{ "known" : {"info":{"url":"HTTP://A.test:80/3#x"}},"ID":"http://a.test/3 no doc_id"}

{"discovered":{"info":{"url":"http://b.test/4","crawlID":""}},"ID":"four"}`+"\r\n")
	if res.New != 4 || res.Settings != 0 {
		t.Errorf("Read = %+v; want 4 new", res)
	}
	got := documents(t, s)
	for name, want := range map[string]docindex.Document{
		`"" "a.test" "http://a.test/1"`: {Put: docindex.Put{Due: 1_700_000_000},
			Created: time.Unix(1_600_000_000, 0)},
		`"c" "k" "http://a.test/2"`: {Put: docindex.Put{Due: 1_700_000_001, Priority: 4,
			Metadata: []byte(`{"m":["v"],"priority":["4"]}`)}, Created: time.Unix(1_600_000_001, 0)},
		`"" "a.test" "HTTP://A.test:80/3#x"`: {Put: docindex.Put{Due: docindex.Never}, State: docindex.Completed},
		`"" "b.test" "http://b.test/4"`:      {Put: docindex.Put{DocID: []byte("four"), Due: -1}},
	} {
		d, ok := got[name]
		if want.Due == -1 && d.Due >= began {
			want.Due = d.Due
		}
		if !ok || d.Due != want.Due || d.State != want.State || d.Priority != want.Priority ||
			string(d.Metadata) != string(want.Metadata) ||
			len(want.DocID) > 0 && string(d.DocID) != string(want.DocID) {
			t.Errorf("%s is %+v; want %+v", name, d, want)
		}
		if !want.Created.IsZero() && !d.Created.Equal(want.Created) || want.Created.IsZero() &&
			d.Created.Unix() < began {
			t.Errorf("%s was created %v; want %v", name, d.Created, want.Created)
		}
	}
}

// TestRenumber reads URLs whose DOC_IDs others have by now.
func TestRenumber(t *testing.T) {
	from, to := memory.New(), memory.New()
	read(t, from, `{"known":{"info":{"url":"http://a.test/1"},"refetchableFromDate":"1"}}
{"known":{"info":{"url":"http://a.test/2"}}}
{"known":{"info":{"url":"http://a.test/3"}},"ID":"mine"}`)
	read(t, to, `{"discovered":{"info":{"url":"http://seed.test/"}}}
{"discovered":{"info":{"url":"http://a.test/2"}}}
{"discovered":{"info":{"url":"http://seed.test/mine"}},"ID":"mine"}`)
	for _, want := range []export.Result{
		{New: 1, Known: 1, Renumbered: 1, Invalid: 1,
			Errors: []string{`line 3: doc_id "mine": taken by http://seed.test/mine`}},
		{Known: 2, Invalid: 1, Errors: []string{`line 3: doc_id "mine": taken by http://seed.test/mine`}},
	} {
		got, err := export.Read(t.Context(), to, strings.NewReader(write(t, from)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Read = %+v, %v; want %+v", got, err, want)
		}
	}
	if d := documents(t, to)[`"" "a.test" "http://a.test/2"`]; d.State != docindex.Scheduled {
		t.Errorf("what was known is %v; want that it stayed scheduled", d.State)
	}
}
