package recrawl_test

import (
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/recrawl"
)

var rule = recrawl.Rule{OK: 8 * time.Hour, Error: time.Hour}

// rig is a store with one document, in a bubble of its own time.
type rig struct {
	t *testing.T
	*recrawl.Store
	url, id string
}

func bubble(t *testing.T, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, Store: recrawl.New(memory.New(), rule), url: "http://a.test/x", id: "x1"}
		r.put(docindex.Put{})
		test(r)
	})
}

func (r *rig) put(p docindex.Put) {
	r.t.Helper()
	p.URL, p.DocID = []byte(r.url), []byte(r.id)
	var puts docindex.Puts
	err := puts.Add(p)
	if err == nil {
		_, err = r.Put(r.t.Context(), &puts)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// take wants the document to be handed out, or not.
func (r *rig) take(want bool) {
	r.t.Helper()
	var b docindex.Batch
	if err := r.Candidates(r.t.Context(), 10, nil, &b); err != nil {
		r.t.Fatal(err)
	}
	if (b.Len() == 1) != want || b.Len() == 1 && (string(b.At(0).DocID) != r.id || string(b.At(0).URL) != r.url) {
		r.t.Fatalf("%d documents are handed out; want %s: %v", b.Len(), r.id, want)
	}
}

func (r *rig) done(status int) docindex.Outcome {
	return docindex.Outcome{DocID: []byte(r.id), URL: []byte(r.url), Status: status, Attempts: 1, At: time.Now()}
}

func (r *rig) report(all ...docindex.Outcome) {
	r.t.Helper()
	var o docindex.Outcomes
	for _, one := range all {
		o.Add(one)
	}
	if err := r.Outcomes(r.t.Context(), &o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) document() docindex.Document {
	r.t.Helper()
	d, err := r.Document(r.t.Context(), []byte(r.id))
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// waits wants the document to be scheduled so long from now, after so many outcomes of a kind.
func (r *rig) waits(wait time.Duration, kind docindex.Kind, outcomes int) {
	r.t.Helper()
	d := r.document()
	if got := time.Until(time.Unix(d.Due, 0)); d.State != docindex.Scheduled || got != wait {
		r.t.Errorf("the document is %v, due in %v; want it due in %v", d.State, got, wait)
	}
	if n := r.Stats().Outcomes[kind]; n != outcomes {
		r.t.Errorf("%d outcomes are %v; want %d", n, kind, outcomes)
	}
}

func (r *rig) completed(want bool) {
	r.t.Helper()
	if d := r.document(); (d.State == docindex.Completed) != want {
		r.t.Errorf("the document is %v; want it completed: %v", d.State, want)
	}
}
