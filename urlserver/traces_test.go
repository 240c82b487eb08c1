package urlserver

import (
	"fmt"
	"strings"
	"testing"

	"urlserver/internal/trace"
	"urlserver/urlserver/engine"
)

// ends returns the ends of sampled documents. Their names have the index of their outcome.
func ends(places ...int) (all []engine.TraceEnd) {
	for _, n := range places {
		all = append(all, engine.TraceEnd{Trace: trace.Trace{DocID: fmt.Sprint(n)}, Outcome: n})
	}
	return all
}

func ids(all []engine.TraceEnd) (text string) {
	for i := range all {
		text += all[i].DocID + " "
	}
	return text
}

// Traces end when the index has acknowledged the outcomes, for any size of batches.
func TestTrails(t *testing.T) {
	var tr pendingTraces
	if rest := tr.add(ends(2, 3), 10); len(rest) != 0 {
		t.Errorf("no room for %s", ids(rest))
	}
	tr.add(nil, 5)
	tr.add(ends(1, 4), 4) // the 16th and the 19th of all
	for _, c := range []struct {
		outcomes int
		want     string
	}{{1, ""}, {2, "2 3 "}, {12, ""}, {1, "1 "}, {2, ""}, {1, "4 "}, {100, ""}} {
		if got := ids(tr.take(c.outcomes)); got != c.want {
			t.Errorf("after %d outcomes: %q; want %q", tr.taken, got, c.want)
		}
	}
}

func TestTrailsAreBounded(t *testing.T) {
	var tr pendingTraces
	for n := range maxPendingTraces {
		if rest := tr.add(ends(1), 1); len(rest) != 0 {
			t.Fatalf("no room after %d", n)
		}
	}
	if rest := ids(tr.add(ends(1, 2), 2)); rest != "1 2 " {
		t.Errorf("what has no room is %q; want both", rest)
	}
	if n := len(tr.take(10)); n != 10 {
		t.Errorf("%d of the first 10 outcomes", n)
	}
	if cut := tr.cut(5); len(cut) != maxPendingTraces-15 || len(tr.cut(5)) != 0 {
		t.Errorf("%d are beyond the next 5 outcomes; want %d, once", len(cut), maxPendingTraces-15)
	}
	tr.add(ends(1), 1)
	if left := ids(tr.take(5)) + ids(tr.take(1)); strings.Count(left, "1") != 6 {
		t.Errorf("left are %q; want five, and one put after that", left)
	}
}
