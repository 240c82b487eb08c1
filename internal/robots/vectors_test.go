package robots

import (
	"encoding/json"
	"net/url"
	"os"
	"testing"
	"time"
)

// vector is one case of testdata/vectors.json: the meaning of a file, or of a status, for a URL.
type vector struct {
	Name       string
	RFC        string
	Level      string
	Robots     string
	Agent      string
	URL        string
	Allowed    bool
	CrawlDelay *float64 `json:"crawl_delay_s"`
	Status     *int
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 84 {
		t.Fatalf("%d vectors, want 84 at least", len(list))
	}
	return list
}

func (v vector) status() int {
	if v.Status == nil {
		return 200
	}
	return *v.Status
}

// targetOf returns the path and query of a URL.
func targetOf(t testing.TB, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	target := u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		target += "?" + u.RawQuery
	}
	return target
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			rules := ForStatus(v.status(), []byte(v.Robots), v.Agent)
			if got := rules.Allowed([]byte(targetOf(t, v.URL))); got != v.Allowed {
				t.Errorf("RFC 9309 %s (%s): %q for %q: %s allowed = %t, want %t", v.RFC, v.Level, v.Robots,
					v.Agent, v.URL, got, v.Allowed)
			}
			v.checkDelay(t, rules)
			v.checkPolicy(t)
		})
	}
}

func (v vector) checkDelay(t *testing.T, rules *Rules) {
	t.Helper()
	if v.CrawlDelay == nil {
		return
	}
	want := time.Duration(*v.CrawlDelay * float64(time.Second))
	if got := rules.CrawlDelay(); got != want {
		t.Errorf("%q: crawl delay %v, want %v", v.Robots, got, want)
	}
}

// checkPolicy reaches the same verdict by the daemon's path.
func (v vector) checkPolicy(t *testing.T) {
	t.Helper()
	policy := Policy{Agent: v.Agent, TTL: time.Hour, ErrorTTL: time.Minute, MaxCrawlDelay: time.Hour}
	entry := policy.Settle(Entry{}, 0, Response{Status: v.status(), Body: []byte(v.Robots)})
	if got := entry.Rules().Allowed([]byte(targetOf(t, v.URL))); got != v.Allowed {
		t.Errorf("settled: %s allowed = %t, want %t", v.URL, got, v.Allowed)
	}
}

// The model must pass the vectors before it can judge the code.
func TestModelAgainstVectors(t *testing.T) {
	for _, v := range vectors(t) {
		if v.Status != nil {
			continue
		}
		if got := newModel(v.Robots, v.Agent).allowed(targetOf(t, v.URL)); got != v.Allowed {
			t.Errorf("%s: model says %t, want %t", v.Name, got, v.Allowed)
		}
	}
}
