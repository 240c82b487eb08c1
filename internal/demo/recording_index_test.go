package demo

import (
	"errors"
	"slices"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

// newTestIndex returns an index of one host with the given seeds, and a counter of the calls of
// finish.
func newTestIndex(t *testing.T, seeds ...string) (*recordingIndex, *int) {
	t.Helper()
	w := newWeb("", 8000, []host{{name: "127.77.0.1", addr: loopback(1)}})
	w.seeds = seeds
	finished := new(int)
	l, err := newRecordingIndex(t.Context(), w, func() { *finished++ })
	must(t, err)
	return l, finished
}

func TestRecordingIndexIsAStore(t *testing.T) {
	indextest.Run(t, func(t *testing.T) docindex.Store {
		w := newWeb("", 8000, []host{{name: "::1"}}) // the suite has a URL there
		l, err := newRecordingIndex(t.Context(), w, func() {})
		must(t, err)
		return l
	})
}

// end takes all candidates and ends them.
func end(t *testing.T, l *recordingIndex, kind docindex.Kind, status, most int) {
	t.Helper()
	var b docindex.Batch
	must(t, l.Candidates(t.Context(), most, nil, &b))
	var o docindex.Outcomes
	for i := range b.Len() {
		o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Kind: kind, Status: status,
			Attempts: 1})
	}
	must(t, l.Outcomes(t.Context(), &o))
}

func putAll(t *testing.T, l *recordingIndex, urls ...string) docindex.PutResult {
	t.Helper()
	var p docindex.Puts
	for _, u := range urls {
		must(t, p.Add(docindex.Put{URL: []byte(u)}))
	}
	res, err := l.Put(t.Context(), &p)
	must(t, err)
	return res
}

func TestNothingIsLeft(t *testing.T) {
	l, finished := newTestIndex(t, "http://a.test/", "http://a.test/1")
	end(t, l, docindex.Done, 200, 1)
	if *finished != 0 {
		t.Fatal("said that nothing is left while a document is scheduled")
	}
	var held docindex.Batch
	must(t, l.Candidates(t.Context(), 1, nil, &held))
	must(t, l.Outcomes(t.Context(), new(docindex.Outcomes)))
	if *finished != 0 {
		t.Fatal("said that nothing is left while a document is in transit")
	}
	putAll(t, l, "http://a.test/2")
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: held.At(0).DocID, URL: held.At(0).URL, Kind: docindex.Done, Status: 200})
	must(t, l.Outcomes(t.Context(), &o))
	if *finished != 0 {
		t.Fatal("said that nothing is left while a link is scheduled")
	}
	end(t, l, docindex.Robots, 0, 1)
	if *finished != 1 || l.ended() != 3 {
		t.Errorf("finished %d times after %d documents, want once after 3", *finished, l.ended())
	}
	ends, count := l.countEnds()
	if want := []ending{{docindex.Done, 200}, {docindex.Robots, 0}}; !slices.Equal(ends, want) ||
		count[want[0]] != 2 {
		t.Errorf("countEnds = %v, %v", ends, count)
	}
}

func TestRecordingIndexRefusesTheOutside(t *testing.T) {
	l, _ := newTestIndex(t)
	res := putAll(t, l, "http://127.0.0.1/", "http://a.test/", "http://127.77.0.1/",
		"http://[2001:db8::1]/", "http://a.test/")
	if res.New != 2 || res.Known != 1 || len(res.Refused) != 2 {
		t.Fatalf("Put = %+v, want 2 new, 1 known, 2 refused", res)
	}
	for i, want := range []int{0, 3} {
		if r := res.Refused[i]; r.Index != want || !errors.Is(r.Err, errOutside) {
			t.Errorf("refusal %d = %+v, want index %d", i, r, want)
		}
	}
	if l.skipped() != 2 {
		t.Errorf("skipped %d, want 2", l.skipped())
	}
}

func TestRecordingIndexJudge(t *testing.T) {
	const a, b = "http://a.test/", "http://a.test/b"
	tests := []struct {
		name  string
		want  map[string]docindex.Kind
		early bool
		wrong int
	}{
		{name: "as planned", want: map[string]docindex.Kind{a: docindex.Done}},
		{name: "another outcome", want: map[string]docindex.Kind{a: docindex.Robots}, wrong: 1},
		{name: "none", want: map[string]docindex.Kind{a: docindex.Done, b: docindex.Done}, wrong: 1},
		{name: "none, ended early", want: map[string]docindex.Kind{a: docindex.Done,
			b: docindex.Done}, early: true},
		{name: "not linked", want: map[string]docindex.Kind{}, wrong: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, _ := newTestIndex(t, a)
			end(t, l, docindex.Done, 200, 10)
			if got := l.judge(plan{ends: test.want}, !test.early); got.count != test.wrong {
				t.Errorf("wrong: %q, want %d", got.first, test.wrong)
			}
		})
	}
}

func TestRecordingIndexNotesSecondOutcomes(t *testing.T) {
	l, _ := newTestIndex(t, "http://a.test/")
	var o docindex.Outcomes
	for range 2 {
		o.Add(docindex.Outcome{DocID: []byte("1"), URL: []byte("http://a.test/")})
	}
	must(t, l.Outcomes(t.Context(), &o))
	if l.repeated.count != 1 {
		t.Errorf("ended twice: %q, want one", l.repeated.first)
	}
}
