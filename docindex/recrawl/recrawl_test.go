package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/httpserver"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
	"urlserver/docindex/recrawl"
)

// A store by no rule is what it was.
func TestStore(t *testing.T) {
	indextest.Run(t, func(*testing.T) docindex.Store { return recrawl.New(memory.New(), recrawl.Rule{}) })
}

func TestComesBack(t *testing.T) {
	bubble(t, func(r *rig) {
		r.url, r.id = "http://b.test/", "whole"
		put := docindex.Put{Priority: -5, Crawl: []byte("c"), Key: []byte("k"), Metadata: []byte(`{"a":["b"],"z":[]}`)}
		r.put(put)
		r.report(docindex.Outcome{DocID: []byte("x1"), Kind: docindex.Stopped}) // the other one
		want := r.document()
		for i := range 3 {
			r.take(true)
			time.Sleep(1500 * time.Millisecond)
			r.report(r.done(503))
			wait := time.Hour<<i + 500*time.Millisecond // to the next second
			r.waits(wait, docindex.Done, i+1)
			want.Due = time.Now().Add(wait).Unix()
			want.Metadata = fmt.Appendf(nil, `{"a":["b"],"refetch":["0","%d","%d"],"z":[]}`, i+1,
				time.Now().UnixMilli())
			want.Last = docindex.LastOutcome{Known: true, Kind: docindex.Done, Status: 503,
				At: time.Unix(time.Now().Unix(), 0).UTC()}
			if got := r.document(); !reflect.DeepEqual(got, want) {
				t.Errorf("the document is\n%+v; want\n%+v", got, want)
			}
			time.Sleep(wait - time.Millisecond)
			r.take(false)
			time.Sleep(time.Millisecond)
		}
		r.take(true)
		r.report(r.done(404))
		r.completed(true)
	})
}

// What is told again changes nothing, whatever has become of its document.
func TestRepeated(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(r *rig, first docindex.Outcome)
		back bool // it is out again
	}{
		{name: "while it waits", then: func(r *rig, first docindex.Outcome) { r.report(first) }},
		{name: "without a time", then: func(r *rig, first docindex.Outcome) {
			first.At = time.Time{}
			r.report(first)
		}},
		{name: "as another end", then: func(r *rig, _ docindex.Outcome) { r.report(r.done(200), r.done(404)) }},
		{name: "when it is due", then: func(r *rig, first docindex.Outcome) {
			time.Sleep(time.Hour)
			r.report(first)
		}},
		{name: "when it is out again", back: true, then: func(r *rig, first docindex.Outcome) {
			time.Sleep(time.Hour)
			r.take(true)
			r.report(first)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.take(true)
				first := r.done(503)
				r.report(first, first)
				r.waits(time.Hour, docindex.Done, 1)
				before := r.document()
				c.then(r, first)
				if c.back {
					before.State = docindex.InTransit
				}
				if got := r.document(); !reflect.DeepEqual(got, before) {
					t.Errorf("the document is\n%+v; want\n%+v", got, before)
				}
				if n := r.Stats().Outcomes[docindex.Done]; n != 1 {
					t.Errorf("%d outcomes are counted; want 1", n)
				}
				if !c.back {
					time.Sleep(time.Until(time.Unix(before.Due, 0)))
					r.take(true)
				}
				r.report(r.done(503)) // its own
				r.waits(2*time.Hour, docindex.Done, 2)
			})
		})
	}
}

// TestStrange has outcomes that are of no document here, before the one that is.
func TestStrange(t *testing.T) {
	bubble(t, func(r *rig) {
		r.take(true)
		right, other, unknown := r.done(200), r.done(200), r.done(200)
		other.URL = []byte("http://b.test/")
		unknown.DocID = []byte("unknown")
		r.report(other, unknown)
		if d := r.document(); d.State != docindex.InTransit || len(d.Metadata) > 0 {
			t.Errorf("the document is %+v; want it in transit", d)
		}
		r.report(other, unknown, right, other)
		r.waits(8*time.Hour, docindex.Done, 1)
		time.Sleep(8 * time.Hour)
		r.take(true)
		r.report(r.done(410))
		r.report(r.done(200)) // it is completed for good
		r.completed(true)
	})
}

// What says that nothing is to be fetched any more holds while a document waits, too.
func TestFinal(t *testing.T) {
	for _, kind := range []docindex.Kind{docindex.Invalid, docindex.Stopped, docindex.Expired} {
		bubble(t, func(r *rig) {
			r.take(true)
			r.report(r.done(200))
			r.completed(false)
			o := r.done(0)
			o.Kind = kind
			r.report(o)
			r.completed(true)
		})
	}
}

// An outcome counts whatever has become of the lease, and whether it has its URL with it or not.
func TestAfterTheLease(t *testing.T) {
	bubble(t, func(r *rig) {
		var b docindex.Batch
		if err := r.Lease(t.Context(), 1, nil, time.Second, &b); err != nil || b.Len() != 1 {
			t.Fatalf("Lease: %d, %v", b.Len(), err)
		}
		time.Sleep(2 * time.Second)
		r.report(docindex.Outcome{DocID: []byte(r.id), Kind: docindex.DNS})
		r.waits(time.Hour, docindex.DNS, 1)
		time.Sleep(time.Hour)
		r.take(true)
	})
}

// What came back goes out at the other door as well, and its news holds.
func TestClients(t *testing.T) {
	bubble(t, func(r *rig) {
		r.take(true)
		r.report(r.done(200))
		time.Sleep(8 * time.Hour)
		var metadata string
		err := r.Serve(t.Context(), docindex.Request{Lease: time.Minute}, func(h *docindex.Served) error {
			metadata = string(h.At(0).Metadata)
			return nil
		})
		if want := fmt.Sprintf(`{"refetch":["28800","0","%d"]}`,
			time.Now().Add(-8*time.Hour).UnixMilli()); err != nil || metadata != want {
			t.Errorf("a client gets %s, %v; want %s", metadata, err, want)
		}
		r.put(docindex.Put{Update: true, Due: time.Now().Unix() + 60})
		r.waits(time.Minute, docindex.Done, 1)
		if d := r.document(); len(d.Metadata) > 0 {
			t.Errorf("the client's metadata is %s; want none", d.Metadata)
		}
	})
}

// TestOverHTTP has outcomes as other spiders report them.
func TestOverHTTP(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, c := range []struct {
			members string
			wait    time.Duration
		}{
			{members: `"outcome": "done"`, wait: 8 * time.Hour},
			{members: `"outcome": "done", "status": 200, "changed": true`, wait: 4 * time.Hour},
			{members: `"outcome": "done", "changed": false`, wait: 6 * time.Hour},
			{members: `"outcome": "done", "status": 200, "changed": null`, wait: 8 * time.Hour},
			{members: `"outcome": "done", "status": 0`, wait: time.Hour},
			{members: `"outcome": "dns"`, wait: 2 * time.Hour},
		} {
			r.take(true)
			body := strings.NewReader(`{"doc_id": "x1", ` + c.members + `}`)
			w := httptest.NewRecorder()
			httpserver.Handler(r).ServeHTTP(w, httptest.NewRequest("POST", "/docindex/outcomes", body))
			if d := r.document(); w.Code != 204 || time.Until(time.Unix(d.Due, 0)) != c.wait {
				t.Errorf("%s is answered %d; the document is due in %v; want %v", c.members, w.Code,
					time.Until(time.Unix(d.Due, 0)), c.wait)
			}
			time.Sleep(c.wait)
		}
	})
}

// failing has no documents to tell of.
type failing struct {
	docindex.Store
	told int
}

var errFire = errors.New("disk on fire")

func (f *failing) Document(context.Context, []byte) (docindex.Document, error) {
	return docindex.Document{}, errFire
}

func (f *failing) Outcomes(context.Context, *docindex.Outcomes) error {
	f.told++
	return nil
}

// Where the store cannot tell what it has, no outcome is taken.
func TestFailing(t *testing.T) {
	f := &failing{}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: []byte("1"), Kind: docindex.Invalid})
	o.Add(docindex.Outcome{DocID: []byte("2")})
	if err := recrawl.New(f, rule).Outcomes(t.Context(), &o); !errors.Is(err, errFire) || f.told != 0 {
		t.Errorf("Outcomes = %v, and %d were passed on; want %v, and none", err, f.told, errFire)
	}
}

// TestClockSetBack: the time of day is two hours behind the time of an index in memory. What failed comes back after
// its wait, and not at once.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, store := time.Now(), memory.New()
		store.SetClock(func() time.Duration { return time.Since(start) + 2*time.Hour })
		r := &rig{t: t, Store: recrawl.New(store, rule), url: "http://a.test/x", id: "x1"}
		r.put(docindex.Put{})
		for wait := rule.Error; wait < 8*rule.Error; wait *= 2 {
			r.take(true)
			r.report(r.done(503))
			time.Sleep(wait - time.Second)
			r.take(false)
			time.Sleep(time.Second)
		}
		r.take(true)
	})
}
