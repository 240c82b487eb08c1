package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	reservations "urlserver/reservation/memory"
)

const (
	alertRules = "../../configs/monitoring/urlserver.rules.yml"
	dashboard  = "../../configs/monitoring/grafana.json"
)

// series returns the metrics of a running daemon, as in /metrics: "name" and, for each label,
// `name{label="value"}`.
func series(t *testing.T) map[string]bool {
	t.Helper()
	d := startDaemon(t, settings(t, `frontier.listen = "127.0.0.1:0"
reservation.kind = "grpc"
reservation.addrs = ["127.0.0.1:9"]
monitor.brokers = ["127.0.0.1:9"]`))
	dialSpider(t, d.spiders)
	d.log.until("spider connected")
	_, text := d.ask("GET", "/metrics", "")
	text += serviceMetrics(t)
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, labels, _ := strings.Cut(line[:strings.LastIndex(line, " ")], "{")
		found[name] = true
		for _, label := range regexp.MustCompile(`\w+="[^"]*"`).FindAllString(labels, -1) {
			found[name+"{"+label+"}"] = true
		}
	}
	return found
}

// serviceMetrics returns the metrics of a host reservation service after a call.
func serviceMetrics(t *testing.T) string {
	t.Helper()
	server := grpcserver.New(grpcserver.Config{Store: reservations.New(reservations.Config{})})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	defer func() { cancel(); <-served }()
	client, err := grpcclient.New(grpcclient.Config{Addrs: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.AddHost(t.Context(), "a.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(server)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer,
		httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

// The dashboard and the alerts use only metrics that the daemon has.
func TestMonitoredMetricsExist(t *testing.T) {
	told := series(t)
	names := regexp.MustCompile(`\b((?:urlserver|hostreservation|frontier|process|go)_\w+)(\{[^}]*\})?`)
	labels := regexp.MustCompile(`(\w+)(=~|=)"([^"$]+)"`)
	for file, least := range map[string]int{alertRules: 20, dashboard: 55} {
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
				if l[1] == "job" || l[1] == "instance" { // labels of Prometheus itself
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

// panel is a panel of Grafana.
type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr string }
}

// Grafana can load the dashboard: panels within 24 columns, none overlapping, each with a query.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title, UID string
		Panels     []struct {
			panel
			Panels []panel // of a collapsed row
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.Title == "" || d.UID == "" {
		t.Fatalf("%q %q: %v", d.Title, d.UID, err)
	}
	ids := map[int]bool{}
	var top []panel
	for _, p := range d.Panels {
		top = append(top, p.panel)
		laidOut(t, p.Panels, ids)
	}
	laidOut(t, top, ids)
}

// laidOut checks panels that are visible together.
func laidOut(t *testing.T, panels []panel, ids map[int]bool) {
	t.Helper()
	taken := map[[2]int]string{}
	for _, p := range panels {
		if p.Type != "row" && len(p.Targets) == 0 || ids[p.ID] || p.Title == "" || p.GridPos.W < 1 ||
			p.GridPos.X+p.GridPos.W > 24 {
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

// Each alert has a test that triggers it.
func TestAlertsAreTried(t *testing.T) {
	rules, err := os.ReadFile(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	tries, err := os.ReadFile(strings.Replace(alertRules, ".yml", ".test.yml", 1))
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	for _, m := range alerts {
		given := `alertname="` + m[1] + `", alertstate="firing"})', exp_samples: [{labels: '{}', value: 1}]`
		if !strings.Contains(string(tries), given) {
			t.Errorf("no try has alert %s given", m[1])
		}
	}
	if len(alerts) < 20 {
		t.Errorf("there are %d alerts; at least 20 are wanted", len(alerts))
	}
}

// Prometheus' own tool checks the rules, tests them, and parses each query of the dashboard.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath(cmp.Or(os.Getenv("PROMTOOL"), "promtool"))
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus), nor named by PROMTOOL: alert rules are not tried")
	}
	promtool := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil ||
			bytes.Contains(out, []byte("FAILED")) {
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
	if len(asked) < 50 {
		t.Errorf("the dashboard asks %d questions; at least 50 are wanted", len(asked))
	}
	out, err := exec.CommandContext(t.Context(), tool, "check", "rules", "--lint=none",
		write(t, "dashboard.yml", rules.String())).CombinedOutput()
	if err != nil {
		t.Errorf("questions of the dashboard: %v\n%s", err, out)
	}
}
