package indextest

import (
	"fmt"
	"strings"
	"testing"

	"urlserver/docindex"
)

// fewOfDomain: the slots have few documents of a domain, and fewer of one that is over its
// budget. They are woken when they have room again.
func fewOfDomain(t *testing.T, open func(t *testing.T) docindex.Store) {
	for _, c := range []struct {
		name         string
		budget, most int
		wait         docindex.Wait
	}{
		{"within its budget", 1000, 4, docindex.Wait{Rule: docindex.WaitDomain, Name: "a.example", Count: 4}},
		{"over its budget", 2, 3, docindex.Wait{Rule: docindex.WaitOverBudget, Name: "a.example", Round: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, woken := open(t), 0
			s.OnWake(func() { woken++ })
			s.SetBudget(c.budget)
			s.SetAhead(docindex.Ahead{Domain: 4, Waiting: 3})
			var all []string
			for i := range 20 {
				all = append(all, fmt.Sprintf("http://h%d.a.example/", i))
			}
			for i := range 5 {
				all = append(all, fmt.Sprintf("http://b%d.example/", i))
			}
			put(t, s, urls(all...)...)
			b := takeAll(t, s, 100)
			if n := ofDomain(b, ".a.example"); n != c.most || b.Len() != c.most+5 {
				t.Fatalf("%d documents, %d of the domain; want 5 and %d", b.Len(), n, c.most)
			}
			status, err := s.HostStatus(t.Context(), []byte("h19.a.example"))
			w := status.AtSlots.Wait
			if err != nil || w.Rule != c.wait.Rule || w.Name != c.wait.Name || w.Round != c.wait.Round ||
				c.wait.Count > 0 && w.Count != c.wait.Count {
				t.Errorf("it waits: %+v, %v; want %+v", w, err, c.wait)
			}
			woken = 0
			end(t, s, b)
			if woken == 0 {
				t.Error("the slots are not woken")
			}
			for got := b.Len(); got < len(all); got += b.Len() {
				if b = takeAll(t, s, 100); b.Len() == 0 || b.Len() > c.most {
					t.Fatalf("%d documents after %d; want at most %d", b.Len(), got, c.most)
				}
				end(t, s, b)
			}
		})
	}
}

func ofDomain(b *docindex.Batch, domain string) (n int) {
	for i := range b.Len() {
		if strings.Contains(string(b.At(i).URL), domain) {
			n++
		}
	}
	return n
}

// fullSlots: a domain that generates names, all of which are on one address, does not fill the
// slots while it waits. They have room for three documents of each honest site.
func fullSlots(t *testing.T, open func(t *testing.T) docindex.Store) {
	const sites, seconds = 20, 12
	run := func(links int) (honest int) {
		s := open(t)
		s.SetBudget(5)
		s.SetAhead(docindex.Ahead{Domain: 24, Waiting: 8})
		w := newWeb(t, webSize{sites: sites, names: 10_000}, s, links)
		var held []docindex.Candidate
		for range seconds {
			b := takeAll(t, s, 3*sites-len(held))
			for i := range b.Len() {
				held = append(held, b.At(i))
			}
			n := 0
			n, held = w.fetch(held)
			honest += n
		}
		return honest
	}
	alone := run(1)
	if got := run(8); got < alone*95/100 {
		t.Errorf("%d honest pages beside a domain of generated names; want 95 %% of %d", got, alone)
	}
}

// fetch fetches a page of each honest site, and one of all others, of what the slots have. It
// returns how many of the former, and what is left.
func (w *web) fetch(held []docindex.Candidate) (honest int, left []docindex.Candidate) {
	var p docindex.Puts
	var o docindex.Outcomes
	asked := map[int]bool{}
	for _, c := range held {
		site := w.siteOf(c.URL)
		if asked[site] {
			left = append(left, c)
			continue
		}
		asked[site] = true
		o.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL, Status: 200, Attempts: 1})
		if site >= 0 {
			honest++
			w.honest(&p, site)
		}
		w.spread(&p)
	}
	report(w.t, w.s, &o)
	w.put(&p)
	return honest, left
}
