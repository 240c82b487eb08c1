package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
)

// TestWhatCameBack has documents end in each way, and finds that in the status, the metrics, the
// host, and the list of hosts.
func TestWhatCameBack(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) {
		c.Rules = []configs.HostRule{{Hosts: []string{"127.0.0.9"}, Block: true}}
	}})
	sp := r.spider()
	r.put("http://127.0.0.9/blocked")
	statuses := []string{"200", "204", "301", "404", "500", "0", ""}
	for i, status := range statuses {
		r.put(fmt.Sprintf("http://127.0.0.1/%d", i))
		if _, err := fmt.Fprintf(sp.conn, "%s\n", strings.TrimSpace(sp.next()+" DONE "+status)); err != nil {
			t.Fatal(err)
		}
	}
	r.put("http://127.0.0.2/")
	sp.done(sp.next())
	var s status
	for s.Done < uint64(len(statuses)+1) { // lines of spiders and requests come on different connections
		r.into(&s, "GET", "/api/status", "")
	}
	for class, want := range map[string]uint64{"2xx": 3, "3xx": 1, "4xx": 1, "5xx": 1, "none": 2, "dns": 0} {
		if s.Statuses[class] != want {
			t.Errorf("status: %d are %s; want %d", s.Statuses[class], class, want)
		}
	}
	metrics := r.ask("GET", "/metrics", "").body
	for _, want := range []string{`urlserver_outcomes_total{class="2xx",outcome="done"} 3`,
		`urlserver_outcomes_total{class="none",outcome="done"} 2`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no metric %s", want)
		}
	}
	for end := time.Now().Add(testTimeout); s.Index.IndexTotals == nil || s.Index.Completed != len(statuses)+1; {
		if r.into(&s, "GET", "/api/status", ""); time.Now().After(end) {
			t.Fatalf("totals of the index: %+v", s.Index.IndexTotals)
		}
	}
	if s.Index.Scheduled+s.Index.InTransit != 1 {
		t.Errorf("totals of the index: %+v; want one that is blocked", s.Index.IndexTotals)
	}
	text := r.ask("GET", "/api/hosts/127.0.0.1", "").body
	var h host
	r.into(&h, "GET", "/api/hosts/127.0.0.1", "")
	f := h.Fetched
	if f.Class2xx != 2 || f.Class3xx != 1 || f.Class4xx != 1 || f.Class5xx != 1 || f.None != 2 ||
		f.LastStatus == nil || *f.LastStatus != 0 ||
		f.LastError != "no answer" || f.ErrorAt == nil || f.Mean == nil || *f.Mean <= 0 {
		t.Errorf("host: %s", text)
	}
	wantKeys(t, text, "fetched.2xx", "fetched.3xx", "fetched.4xx", "fetched.5xx", "fetched.none",
		"fetched.robots", "fetched.dns", "fetched.timeout",
		"fetched.last_status", "fetched.last_error", "fetched.mean_fetch_s", "last_status", "last_error",
		"mean_fetch_s", "blocked_by")
}

func TestHostList(t *testing.T) {
	r := newRig(t, setup{config: func(c *configs.Config) {
		c.ReqHostPerSec = 0.001
		c.Rules = []configs.HostRule{{Hosts: []string{"127.0.0.9"}, Block: true}}
	}})
	r.ask("POST", "/api/hosts/127.0.0.3/block", `{"until":"2100-01-01T00:00:00Z"}`)
	var urls []string
	for host := range 5 {
		for n := range 1 + host*100 {
			urls = append(urls, fmt.Sprintf("http://127.0.0.%d/%d", host+1, n))
		}
	}
	r.put(append(urls, "http://127.0.0.9/")...)
	names := func(query string) (names []string, list hostList) {
		t.Helper()
		r.into(&list, "GET", "/api/hosts"+query, "")
		for _, h := range list.Hosts {
			names = append(names, h.Host)
		}
		return names, list
	}
	list := hostList{}
	for end := time.Now().Add(testTimeout); list.All < 6; time.Sleep(10 * time.Millisecond) {
		if _, list = names(fmt.Sprintf("?text=.&limit=%d", 1+time.Now().UnixNano()%maxHosts)); time.Now().After(end) {
			t.Fatalf("hosts: %+v", list)
		}
	}
	got, list := names("")
	want := []string{"127.0.0.5", "127.0.0.4", "127.0.0.3", "127.0.0.2"}
	if !slices.Equal(got[:4], want) || list.Matched != 6 || list.All != 6 || list.Hosts[0].Waiting != 401 {
		t.Errorf("most waiting first: %v; %+v", got, list)
	}
	if got, list = names("?sort=host&text=127.0.0.&limit=2"); !slices.Equal(got,
		[]string{"127.0.0.1", "127.0.0.2"}) || list.Matched != 6 {
		t.Errorf("by name: %v; %+v", got, list)
	}
	if got, _ = names("?sort=host&order=last&limit=1"); !slices.Equal(got, []string{"127.0.0.9"}) {
		t.Errorf("by name, the other way round: %v", got)
	}
	got, list = names("?only=blocked&sort=host")
	if !slices.Equal(got, []string{"127.0.0.3", "127.0.0.9"}) || *list.Hosts[0].BlockedBy != "operator" ||
		*list.Hosts[1].BlockedBy != "rule" || list.Hosts[1].Rule == "" {
		t.Errorf("blocked: %v; %+v", got, list)
	}
	for query, text := range map[string]string{
		"?sort=age": "sort is", "?order=up": "order is", "?only=good": "only is", "?limit=0": "limit is",
		"?limit=101":                        "limit is",
		"?text=" + strings.Repeat("a", 256): "text has", "?%zz": "query",
	} {
		r.ask("GET", "/api/hosts"+query, "").wantError(t, 400, text)
	}
	wantKeys(t, r.ask("GET", "/api/hosts", "").body, "hosts[].host", "hosts[].waiting", "hosts[].done",
		"hosts[].held", "hosts[].in_flight",
		"hosts[].fetched.2xx", "hosts[].fetched.last_error", "hosts[].fetched.mean_fetch_s",
		"hosts[].next_send", "hosts[].blocked_until",
		"hosts[].blocked_by", "matched", "all")
}
