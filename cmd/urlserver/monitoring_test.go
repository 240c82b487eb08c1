package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	alertRules = "../../configs/monitoring/urlserver.rules.yml"
	dashboard  = "../../configs/monitoring/grafana.json"
)

// series are those of a daemon at work, as /metrics has them: "name" and, where it has labels,
// `name{label="value"}` with one of them each.
func series(t *testing.T) map[string]bool {
	t.Helper()
	d := startDaemon(t, settings(t, `frontier.listen = "127.0.0.1:0"`))
	dialSpider(t, d.spiders)
	d.log.until("spider connected")
	_, text := d.ask("GET", "/metrics", "")
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		name, labels, _ := strings.Cut(line[:strings.LastIndex(line, " ")], "{")
		found[name] = true
		for _, label := range regexp.MustCompile(`\w+="[^"]*"`).FindAllString(labels, -1) {
			found[name+"{"+label+"}"] = true
		}
	}
	return found
}

// What dashboard and alerts ask for is what the daemon tells.
func TestMonitoredMetricsExist(t *testing.T) {
	told := series(t)
	names := regexp.MustCompile(`\b((?:urlserver|frontier|process|go)_\w+)(\{[^}]*\})?`)
	labels := regexp.MustCompile(`(\w+)(=~|=)"([^"$]+)"`)
	for file, least := range map[string]int{alertRules: 14, dashboard: 40} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.ReplaceAll(string(text), `\"`, `"`)
		seen := map[string]bool{}
		for _, m := range names.FindAllStringSubmatch(plain, -1) {
			seen[m[1]] = true
			if !told[m[1]] {
				t.Errorf("%s: the daemon has no metric %s", file, m[1])
			}
			for _, l := range labels.FindAllStringSubmatch(m[2], -1) {
				if l[1] == "job" || l[1] == "instance" { // Prometheus' own
					continue
				}
				for value := range strings.SplitSeq(l[3], "|") {
					if one := m[1] + "{" + l[1] + `="` + value + `"}`; !told[one] {
						t.Errorf("%s: the daemon has no series %s", file, one)
					}
				}
			}
		}
		if len(seen) < least {
			t.Errorf("%s names %d metrics, %v; at least %d are wanted", file, len(seen), seen, least)
		}
	}
}

// The dashboard is one that Grafana can load: panels within 24 columns, none over another, each with a question.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title, UID string
		Panels     []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.Title == "" || d.UID == "" {
		t.Fatalf("%q %q: %v", d.Title, d.UID, err)
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 || ids[p.ID] || p.Title == "" || p.GridPos.W < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %+v asks nothing, is there twice, or is off the grid", p)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// Prometheus' own tool checks the rules, tries them, and reads each question of the dashboard.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath(cmp.Or(os.Getenv("PROMTOOL"), "promtool"))
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus), nor named by PROMTOOL: alert rules are not tried")
	}
	promtool := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil || bytes.Contains(out, []byte("FAILED")) {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	promtool("check", "rules", alertRules)
	promtool("test", "rules", strings.Replace(alertRules, ".yml", ".test.yml", 1))

	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(string(text), -1)
	rules := strings.Builder{}
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, m := range asked {
		expr := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(m[1])
		rules.WriteString("  - {record: asked, expr: " + expr + "}\n")
	}
	if len(asked) < 30 {
		t.Errorf("the dashboard asks %d questions; at least 30 are wanted", len(asked))
	}
	out, err := exec.CommandContext(t.Context(), tool, "check", "rules", "--lint=none", write(t, "dashboard.yml", rules.String())).CombinedOutput()
	if err != nil {
		t.Errorf("questions of the dashboard: %v\n%s", err, out)
	}
}
