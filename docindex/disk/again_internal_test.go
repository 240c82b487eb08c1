package disk

import (
	"testing"
	"time"

	"urlserver/docindex"
)

// TestAgainAfterTheClockWasSetBack: the time of day is two hours behind the time of the store. What is to come back
// in a minute does so in a minute, and not at once.
func TestAgainAfterTheClockWasSetBack(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	passed := 2 * time.Hour
	s.base.SetClock(func() time.Duration { return passed })
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte("http://a.test/")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {58 * time.Second, 0}, {3 * time.Second, 1}, {time.Second, 0}} {
		passed += step.after
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != step.want {
			t.Fatalf("%v after the start %d documents come, %v; want %d", passed, b.Len(), err, step.want)
		}
		var o docindex.Outcomes
		for i := range b.Len() {
			o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200,
				Again: time.Now().Unix() + 60})
		}
		if err := s.Outcomes(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
}
