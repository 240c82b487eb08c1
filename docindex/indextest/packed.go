package indextest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
)

// packedCases test what a document may have beside its metadata: unique, payload and depth; and
// puts that bring known documents forward.
var packedCases = []testCase{
	{"unique, payload and depth are kept", packedKept},
	{"known by unique within a crawl", uniqueApart},
	{"many with one URL", uniqueMany},
	{"the first depth counts, and a payload that is put", packedRenewed},
	{"completed: unique and depth stay", packedCompleted},
	{"ended out of scope: the payload stays", packedOutside},
	{"brought forward", broughtForward},
	{"forgotten, and put again, with unique", uniqueForgotten},
}

func packedPut(url, unique string, depth uint16, payload string) docindex.Put {
	return docindex.Put{URL: []byte(url), Unique: []byte(unique), Depth: depth, Payload: []byte(payload)}
}

// wantPacked compares what a store has of a document that was put.
func wantPacked(t *testing.T, when string, got, want *docindex.Put) {
	t.Helper()
	if string(got.URL) != string(want.URL) || string(got.Unique) != string(want.Unique) || got.Depth != want.Depth ||
		!bytes.Equal(got.Payload, want.Payload) || string(got.Metadata) != string(want.Metadata) {
		t.Errorf("%s: %s, unique %.20q, depth %d, payload of %d bytes, metadata %s; want %s, %.20q, %d, %d, %s", when,
			got.URL, got.Unique, got.Depth, len(got.Payload), got.Metadata, want.URL, want.Unique, want.Depth,
			len(want.Payload), want.Metadata)
	}
}

// found returns the document of a URL in the queue of its host.
func found(t *testing.T, s docindex.Store, url string) docindex.Document {
	t.Helper()
	host := docindex.HostOf([]byte(url))
	d, err := s.Find(t.Context(), docindex.Scope{Key: host}, []byte(url))
	if err != nil {
		t.Fatalf("Find(%s): %v", url, err)
	}
	return d
}

func packedKept(t *testing.T, s docindex.Store) {
	raw := make([]byte, docindex.MaxPayload)
	for i := range raw {
		raw[i] = byte(i)
	}
	long := strings.Repeat("\"spiderid\"\x00é", docindex.MaxUnique/13)
	var puts []docindex.Put
	for i, p := range []docindex.Put{
		packedPut("", "", 0, ""),
		packedPut("", "", 7, ""),
		packedPut("", "u", 0, ""),
		packedPut("", "", 0, "body"),
		packedPut("", long, 65535, string(raw)),
		{Metadata: []byte(`{"spiderid":["s"],"x":["y"]}`), Unique: []byte(long), Payload: []byte(`"appid"`), Depth: 1},
		{Metadata: []byte(`{"appid":["a"],"spiderid":["s"]}`), Depth: 3, DocID: []byte("mine")},
		{Metadata: bytes.Repeat([]byte(" "), 0), Payload: []byte{0}, Key: []byte("k")},
	} {
		p.URL = fmt.Appendf(nil, "http://h%d.test/", i)
		puts = append(puts, p)
	}
	for i, v := range add(t, s, puts...) {
		if v != docindex.New {
			t.Fatalf("put %d is answered %v", i, v)
		}
	}
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 100, nil, &b); err != nil || b.Len() != len(puts) {
		t.Fatalf("%d candidates, %v; want %d", b.Len(), err, len(puts))
	}
	for i := range b.Len() {
		c := b.At(i)
		d, err := s.Document(t.Context(), c.DocID)
		if err != nil {
			t.Fatal(err)
		}
		want := wantOf(t, puts, c.URL)
		wantPacked(t, "in transit", &d.Put, want)
		if !bytes.Equal(c.Payload, want.Payload) || string(c.Spider) != docindex.SpiderOf(want.Metadata) {
			t.Errorf("%s: candidate for %q with a payload of %d bytes; want %q, %d", c.URL, c.Spider, len(c.Payload),
				docindex.SpiderOf(want.Metadata), len(want.Payload))
		}
		id := c.DocID
		o := docindex.Outcomes{}
		o.Add(docindex.Outcome{DocID: id, URL: c.URL, Again: time.Now().Unix() + 5, Metadata: want.Metadata})
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		if d, err = s.Document(t.Context(), id); err != nil || d.State != docindex.Scheduled {
			t.Fatalf("%s: %v, %v; want it scheduled again", c.URL, d.State, err)
		}
		wantPacked(t, "scheduled again", &d.Put, want)
	}
	n := 0
	err := s.List(t.Context(), docindex.Scope{}, func(d *docindex.Document) bool {
		wantPacked(t, "listed", &d.Put, wantOf(t, puts, d.URL))
		n++
		return true
	})
	if err != nil || n != len(puts) {
		t.Errorf("%d listed, %v; want %d", n, err, len(puts))
	}
}

func wantOf(t *testing.T, puts []docindex.Put, url []byte) *docindex.Put {
	t.Helper()
	for i := range puts {
		if bytes.Equal(puts[i].URL, url) {
			return &puts[i]
		}
	}
	t.Fatalf("%s was never put", url)
	return nil
}

// uniqueApart: within (spiderid, appid, crawl), unique names a document, whatever URL it comes with.
func uniqueApart(t *testing.T, s docindex.Store) {
	one := packedPut("http://a.test/1", "u", 0, "")
	change := func(change func(*docindex.Put)) docindex.Put {
		p := one
		change(&p)
		return p
	}
	for _, step := range []struct {
		name string
		put  docindex.Put
		want docindex.Verdict
	}{
		{"first", one, docindex.New},
		{"the same", one, docindex.Same},
		{"another URL", change(func(p *docindex.Put) { p.URL = []byte("http://a.test/2") }), docindex.Same},
		{"another host", change(func(p *docindex.Put) { p.URL = []byte("http://b.test/") }), docindex.Same},
		{"another key", change(func(p *docindex.Put) { p.Key = []byte("k") }), docindex.Same},
		{"another unique", change(func(p *docindex.Put) { p.Unique = []byte("v") }), docindex.New},
		{"the URL alone", change(func(p *docindex.Put) { p.Unique = nil }), docindex.New},
		{"another crawl", change(func(p *docindex.Put) { p.Crawl = []byte("c") }), docindex.New},
		{"an application", change(func(p *docindex.Put) { p.Metadata = []byte(`{"appid":["a"]}`) }), docindex.New},
		{"a spider", change(func(p *docindex.Put) { p.Metadata = []byte(`{"spiderid":["s"]}`) }), docindex.New},
		{"the spider on another host", change(func(p *docindex.Put) {
			p.Metadata, p.URL = []byte(`{"spiderid":["s"],"x":["y"]}`), []byte("http://c.test/")
		}), docindex.Same},
		{"its own URL as unique", change(func(p *docindex.Put) { p.Unique = p.URL }), docindex.New},
	} {
		for _, want := range []docindex.Verdict{step.want, docindex.Same} {
			if v := add(t, s, step.put)[0]; v != want {
				t.Errorf("%s: %v; want %v", step.name, v, want)
			}
		}
	}
	if n, err := s.Count(t.Context(), &docindex.Scope{Key: []byte("b.test")}); err != nil || n.Scheduled != 0 {
		t.Errorf("queue of another host has %d documents, %v", n.Scheduled, err)
	}
}

// uniqueMany puts one URL many times, in one call and in several.
func uniqueMany(t *testing.T, s docindex.Store) {
	const n = 3000
	var puts []docindex.Put
	for i := range n {
		puts = append(puts, packedPut("http://a.test/post", fmt.Sprint("body ", i), 0, fmt.Sprint(i)))
	}
	for round, want := range []docindex.Verdict{docindex.New, docindex.Same} {
		for from := 0; from < n; from += n / 3 {
			for i, v := range add(t, s, puts[from:from+n/3]...) {
				if v != want {
					t.Fatalf("round %d: put %d is answered %v; want %v", round, from+i, v, want)
				}
			}
		}
	}
	seen := map[string]bool{}
	for len(seen) < n {
		var b docindex.Batch
		if err := s.Candidates(t.Context(), n, nil, &b); err != nil || b.Len() == 0 {
			t.Fatalf("%d documents have come, %v; want %d", len(seen), err, n)
		}
		var o docindex.Outcomes
		for i := range b.Len() {
			seen[string(b.At(i).Payload)] = true
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
		}
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.Count(t.Context(), nil); err != nil || c.Completed != n || c.Scheduled+c.InTransit != 0 {
		t.Errorf("%+v, %v; want %d completed", c, err, n)
	}
}

func packedRenewed(t *testing.T, s docindex.Store) {
	const url = "http://a.test/"
	add(t, s, packedPut(url, "u", 3, "first"))
	later := packedPut("http://a.test/other", "u", 9, "")
	later.Update, later.Due, later.Metadata = true, time.Now().Unix()+60, []byte(`{"x":["y"]}`)
	if v := add(t, s, later)[0]; v != docindex.Changed {
		t.Errorf("an update by unique is answered %v", v)
	}
	want := packedPut(url, "u", 3, "first")
	want.Metadata = later.Metadata
	d := found(t, s, url)
	wantPacked(t, "updated", &d.Put, &want)
	later.Payload, want.Payload = []byte("second"), []byte("second")
	add(t, s, later)
	d = found(t, s, url)
	wantPacked(t, "updated with a payload", &d.Put, &want)

	news := docindex.Put{URL: []byte(url), Update: true, Due: later.Due} // of a client that says nothing of unique
	want.Metadata = nil
	if v := add(t, s, news)[0]; v != docindex.Changed {
		t.Errorf("an update by URL is answered %v", v)
	}
	d = found(t, s, url)
	wantPacked(t, "updated by URL", &d.Put, &want)
}

func packedCompleted(t *testing.T, s docindex.Store) {
	for _, metadata := range []string{"", `{"spiderid":["s"]}`, `{"appid":["a"],"spiderid":["s"]}`} {
		put := packedPut("http://a.test/", "u", 4, "gone")
		put.Metadata = []byte(metadata)
		add(t, s, put)
		c := take(t, s, 1)
		o := docindex.Outcomes{}
		o.Add(docindex.Outcome{DocID: c.At(0).DocID, URL: c.At(0).URL, Status: 200})
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		d, err := s.Document(t.Context(), c.At(0).DocID)
		if err != nil || d.State != docindex.Completed {
			t.Fatalf("%v, %v", d.State, err)
		}
		d.Metadata = docindex.OwnerOf(d.Metadata)
		want := put
		want.Payload = nil
		wantPacked(t, "completed", &d.Put, &want)
		if v := add(t, s, put)[0]; v != docindex.Same {
			t.Errorf("put again it is %v", v)
		}
		put.Update, put.Due, put.Depth = true, time.Now().Unix()+60, 0
		add(t, s, put)
		want.Payload = put.Payload
		if d, err = s.Document(t.Context(), c.At(0).DocID); err != nil || d.State != docindex.Scheduled {
			t.Fatalf("%v, %v", d.State, err)
		}
		wantPacked(t, "scheduled again", &d.Put, &want)
	}
}

// packedOutside: what ended as out_of_scope may be scheduled again when its crawl has another scope, and
// comes as it was put.
func packedOutside(t *testing.T, s docindex.Store) {
	for i, unique := range []string{"", "u"} {
		for _, taken := range []bool{false, true} {
			put := packedPut(fmt.Sprintf("http://h%d%v.test/", i, taken), unique+fmt.Sprint(taken), 4, "body")
			if unique == "" {
				put.Unique = nil
			}
			add(t, s, put)
			id := found(t, s, string(put.URL)).DocID
			if taken {
				take(t, s, 1)
			}
			o := docindex.Outcomes{}
			o.Add(docindex.Outcome{DocID: id, URL: put.URL, Kind: docindex.OutOfScope, NoStatus: true})
			if err := s.Outcomes(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			d, err := s.Document(t.Context(), id)
			if err != nil || d.State == docindex.InTransit {
				t.Fatalf("%v, %v; want it completed", d.State, err)
			}
			wantPacked(t, "out of scope", &d.Put, &put)
			if d.State == docindex.Completed { // the store knows no scope by which it is in it
				again := d.Put
				again.DocID, again.Payload, again.Update, again.Due = nil, nil, true, docindex.Now
				add(t, s, again)
			}
			if c := take(t, s, 1).At(0); string(c.Payload) != "body" || string(c.DocID) != string(id) {
				t.Errorf("%s comes again as %s with payload %q; want %s with its body", c.URL, c.DocID, c.Payload, id)
			}
		}
	}
}

func broughtForward(t *testing.T, s docindex.Store) {
	start := time.Now().Unix()
	sooner := func(path string, due int64) docindex.Put {
		return docindex.Put{URL: []byte("http://a.test/" + path), Due: due, Sooner: true}
	}
	late := sooner("late", start+1000)
	late.Metadata, late.Priority, late.Payload = []byte(`{"x":["y"]}`), 5, []byte("body")
	done := sooner("done", docindex.Never)
	done.Depth = 2
	for i, v := range add(t, s, late, done, sooner("out", docindex.Now), sooner("unique", start+1000)) {
		if v != docindex.New {
			t.Fatalf("put %d is answered %v", i, v)
		}
	}
	take(t, s, 1)
	again := sooner("done", start+500)
	again.Metadata, again.Payload, again.Depth = []byte(`{"z":[]}`), []byte("new"), 8
	for _, step := range []struct {
		name string
		put  docindex.Put
		want docindex.Verdict
		due  int64
	}{
		{"put off", sooner("late", start+2000), docindex.Same, start + 1000},
		{"the same", sooner("late", start+1000), docindex.Same, start + 1000},
		{"a bit sooner", sooner("late", start+100), docindex.Changed, start + 100},
		{"now", sooner("late", docindex.Now), docindex.Changed, time.Now().Unix()},
		{"now once more", sooner("late", docindex.Now), docindex.Same, time.Now().Unix()},
		{"completed", again, docindex.Changed, start + 500},
		{"in transit", sooner("out", docindex.Now), docindex.Same, -1},
	} {
		if v := add(t, s, step.put)[0]; v != step.want {
			t.Errorf("%s: %v; want %v", step.name, v, step.want)
		}
		d := found(t, s, string(step.put.URL))
		state := docindex.Scheduled
		if step.due < 0 {
			state = docindex.InTransit
		}
		if d.State != state || step.due >= 0 && d.Due != step.due {
			t.Errorf("%s: %v, due after %d s; want %d", step.name, d.State, d.Due-start, step.due-start)
		}
	}
	d := found(t, s, "http://a.test/late")
	wantPacked(t, "brought forward", &d.Put, &late)
	if d.Priority != 5 {
		t.Errorf("brought forward it has priority %d; want 5", d.Priority)
	}
	again.Depth = 2
	d = found(t, s, "http://a.test/done")
	wantPacked(t, "completed and put again", &d.Put, &again)
	c, err := s.Count(t.Context(), nil)
	if err != nil || c.Scheduled != 3 || c.InTransit != 1 || c.Completed != 0 {
		t.Errorf("%+v, %v; want 3 scheduled and 1 in transit", c, err)
	}
}

func uniqueForgotten(t *testing.T, s docindex.Store) {
	puts := []docindex.Put{
		packedPut("http://a.test/", "u", 1, "x"), packedPut("http://a.test/", "v", 1, "x"),
		packedPut("http://b.test/", "w", 1, "x"),
	}
	for round, remove := range []func() (int, error){
		func() (int, error) { return s.Delete(t.Context(), docindex.Scope{}) },
		func() (int, error) { return s.Purge(t.Context(), docindex.Scope{}, time.Now().Add(time.Hour)) },
		func() (int, error) { return s.Delete(t.Context(), docindex.Scope{Key: []byte("a.test")}) },
	} {
		for i, v := range add(t, s, puts...) {
			if v != docindex.New {
				t.Fatalf("round %d: put %d is answered %v", round, i, v)
			}
		}
		if n, err := remove(); err != nil || n != []int{3, 3, 2}[round] {
			t.Fatalf("round %d: %d removed, %v", round, n, err)
		}
	}
	moved := packedPut("http://b.test/moved", "u", 0, "")
	if v := add(t, s, moved, puts[1], puts[2]); v[0] != docindex.New || v[1] != docindex.New || v[2] != docindex.Same {
		t.Errorf("after one host was removed puts are answered %v; want new, new, same", v)
	}
	if d := found(t, s, "http://b.test/moved"); string(d.Unique) != "u" {
		t.Errorf("it is known by %q; want u", d.Unique)
	}
}
