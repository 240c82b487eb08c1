package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/urlserver"
)

// newBudgetRig returns a rig whose slots know 127.0.9.1. They have none of the documents of a host in
// the store, whose domain is over its budget there. Those of the store's other hosts are blocked.
func newBudgetRig(t *testing.T, host string) *rig {
	t.Helper()
	ofSlots := memory.New()
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte("http://127.0.9.1/")}); err != nil {
		t.Fatal(err)
	}
	if _, err := ofSlots.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, setup{
		config: func(c *configs.Config) { c.Crawl.Budget = 2 },
		parts:  func(p *urlserver.Parts) { p.Index = ofSlots },
	})
	r.holds(1)
	hour := uint64(time.Now().Add(time.Hour).Unix())
	for i := range 3 {
		other := fmt.Sprintf("127.0.8.%d", i)
		err := r.store.Set(t.Context(), docindex.Setting{Kind: docindex.SetBlock,
			Scope: docindex.Scope{Key: []byte(other)}, Value: hour})
		if err != nil {
			t.Fatal(err)
		}
		r.put("http://" + other + "/")
	}
	var urls []string
	for i := range 9 {
		urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	r.put(urls...)
	var lent docindex.Batch
	if err := r.store.Lease(t.Context(), 2, nil, time.Hour, &lent); err != nil || lent.Len() != 2 {
		t.Fatalf("%d documents are lent, %v; want 2", lent.Len(), err)
	}
	var ended docindex.Outcomes
	for i := range lent.Len() {
		ended.Add(docindex.Outcome{DocID: lent.At(i).DocID, URL: lent.At(i).URL, Status: 200})
	}
	if err := r.store.Outcomes(t.Context(), &ended); err != nil {
		t.Fatal(err)
	}
	r.waitsFor(string(docindex.HostOf([]byte(urls[0]))), docindex.WaitOverBudget) // when its gap has passed
	return r
}

func (r *rig) waitsFor(host string, rule docindex.WaitRule) {
	r.t.Helper()
	for end := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		status, err := r.store.HostStatus(r.t.Context(), []byte(host))
		if err != nil || time.Now().After(end) {
			r.t.Fatalf("%s waits: %+v, %v; want rule %d", host, status.AtSlots, err, rule)
		}
		if status.AtSlots.Wait.Rule == rule {
			return
		}
	}
}

// A host that waits in the index only is found by its whole name, and by nothing less.
func TestHostsInTheIndex(t *testing.T) {
	r := newBudgetRig(t, "127.0.1.1")
	for _, c := range []struct {
		query, first string
		matched      int
	}{
		{"text=127.0.1.1", "127.0.1.1", 1},
		{"text=127.0.1.1&limit=1&sort=host", "127.0.1.1", 1},
		{"text=127.0.1.", "", 0},
		{"text=127.0.257", "", 0}, // another form of the address, or the beginning of 127.0.257.example
		{"text=127.0.1.1&only=failed", "", 0},
		{"text=127.0.7.7", "", 0},
		{"text=127.0.9.1", "127.0.9.1", 1},
		{"", "127.0.9.1", 1},
	} {
		var list hostList
		r.into(&list, "GET", "/api/hosts?"+c.query, "")
		if list.Matched != c.matched || len(list.Hosts) != c.matched ||
			c.matched > 0 && list.Hosts[0].Host != c.first {
			t.Errorf("%s: %+v; want %q of %d", c.query, list, c.first, c.matched)
			continue
		}
		if c.first == "127.0.1.1" {
			row := list.Hosts[0]
			if row.Waiting != 7 || row.Held != 0 || !strings.Contains(row.Budget, "is over its budget: round 2") {
				t.Errorf("%s: %+v; want 7 that wait, over their budget", c.query, row)
			}
		}
	}
	var list hostList
	r.into(&list, "GET", "/api/hosts?text=127.0.8.1", "")
	if len(list.Hosts) != 1 || list.Hosts[0].Waiting != 1 || list.Hosts[0].Budget != "" {
		t.Errorf("a host within its budget: %+v", list)
	}
}

// An IPv6 address in brackets, as in a URL, is found as without them.
func TestHostsInBrackets(t *testing.T) {
	r := newBudgetRig(t, "[2001:db8::1]")
	for text, matched := range map[string]int{
		"[2001:db8::1]": 1, "2001:db8::1": 1, "[2001:DB8::1]": 1, "[2001:db8:": 0, "[2001:db8::2]": 0, "[127.0.9": 1,
		"[": 0, "]": 0, "[]": 0,
	} {
		var list hostList
		r.into(&list, "GET", "/api/hosts?text="+text, "")
		if list.Matched != matched || len(list.Hosts) != matched {
			t.Errorf("%s: %+v; want %d", text, list, matched)
		}
	}
}

// The dashboard shows that a host waits in the index for its domain's budget.
func TestDashboardShowsBudgets(t *testing.T) {
	r := newBudgetRig(t, "127.0.1.1")
	b := newBrowser(t, r.base)
	b.open("/")
	b.fill("#host-text", "127.0.1.1")
	b.until("document.querySelector('#t-hosts tbody tr')?.textContent.startsWith('127.0.1.1')")
	b.shows("#t-hosts tbody tr", "over its budget")
	b.until("document.querySelector('#t-hosts tbody tr td:last-child').title.includes('round 2, again after about')")
	b.click("#t-hosts tbody button")
	b.shows("#explained", "is over its budget: round 2, again after about")
	b.accessible("a host over its budget")
}
