package urlserver

import (
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/urlserver/explain"
)

// why returns a node's explanation of a host.
func (w *world) why(nd *node, host string) string {
	w.t.Helper()
	x, ok := nd.e.Explain([]byte(host))
	if !ok {
		w.t.Fatalf("%s does not know %s", nd.r.Holder, host)
	}
	nd.r.explain(w.t.Context(), &x)
	return explain.Text(x.Reasons)
}

// TestExplainNamesTheHolder asks a daemon about a host whose group another daemon holds: the group
// of an address, which two daemons may resolve differently, of an alias, or of a rule. The other
// daemon is frozen, so that its lease ends.
func TestExplainNamesTheHolder(t *testing.T) {
	rule := configs.HostRule{Hosts: []string{"*.example"}, Group: "site"}
	for _, c := range []struct {
		name  string
		alias []string
		rules []configs.HostRule
		other string // the host that the first daemon works on
	}{
		{name: "name", other: "a.example"},
		{name: "alias", alias: []string{"a.example", "b.example"}, other: "b.example"},
		{name: "group of a rule", rules: []configs.HostRule{rule}, other: "b.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1, 2)
			if c.alias != nil {
				if err := w.store.SetAlias(t.Context(), "site", c.alias); err != nil {
					t.Fatal(err)
				}
			}
			first, second := w.nodes[0], w.nodes[1]
			for _, nd := range w.nodes {
				w.ruled(nd, c.rules...)
			}
			w.give(first, []string{"1", "2", "3"},
				[]string{"http://" + c.other + "/1", "http://" + c.other + "/2", "http://" + c.other + "/3"})
			w.run(time.Second)
			w.give(second, []string{"4", "5", "6"}, []string{"http://c.example/4", "http://a.example/5",
				"http://a.example/6"})
			first.frozen = time.Hour
			w.run(2 * time.Second)
			if got := w.why(first, c.other); strings.Contains(got, "has it") || strings.Contains(got, "reserv") {
				t.Errorf("who has it says: %s", got)
			}
			got, want := w.why(second, "a.example"), "; 0 has it until 2023-11-14T22:13:"
			if !strings.HasPrefix(got, "its group ") || !strings.Contains(got, " is not reserved: ") ||
				!strings.Contains(got, want) {
				t.Errorf("the other one says: %s; want who has it: %s", got, want)
			}
			w.run(2 * worldLease)
			if got := w.why(second, "a.example"); strings.Contains(got, "has it") {
				t.Errorf("after the lease: %s", got)
			}
		})
	}
}
