package urlserver

import (
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// TestExplainOfDocumentsElsewhere asks about hosts of which the daemon holds nothing.
func TestExplainOfDocumentsElsewhere(t *testing.T) {
	r := newRig(t, func(c *configs.Config) {
		c.Frontier.Listen = "127.0.0.1:0" // without a spider the slots take nothing
	})
	defer r.stop()
	r.put("http://127.0.0.1/a", "http://127.0.0.1/b", "http://127.0.0.2/c", "http://127.0.0.3/d")
	if err := r.d.Block(t.Context(), "127.0.0.3", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	r.says(t, "127.0.0.1", "nothing of it is held here; 2 of its documents wait in the doc index")
	var lent docindex.Batch
	if err := r.store.Lease(t.Context(), 10, nil, time.Hour, &lent); err != nil || lent.Len() != 4 {
		t.Fatalf("%d documents are lent, %v; want 4", lent.Len(), err)
	}
	r.says(t, "127.0.0.1", "2 of its documents are out, but not here: ")
	r.says(t, "127.0.0.3", "; 1 of its documents are out, but not here: ") // behind why the slots would wait
	var ended docindex.Outcomes
	for i := range lent.Len() {
		ended.Add(docindex.Outcome{DocID: lent.At(i).DocID, URL: lent.At(i).URL, Kind: docindex.Done, Status: 200})
	}
	if err := r.store.Outcomes(t.Context(), &ended); err != nil {
		t.Fatal(err)
	}
	r.says(t, "127.0.0.1", "nothing is to be fetched: all its documents in the doc index are completed (2)")
	if x, ok, err := r.d.Explain(t.Context(), "127.0.0.4"); ok || err != nil {
		t.Errorf("a host that nobody knows: %+v, %v, %v", x, ok, err)
	}
}

func (r *rig) says(t *testing.T, host, want string) {
	t.Helper()
	x, ok, err := r.d.Explain(t.Context(), host)
	if !ok || err != nil || !strings.Contains(x.Why, want) {
		t.Errorf("of %s: %q, %v, %v; want %s", host, x.Why, ok, err, want)
	}
}
