package recrawl_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/recrawl"
)

// chaos reports whatever of whatever document, again and again, and notes what may have come of it.
type chaos struct {
	t     *testing.T
	rnd   *rand.Rand
	store docindex.Store
	old   bool // what is told again may be older than the last of its document
	docs  []*chaosDoc
}

type chaosDoc struct {
	id, url string
	out     bool                   // handed out, and not reported since
	failed  map[time.Time]struct{} // when it ended badly
	told    []docindex.Outcome     // of it
	over    bool                   // something told is for good
}

// TestNothingIsLost has outcomes that come late, twice, in any order, of documents that are in any
// state and of none: each document is handed out again in the end, unless it was reported as gone.
// While only the last one of a document is told again, no failure counts twice, and nothing is
// handed out that somebody has.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := recrawl.New(memory.New(), recrawl.Rule{OK: time.Minute, Error: 20 * time.Second})
				c := &chaos{t: t, rnd: rand.New(rand.NewPCG(seed, 3)), store: store, old: seed%2 == 1}
				c.run()
			})
		})
	}
}

func (c *chaos) run() {
	var puts docindex.Puts
	for i := range 30 {
		d := &chaosDoc{id: fmt.Sprint("d", i), url: fmt.Sprintf("http://h%d.test/", i),
			failed: map[time.Time]struct{}{}}
		c.docs = append(c.docs, d)
		if err := puts.Add(docindex.Put{URL: []byte(d.url), DocID: []byte(d.id)}); err != nil {
			c.t.Fatal(err)
		}
	}
	if _, err := c.store.Put(c.t.Context(), &puts); err != nil {
		c.t.Fatal(err)
	}
	for range 300 {
		switch c.rnd.IntN(3) {
		case 0:
			c.take(1 + c.rnd.IntN(10))
		case 1:
			c.report(1 + c.rnd.IntN(10))
		case 2:
			time.Sleep(time.Duration(c.rnd.Int64N(int64(time.Minute))))
			continue // changes nothing
		}
		c.check()
	}
	time.Sleep(1000 * time.Hour)
	c.take(len(c.docs))
	c.check()
	for _, d := range c.docs {
		if !d.out && !d.over {
			c.t.Errorf("%s is lost: it is %+v", d.id, c.document(d))
		}
	}
}

func (c *chaos) take(max int) {
	var b docindex.Batch
	if err := c.store.Candidates(c.t.Context(), max, nil, &b); err != nil {
		c.t.Fatal(err)
	}
	for i := range b.Len() {
		d := c.docs[slices.IndexFunc(c.docs, func(d *chaosDoc) bool { return d.id == string(b.At(i).DocID) })]
		if d.out && !c.old {
			c.t.Fatalf("%s is handed out, though somebody has it", d.id)
		}
		d.out = true
	}
}

// report tells n outcomes: of what is out, once more, or of nothing that is there.
func (c *chaos) report(n int) {
	var o docindex.Outcomes
	for range n {
		d := c.docs[c.rnd.IntN(len(c.docs))]
		switch {
		case d.out && c.rnd.IntN(2) == 0:
			d.out = false
			o.Add(c.end(d))
		case len(d.told) > 0 && c.rnd.IntN(2) == 0:
			last := len(d.told) - 1
			if c.old {
				last = c.rnd.IntN(len(d.told))
			}
			o.Add(d.told[last])
		default:
			o.Add(docindex.Outcome{DocID: []byte(d.id), URL: []byte("http://other.test/"), Status: 404, At: time.Now()})
		}
	}
	if err := c.store.Outcomes(c.t.Context(), &o); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) end(d *chaosDoc) docindex.Outcome {
	o := docindex.Outcome{DocID: []byte(d.id), URL: []byte(d.url),
		Status: []int{200, 304, 503, 0}[c.rnd.IntN(4)], At: time.Now()}
	if c.rnd.IntN(50) == 0 {
		o.Status, d.over = 404, true
	}
	if o.Status == 503 || o.Status == 0 {
		d.failed[o.At] = struct{}{}
	}
	d.told = append(d.told, o)
	return o
}

func (c *chaos) document(d *chaosDoc) docindex.Document {
	c.t.Helper()
	got, err := c.store.Document(c.t.Context(), []byte(d.id))
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

func (c *chaos) check() {
	c.t.Helper()
	for _, d := range c.docs {
		got := c.document(d)
		errors := 0
		if kept := docindex.DecodeMetadata(got.Metadata)[recrawl.Key]; len(kept) == 3 {
			fmt.Sscan(kept[1], &errors)
		}
		switch {
		case got.State == docindex.Completed && !d.over:
			c.t.Fatalf("%s is completed by nothing that was told", d.id)
		case c.old:
		case errors > len(d.failed):
			c.t.Fatalf("%s has %d errors in a row after %d in all", d.id, errors, len(d.failed))
		case d.out && got.State != docindex.InTransit:
			c.t.Fatalf("%s is %v, though somebody has it", d.id, got.State)
		}
	}
}
