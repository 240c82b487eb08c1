package indextest

import (
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
)

var lastCases = []testCase{
	{"last: each outcome", lastOfEach},
	{"last: it stays until the next one", lastStays},
	{"last: a return and a lease's end are none", lastReturned},
	{"last: a client's report", lastReported},
	{"last: an ignored outcome", lastIgnored},
}

// wantLast compares what Document, Find and List tell of the last outcome of a URL in DEFAULT.
func wantLast(t *testing.T, s docindex.Store, url string, want docindex.LastOutcome) {
	t.Helper()
	queue := docindex.Scope{Key: docindex.HostOf([]byte(url))}
	found, err := s.Find(t.Context(), queue, []byte(url))
	if err != nil {
		t.Fatalf("Find(%s): %v", url, err)
	}
	read, err := s.Document(t.Context(), found.DocID)
	if err != nil {
		t.Fatalf("Document(%s): %v", found.DocID, err)
	}
	listed := docindex.Document{}
	if err := s.List(t.Context(), queue, func(d *docindex.Document) bool {
		if string(d.URL) == url {
			listed = d.Clone()
		}
		return true
	}); err != nil {
		t.Fatalf("List: %v", err)
	}
	for by, d := range map[string]docindex.Document{"Find": found, "Document": read, "List": listed} {
		if d.Last != want {
			t.Errorf("%s of %s: the last outcome is %+v; want %+v", by, url, d.Last, want)
		}
	}
}

// wholeSecond returns the current time as stores keep it.
func wholeSecond() time.Time { return time.Unix(time.Now().Unix(), 0).UTC() }

func lastOfEach(t *testing.T, s docindex.Store) {
	given := time.Unix(1_900_000_000, 0).UTC()
	outs := []docindex.Outcome{
		{Kind: docindex.Done, Status: 200, At: given},
		{Kind: docindex.Done, Status: 404},
		{Kind: docindex.Done, Status: 999},
		{Kind: docindex.Done, Status: 0},
		{Kind: docindex.Done, NoStatus: true},
		{Kind: docindex.Timeout, NoStatus: true},
		{Kind: docindex.Robots, At: given.Add(time.Hour)},
		{Kind: docindex.DNS},
		{Kind: docindex.Invalid},
	}
	var puts []docindex.Put
	for i := range outs {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://a.test/%d", i),
			DocID: fmt.Appendf(nil, "x%d", i)})
	}
	put(t, s, puts...)
	wantLast(t, s, "http://a.test/0", docindex.LastOutcome{})
	take(t, s, len(outs))
	wantLast(t, s, "http://a.test/0", docindex.LastOutcome{})
	var o docindex.Outcomes
	for i, out := range outs {
		out.DocID, out.URL = puts[i].DocID, puts[i].URL
		o.Add(out)
	}
	report(t, s, &o)
	for i, out := range outs {
		want := docindex.LastOutcome{Known: true, Kind: out.Kind, Status: out.Status, NoStatus: out.NoStatus,
			At: out.At}
		if out.At.IsZero() {
			want.At = wholeSecond()
		}
		wantLast(t, s, string(puts[i].URL), want)
	}
}

func lastStays(t *testing.T, s docindex.Store) {
	const url = "http://a.test/"
	put(t, s, urls(url)...)
	b := take(t, s, 1)
	again(t, s, b, time.Minute, 0)
	want := docindex.LastOutcome{Known: true, Status: 200, At: wholeSecond()}
	wantLast(t, s, url, want)
	time.Sleep(time.Minute)
	wantLast(t, s, url, want)
	b = take(t, s, 1)
	wantTexts(t, b, url)
	wantLast(t, s, url, want)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.Done, Status: 503})
	report(t, s, &o)
	want = docindex.LastOutcome{Known: true, Status: 503, At: wholeSecond()}
	wantLast(t, s, url, want)
	// An update that is not of a document in transit tells of no end.
	add(t, s, docindex.Put{URL: []byte(url), Update: true, Due: docindex.Now})
	wantLast(t, s, url, want)
}

func lastReturned(t *testing.T, s docindex.Store) {
	const url = "http://a.test/"
	put(t, s, urls(url)...)
	again(t, s, take(t, s, 1), time.Minute, 0)
	want := docindex.LastOutcome{Known: true, Status: 200, At: wholeSecond()}
	time.Sleep(time.Minute)
	b := take(t, s, 1)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL})
	if err := s.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	wantLast(t, s, url, want)
	wantTexts(t, lease(t, s, 1, time.Minute), url)
	time.Sleep(2 * time.Minute)
	wantTexts(t, take(t, s, 1), url)
	wantLast(t, s, url, want)
}

func lastReported(t *testing.T, s docindex.Store) {
	const first, second, third = "http://a.test/1", "http://a.test/2", "http://a.test/3"
	add(t, s, urls(first, second, third)...)
	any := docindex.Request{AnyCrawl: true, PerQueue: 2, Lease: time.Hour}
	wantURLs(t, call(t, s, any), first, second)
	time.Sleep(time.Minute)
	// Both reports end a transit; the third update completes a document that nobody has.
	add(t, s, docindex.Put{URL: []byte(first), Update: true, Due: time.Now().Unix() + 3600},
		docindex.Put{URL: []byte(second), Update: true, Due: docindex.Never},
		docindex.Put{URL: []byte(third), Update: true, Due: docindex.Never})
	reported := docindex.LastOutcome{At: wholeSecond()}
	time.Sleep(time.Minute)
	// A completed document that is completed once more keeps its time.
	add(t, s, docindex.Put{URL: []byte(second), Update: true, Due: docindex.Never})
	for _, url := range []string{first, second, third} {
		wantLast(t, s, url, reported)
	}
	// A URL that is new and completed has not ended.
	add(t, s, docindex.Put{URL: []byte("http://a.test/4"), Due: docindex.Never})
	wantLast(t, s, "http://a.test/4", docindex.LastOutcome{})
}

func lastIgnored(t *testing.T, s docindex.Store) {
	const url = "http://a.test/"
	put(t, s, urls(url)...)
	b := take(t, s, 1)
	end(t, s, b)
	want := docindex.LastOutcome{Known: true, Status: 200, At: wholeSecond()}
	time.Sleep(time.Minute)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.Done, Status: 500})
	report(t, s, &o)
	wantLast(t, s, url, want)
}

// lastOfStopped stops a crawl. One of its documents is scheduled, one is in a slot, one has ended.
func lastOfStopped(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/ended", 3), crawlPut("c", "http://a.test/out", 2),
		crawlPut("c", "http://a.test/waits", 1))
	b := take(t, s, 1)
	wantTexts(t, b, "http://a.test/ended")
	end(t, s, b)
	at := map[string]time.Time{"http://a.test/ended": wholeSecond()}
	wantTexts(t, take(t, s, 1), "http://a.test/out")
	time.Sleep(time.Minute)
	stopCrawl(t, s, "c", func(o *docindex.Outcomes) { report(t, s, o) })
	at["http://a.test/out"], at["http://a.test/waits"] = wholeSecond(), wholeSecond()
	queue := docindex.Scope{Crawl: []byte("c"), Key: []byte("a.test")}
	for url, at := range at {
		d, err := s.Find(t.Context(), queue, []byte(url))
		if err != nil {
			t.Fatal(err)
		}
		want := docindex.LastOutcome{Known: true, Kind: docindex.Stopped, At: at}
		if url == "http://a.test/ended" {
			want.Kind, want.Status = docindex.Done, 200
		}
		d.Last.NoStatus = false // it may be one or the other: nobody asked
		if d.State != docindex.Completed || d.Last != want {
			t.Errorf("%s is %v, ended with %+v; want %+v", url, d.State, d.Last, want)
		}
	}
}
