package redis

import (
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

// TestUniqueAtOnce has two daemons put the same uniques at one time, with URLs and payloads of their
// own: each is new to one of them, and known to the other, and comes as the first one put it.
func TestUniqueAtOnce(t *testing.T) {
	const rounds, batch = 20, 50
	d := newDaemons(t)
	stores := [2]*Store{d.start(), d.start()}
	wants := map[string]string{} // payload by unique
	for round := range rounds {
		var puts [2]docindex.Puts
		for i := range batch {
			for daemon := range stores {
				host := fmt.Sprintf("h%d.test", (i+daemon*(round%3))%7) // the same host, or another
				one := docindex.Put{URL: fmt.Appendf(nil, "http://%s/%d", host, daemon), Crawl: []byte("c"),
					Unique:  fmt.Appendf(nil, "u-%d-%d", round, i),
					Payload: fmt.Appendf(nil, "of daemon %d, %d", daemon, i)}
				if err := puts[daemon].Add(one); err != nil {
					t.Fatal(err)
				}
			}
		}
		begin, ended := make(chan struct{}), make(chan error)
		for daemon, s := range stores {
			go func() {
				<-begin
				_, err := s.Put(t.Context(), &puts[daemon])
				ended <- err
			}()
		}
		close(begin)
		for range stores {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		for i := range batch {
			verdicts := [2]docindex.Verdict{puts[0].Verdict(i), puts[1].Verdict(i)}
			winner := 0
			if verdicts[1] == docindex.New {
				winner = 1
			}
			if verdicts[winner] != docindex.New || verdicts[1-winner] != docindex.Same {
				t.Fatalf("round %d, put %d is answered %v; want it new to one, known to the other", round, i, verdicts)
			}
			wants[fmt.Sprintf("u-%d-%d", round, i)] = fmt.Sprintf("of daemon %d, %d", winner, i)
		}
	}
	n := 0
	err := stores[0].List(t.Context(), docindex.Scope{Crawl: []byte("c")}, func(d *docindex.Document) bool {
		n++
		if want := wants[string(d.Unique)]; string(d.Payload) != want {
			t.Errorf("%s has the payload %q; want %q", d.Unique, d.Payload, want)
		}
		return true
	})
	if c := indextest.Count(t, stores[1], nil); err != nil || n != len(wants) || int(c.Scheduled) != len(wants) {
		t.Errorf("%d documents, %+v, %v; want %d", n, c, err, len(wants))
	}
}

// TestUniqueOfTheDead puts what a daemon was about to store under a unique when it died.
func TestUniqueOfTheDead(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	put := func(host string) docindex.Put {
		return docindex.Put{URL: []byte("http://" + host + "/"), Unique: []byte("u")}
	}
	var dying docindex.Puts
	if err := dying.Add(put("a.test")); err != nil {
		t.Fatal(err)
	}
	of := putting{p: &dying, these: []int{0}}
	if waits, err := a.giveUniques(t.Context(), &of, false); len(waits) != 0 || err != nil {
		t.Fatal(waits, err)
	}
	putOf(t, b, put("b.test"))
	want(t, "under a unique that a daemon has left", urls(take(t, a)), "http://b.test/")
	putOf(t, a, put("a.test"))
	if n := indextest.Count(t, a, nil); n.InTransit != 1 || n.Scheduled != 0 {
		t.Errorf("put once more: %+v; want the one in transit", n)
	}
}
