package explain

import (
	"testing"
	"time"

	"urlserver/docindex"
)

func TestEveryKindHasWords(t *testing.T) {
	for kind := None + 1; kind < kinds; kind++ {
		if words[kind] == "" {
			t.Errorf("kind %d has no words", kind)
		}
	}
	for rule := docindex.NoWait + 1; rule <= docindex.WaitOverBudget; rule++ {
		if Wait(&docindex.Wait{Rule: rule}, "") == "" {
			t.Errorf("rule %d of the doc index has no words", rule)
		}
	}
}

// TestText fills in values, also those that look like placeholders.
func TestText(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC)
	got := Text([]Reason{
		{Kind: NameFails, By: "lookup {until} {0}", Until: at.Add(time.Hour),
			Args: []any{at, at.Add(time.Minute)}},
		{},
		{Kind: TakesTurns, Args: []any{2, "10.0.0.1"}},
	})
	want := "its name fails to resolve since 2026-01-02T03:04:06Z: lookup {until} {0}; " +
		"it is looked up again at 2026-01-02T03:05:06Z; " +
		"if it still fails at 2026-01-02T04:04:06Z its documents end as dns (resolver.give_up); " +
		"due now; takes turns with 2 other hosts on 10.0.0.1"
	if got != want {
		t.Errorf("got:  %s\nwant: %s", got, want)
	}
}

func TestTurns(t *testing.T) {
	status := func(scheduled uint64, rule docindex.WaitRule) *docindex.HostStatus {
		return &docindex.HostStatus{Counts: docindex.Counts{Scheduled: scheduled}, Truncated: scheduled > 1000,
			AtSlots: docindex.Availability{Wait: docindex.Wait{Rule: rule, Name: "a.test", Count: 8}}}
	}
	for _, c := range []struct {
		name   string
		status *docindex.HostStatus
		want   string
	}{
		{"nothing waits", status(0, docindex.WaitOverBudget), ""},
		{"it waits for something else", status(5, docindex.WaitSlotGap), ""},
		{"enough of its domain", status(5, docindex.WaitDomain),
			"5 more wait in the doc index; 8 documents of its domain a.test are at host slots, enough for now"},
		{"of many queues", status(1001, docindex.WaitShapes), "at least 1001 more wait in the doc index; its links " +
			"take turns by the shapes of their URLs, so 8 of its documents at host slots are enough for now"},
	} {
		if got := Text(Turns(c.status, "")); got != c.want {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
}

func TestAvailable(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name string
		a    docindex.Availability
		rule string
		want string
	}{
		{"open", docindex.Availability{Open: true}, "", ""},
		{"no queue", docindex.Availability{}, "", ""},
		{"event", docindex.Availability{Wait: docindex.Wait{Rule: docindex.WaitAtSlots, Count: 3}}, "",
			"3 of its documents are at host slots, for line spiders"},
		{"a moment", docindex.Availability{NotBefore: at, Wait: docindex.Wait{Rule: docindex.WaitHostDelay,
			Gap: time.Minute}}, "",
			"not before 2026-01-02T03:04:05Z: the operator's delay of 1m0s"},
		{"a rule that is not known",
			docindex.Availability{Wait: docindex.Wait{Rule: docindex.WaitRuleBlocks}}, "",
			"blocked by a rule"},
		{"a rule", docindex.Availability{Wait: docindex.Wait{Rule: docindex.WaitRuleBlocks}},
			"[[rules]] 1 (*)",
			"blocked by [[rules]] 1 (*)"},
		{"the pace of a site", docindex.Availability{NotBefore: at, Wait: docindex.Wait{
			Rule: docindex.WaitAddress, Gap: time.Second, Name: "a.test", Count: 1}}, "",
			"not before 2026-01-02T03:04:05Z: the pace of the site a.test, one request in 1s"},
		{"the pace of an address", docindex.Availability{NotBefore: at, Wait: docindex.Wait{
			Rule: docindex.WaitAddress, Gap: time.Second, Level: docindex.AddressWait, Name: "192.0.2.1",
			Count: 7}}, "",
			"not before 2026-01-02T03:04:05Z: the pace of the address 192.0.2.1, one request in 1s " +
				"to all its sites; 7 queues take turns there"},
		{"an address that backs off", docindex.Availability{NotBefore: at, Wait: docindex.Wait{
			Rule: docindex.WaitAddress, Gap: 4 * time.Second, Level: docindex.AddressWait, Name: "192.0.2.1",
			Sites: "a.test, b.test"}}, "",
			"not before 2026-01-02T03:04:05Z: the address 192.0.2.1 backs off, gap 4s, " +
				"since several of its sites answered 429 or 503: a.test, b.test"},
		{"a network in use", docindex.Availability{Wait: docindex.Wait{
			Rule: docindex.WaitAddressInUse, Level: docindex.NetworkWait, Name: "net"}}, "",
			"clients of the URL Frontier have URLs of as many queues at the shared network net " +
				"as may be open there"},
		{"over its budget", docindex.Availability{NotBefore: at, Wait: docindex.Wait{
			Rule: docindex.WaitOverBudget, Crawl: "books", Name: "a.test", Round: 3, Count: 4000}}, "",
			"its domain a.test in crawl \"books\" is over its budget: round 3, again after about 4000 pages " +
				"of other domains, or when those have nothing due (crawl.budget); " +
				"at the pace of late that is about 2026-01-02T03:04:05Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Available(&c.a, c.rule).String(); got != c.want {
				t.Errorf("%q; want %q", got, c.want)
			}
		})
	}
}
