package scoped_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/scoped"
)

// site is a store, and what it is told of one page after the other. All that is so long ago is so at one
// moment: a second may end between two calls.
type site struct {
	*scoped.Store
	t   *testing.T
	now time.Time
}

// ended reports that the one URL that is due ended: so long ago, with the rest of o.
func (s site) ended(url string, ago time.Duration, o docindex.Outcome) {
	s.t.Helper()
	if urls, _ := take(s.t, s); !slices.Equal(urls, []string{url}) {
		s.t.Fatalf("%q are due; want %s", urls, url)
	}
	o.DocID, o.URL, o.At = idOf(url), []byte(url), s.now.Add(-ago)
	var all docindex.Outcomes
	all.Add(o)
	if err := s.Outcomes(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
}

func idOf(url string) []byte { return fmt.Append(nil, "id-", url) }

// changed puts a URL that says that it changed so long ago.
func (s site) changed(url string, ago time.Duration) {
	s.t.Helper()
	put(s.t, s, docindex.Put{URL: []byte(url), DocID: idOf(url), LastMod: s.now.Add(-ago).Unix()})
}

// A known URL goes out now if its lastmod is after its last fetch.
func TestLastMod(t *testing.T) {
	const hour = time.Hour
	later := time.Now().Unix() + 1000
	cases := []struct {
		name         string
		end, changed time.Duration // ago
		outcome      docindex.Outcome
		want         bool
	}{
		{name: "changed since", end: 2 * hour, changed: hour, want: true},
		{name: "changed before", end: 2 * hour, changed: 3 * hour},
		{name: "changed in that second", end: 2 * hour, changed: 2 * hour},
		{name: "comes back later, changed since", end: 2 * hour, changed: hour,
			outcome: docindex.Outcome{Again: later}, want: true},
		{name: "comes back later, changed before", end: 2 * hour, changed: 3 * hour,
			outcome: docindex.Outcome{Again: later}},
		{name: "no answer", end: 2 * hour, changed: hour,
			outcome: docindex.Outcome{Kind: docindex.Timeout}, want: true},
		{name: "in an hour", end: 2 * hour, changed: -hour},
		{name: "forbidden by robots.txt", end: 2 * hour, changed: hour,
			outcome: docindex.Outcome{Kind: docindex.Robots}},
	}
	onStores(t, func(t *testing.T, store *scoped.Store) {
		s := site{store, t, time.Now()}
		for i, c := range cases {
			url := fmt.Sprintf("http://h%d.test/", i)
			s.changed(url, 0) // it is new
			s.ended(url, c.end, c.outcome)
			s.changed(url, c.changed)
			if urls, _ := take(t, s); (len(urls) == 1) != c.want {
				t.Errorf("%s: %q are due; want the page: %v", c.name, urls, c.want)
			}
			s.changed(url, 0) // nobody gets it twice
			if urls, _ := take(t, s); c.want && len(urls) > 0 {
				t.Errorf("%s: %q are due again", c.name, urls)
			}
			take(t, s)
		}
	})
}

// A host whose lastmods prove wrong is believed only of pages that were fetched long ago: an hour,
// and twice as long each time. A right one halves that.
func TestWrongLastMod(t *testing.T) {
	const url, hour = "http://a.test/", time.Hour
	onStores(t, func(t *testing.T, store *scoped.Store) {
		s := site{store, t, time.Now()}
		s.changed(url, 0)
		s.ended(url, hour/2, docindex.Outcome{Status: 200})
		for _, c := range []struct {
			outcome  docindex.Outcome
			patience time.Duration // after it
		}{
			{docindex.Outcome{Status: 200, Change: docindex.ChangeUnknown}, 0},
			{docindex.Outcome{Status: 200, Change: docindex.Unchanged}, hour},
			{docindex.Outcome{Status: 304}, 2 * hour},
			{docindex.Outcome{Kind: docindex.DNS, Change: docindex.Unchanged}, 2 * hour},
			{docindex.Outcome{Status: 200, Change: docindex.Unchanged}, 4 * hour},
			{docindex.Outcome{Status: 200, Change: docindex.Modified}, 2 * hour},
			{docindex.Outcome{Status: 200, Change: docindex.Modified}, hour},
			{docindex.Outcome{Status: 200, Change: docindex.Modified}, 0},
		} {
			s.changed(url, 0) // believed: the last fetch is long ago
			s.ended(url, c.patience-time.Minute, c.outcome)
			s.changed(url, 0)
			if urls, _ := take(t, s); len(urls) > 0 && c.patience > 0 {
				t.Errorf("after %+v it is believed within %v", c.outcome, c.patience)
			}
			put(t, s, docindex.Put{URL: []byte(url), Due: docindex.Now, Sooner: true})
			s.ended(url, c.patience+time.Minute, docindex.Outcome{Status: 200, Change: docindex.Unchanged})
		}
		s.changed("http://b.test/", 0)
		s.ended("http://b.test/", hour/2, docindex.Outcome{Status: 200})
		s.changed("http://b.test/", 0)
		if urls, _ := take(t, s); len(urls) != 1 {
			t.Error("another host is not believed")
		}
	})
}
