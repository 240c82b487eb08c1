package docindex_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
)

func TestBatch(t *testing.T) {
	var b docindex.Batch
	for round := range 3 {
		id, url := []byte("id"), []byte("http://a.example/")
		b.Add(id, url, 5)
		b.AddInvalid([]byte("bad"), nil)
		b.Skip()
		id[0], url[0] = 'x', 'x' // they were copied
		b.Add([]byte("2"), []byte("http://b.example/"), -5)
		if b.Len() != 2 || b.EndedLen() != 1 || b.Skipped() != 1 {
			t.Errorf("round %d: %d good, %d invalid, %d skipped; want 2, 1, 1", round, b.Len(),
				b.EndedLen(), b.Skipped())
		}
		got := fmt.Sprint(show(b.At(0)), show(b.At(1)), show(b.EndedAt(0)))
		want := `"id" "http://a.example/" 5, "2" "http://b.example/" -5, "bad" "" 0, `
		if got != want {
			t.Errorf("round %d: %s; want %s", round, got, want)
		}
		b.Reset()
		if b.Len()+b.EndedLen()+b.Skipped() != 0 {
			t.Errorf("round %d: not empty after Reset", round)
		}
	}
}

// TestBatchAlias makes sure that who appends to what At returned does not write into the next.
func TestBatchAlias(t *testing.T) {
	var b docindex.Batch
	b.Add([]byte("1"), []byte("http://a.example/"), 0)
	b.Add([]byte("2"), []byte("http://b.example/"), 0)
	c := b.At(0)
	_ = append(c.DocID, "overwritten"...)
	_ = append(c.URL, "overwritten"...)
	b.AddFor([]byte("3"), []byte("http://c.example/"), 0, "link", "")
	b.AddFor([]byte("4"), []byte("http://d.example/"), 0, "", "one")
	b.AddFor([]byte("5"), []byte("http://e.example/"), 0, "other", "two")
	for i := range 3 {
		c := b.At(2 + i)
		_, _ = append(c.Spider, "overwritten"...), append(c.Crawl, "overwritten"...)
	}
	if got := fmt.Sprintf("%s %s", b.At(0).URL, b.At(1).DocID); got != "http://a.example/ 2" {
		t.Errorf("batch has %s after an append to a part of it", got)
	}
	if got := fmt.Sprintf("%s %s, %s %s, %s %s", b.At(2).Spider, b.At(2).Crawl, b.At(3).Spider,
		b.At(3).Crawl, b.At(4).Spider, b.At(4).Crawl); got != "link ,  one, other two" {
		t.Errorf("batch has spiderids and crawls %q", got)
	}
}

func TestBatchAllocates(t *testing.T) {
	var b docindex.Batch
	id, url := []byte("12345"), bytes.Repeat([]byte("x"), 70)
	fill := func() {
		b.Reset()
		for range 1000 {
			b.Add(id, url, 1)
		}
	}
	fill()
	if n := testing.AllocsPerRun(10, fill); n != 0 {
		t.Errorf("%v allocations for a thousand candidates; want none", n)
	}
}

func TestOutcomes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	want := docindex.Outcome{
		DocID: []byte("1"), URL: []byte("http://a.example/"), Kind: docindex.Timeout,
		Status: 503, Attempts: 3, At: at.UTC(), NoStatus: true, Change: docindex.Unchanged,
		Pause: time.Second, Gap: 2 * time.Second, Again: 7, Metadata: []byte(`{"k":["v"]}`),
		Location: []byte("http://b.example/"),
	}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{})
	if o.HasLocation() {
		t.Error("an empty outcome has a location")
	}
	in := want
	in.At = at
	o.Add(in)
	o.Add(docindex.Outcome{URL: []byte("behind it")})
	if got := o.At(1); fmt.Sprintf("%v", got) != fmt.Sprintf("%v", want) || o.Len() != 3 {
		t.Errorf("outcome is %v of %d; want %v of 3", got, o.Len(), want)
	}
	if got := o.At(0); !got.At.IsZero() || len(got.DocID) != 0 {
		t.Errorf("an empty outcome is %v; want it empty, with the zero time", got)
	}
	var all docindex.Outcomes
	all.Add(docindex.Outcome{DocID: []byte("0")})
	all.Append(&o)
	all.Append(&o)
	for i, want := range []docindex.Outcome{o.At(0), o.At(1), o.At(2), o.At(0), o.At(1), o.At(2)} {
		if got := all.At(1 + i); fmt.Sprintf("%v", got) != fmt.Sprintf("%v", want) {
			t.Errorf("outcome %d of those that were appended is %v; want %v", i, got, want)
		}
	}
	if !o.HasLocation() || !all.HasLocation() {
		t.Error("the location of an outcome is not known, or not after Append")
	}
	if o.Reset(); o.Len() != 0 || o.HasLocation() {
		t.Errorf("%d outcomes after Reset, or a location", o.Len())
	}
}

func TestKind(t *testing.T) {
	var words []string
	for k := range docindex.Kind(docindex.Kinds) {
		words = append(words, k.String())
		if got, ok := docindex.ParseKind([]byte(k.String())); got != k || !ok {
			t.Errorf("ParseKind(%s) = %v, %v", k, got, ok)
		}
	}
	want := "done timeout robots dns invalid stopped expired out_of_scope"
	if got := strings.Join(words, " "); got != want {
		t.Errorf("words are %s; want %s", got, want)
	}
	if got := docindex.Kind(docindex.Kinds).String(); got != "unknown" {
		t.Errorf("a kind that is none is %q", got)
	}
	for _, bad := range []string{"", "Done", "unknown", "done "} {
		if k, ok := docindex.ParseKind([]byte(bad)); ok {
			t.Errorf("ParseKind(%q) = %v; want nothing", bad, k)
		}
	}
}

func TestState(t *testing.T) {
	for state, want := range map[docindex.State]string{
		docindex.Scheduled: "scheduled", docindex.InTransit: "in transit", docindex.Completed: "completed",
		3: "unknown",
	} {
		if got := state.String(); got != want {
			t.Errorf("state %d is %q; want %q", state, got, want)
		}
	}
}

func TestPuts(t *testing.T) {
	for _, c := range []struct {
		name string
		put  docindex.Put
		want string // what is stored
		host string
		err  string
	}{
		{name: "plain", put: docindex.Put{URL: []byte("http://a.example/x")},
			want: "http://a.example/x || | | |", host: "a.example"},
		{name: "normalised", put: docindex.Put{URL: []byte("HTTPS://Bücher.example:443/a/../ü#x")},
			want: "https://xn--bcher-kva.example/%C3%BC || | | |", host: "xn--bcher-kva.example"},
		{name: "IPv6", put: docindex.Put{URL: []byte("http://[::1]:8080/")},
			want: "http://[::1]:8080/ || | | |", host: "::1"},
		{name: "host like the scheme", put: docindex.Put{URL: []byte("http://http/")},
			want: "http://http/ || | | |", host: "http"},
		{name: "user", put: docindex.Put{URL: []byte("http://u:p@a.example/")},
			want: "http://u:p@a.example/ || | | |", host: "a.example"},
		{name: "all", put: docindex.Put{URL: []byte("http://a.example/"), DocID: []byte("i"),
			Crawl: []byte("c"), Key: []byte("k"),
			Metadata: []byte(`{ "b": [ "1" ], "a": [] }`)},
			want: `http://a.example/ |i| c| k| {"a":[],"b":["1"]}|`, host: "a.example"},
		{name: "the same as nothing", put: docindex.Put{URL: []byte("http://a.example/"),
			Crawl: []byte("DEFAULT"), Key: []byte("a.example"),
			Metadata: []byte(`{}`)}, want: "http://a.example/ || | | |", host: "a.example"},
		{name: "no URL", err: "url"},
		{name: "relative", put: docindex.Put{URL: []byte("/x")}, err: "url"},
		{name: "other scheme", put: docindex.Put{URL: []byte("mailto:a@b.example")}, err: "url"},
		{name: "too long for a line",
			put: docindex.Put{URL: []byte("http://a.example/" + strings.Repeat("x", 8100))}, err: "longer than"},
		{name: "bad doc_id", put: docindex.Put{URL: []byte("http://a.example/"), DocID: []byte("a\nb")}, err: "doc_id"},
		{name: "long doc_id", put: docindex.Put{URL: []byte("http://a.example/"),
			DocID: bytes.Repeat([]byte("x"), 65)}, err: "doc_id"},
		{name: "metadata of another kind", put: docindex.Put{URL: []byte("http://a.example/"),
			Metadata: []byte(`["a"]`)}, err: "metadata"},
		{name: "too much", put: docindex.Put{URL: []byte("http://a.example/"), Crawl: bytes.Repeat([]byte("c"), 5000),
			Key: bytes.Repeat([]byte("k"), 5000)}, err: "10000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p docindex.Puts
			p.Reset()
			err := p.Add(c.put)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || p.Len() != 0 {
					t.Errorf("Add: %v, %d added; want an error with %q", err, p.Len(), c.err)
				}
				return
			}
			if err != nil || p.Len() != 1 {
				t.Fatalf("Add: %v, %d added", err, p.Len())
			}
			put, host := p.At(0)
			got := fmt.Sprintf("%s |%s| %s| %s| %s|", put.URL, put.DocID, put.Crawl, put.Key, put.Metadata)
			if got != c.want || string(host) != c.host {
				t.Errorf("stored is %s on %s; want %s on %s", got, host, c.want, c.host)
			}
		})
	}
}

func show(c docindex.Candidate) string {
	return fmt.Sprintf("%q %q %d, ", c.DocID, c.URL, c.Priority)
}
