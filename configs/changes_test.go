package configs

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// isLive says what a running daemon takes over, in words of its own.
func isLive(key string) bool {
	table, _, _ := strings.Cut(key, ".")
	switch table {
	case "leftover", "crawl", "politeness", "vhosts", "robots":
		return true
	}
	return slices.Contains([]string{
		"Spider_Host", "Spider_Port", "Timeout_Spider_Status", "Queue_Len", "Req_Host_Concurrent",
		"Req_Host_Per_Sec", "rules",
		"spider.dial", "spider.max_in_flight", "spider.max_attempts", "spider.max_fetch",
		"docindex.batch", "docindex.retry", "docindex.max_retry", "docindex.quarantine",
		"docindex.outcomes_max",
		"resolver.give_up", "frontier.addresses",
		"trace.sample", "log.level",
	}, key)
}

// allAltered differs from Default in every field.
func allAltered(t *testing.T) Config {
	t.Helper()
	c := Default()
	fields(reflect.ValueOf(&c).Elem(), "", func(_ string, field reflect.Value) { alter(t, field) })
	return c
}

func TestChanges(t *testing.T) {
	old, altered := Default(), allAltered(t)
	live, restart := Changes(old, altered)
	if len(live)+len(restart) != len(settings()) {
		t.Errorf("all altered: %d live and %d others; want %d", len(live), len(restart), len(settings()))
	}
	for _, key := range live {
		if !isLive(key) {
			t.Errorf("%s counts as live", key)
		}
	}
	for _, key := range restart {
		if isLive(key) {
			t.Errorf("%s counts as needing a restart", key)
		}
	}
	if live, restart := Changes(altered, altered); live != nil || restart != nil {
		t.Errorf("Changes of the same = %q, %q; want none", live, restart)
	}
	empty := old
	empty.Spider.Dial = []string{}
	if live, _ := Changes(old, empty); live != nil {
		t.Errorf("Changes from no list to an empty one = %q; want none", live)
	}
}

func TestApply(t *testing.T) {
	old, altered := Default(), allAltered(t)
	applied := Apply(old, altered)
	if live, _ := Changes(applied, altered); live != nil {
		t.Errorf("Apply left %q as they were", live)
	}
	if _, restart := Changes(old, applied); restart != nil {
		t.Errorf("Apply took over %q, which need a restart", restart)
	}
	if !reflect.DeepEqual(old, Default()) {
		t.Error("Apply changed its argument")
	}
}

// Apply of two valid configurations is valid, since no rule spans both sorts.
func TestRulesDoNotSpanLiveAndRestart(t *testing.T) {
	for _, rule := range rules() {
		for _, key := range rule.keys {
			if !slices.ContainsFunc(settings(), func(s setting) bool { return s.name == key }) {
				t.Errorf("a rule about %s, which is no setting", key)
			}
			if isLive(key) != isLive(rule.keys[0]) {
				t.Errorf("one rule for %s and %s", rule.keys[0], key)
			}
		}
	}
}
