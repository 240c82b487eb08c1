package urlserver_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urlserver/configs"
)

var (
	variable     = regexp.MustCompile(`\bURLSERVER_[A-Z_]+\b`)
	variableLine = regexp.MustCompile(`(?m)^ +(URLSERVER_[A-Z_]+): (.*)$`)
	reference    = regexp.MustCompile(`\$\{([A-Z_]+)[^}]*\}`)
)

// TestDeployedVariables looks whether each variable that compose.yaml and the Helm chart set names a
// setting.
func TestDeployedVariables(t *testing.T) {
	files, err := filepath.Glob("deploy/helm/urlserver/templates/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("templates %q, %v", files, err)
	}
	// the image's name for compose, and one that Kubernetes makes, in a comment
	others := []string{"URLSERVER_IMAGE", "URLSERVER_SPIDER_PORT", "URLSERVER_"}
	found := map[string]bool{}
	for _, file := range append(files, "compose.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := variable.FindAllString(string(text), -1)
		for _, unknown := range configs.UnknownVariables(names, others...) {
			t.Errorf("%s: %s", file, unknown)
		}
		for _, name := range names {
			found[name] = true
		}
	}
	if len(found) < 10 {
		t.Errorf("found %q; there are more", slices.Sorted(maps.Keys(found)))
	}
}

// TestComposeSettings reads the settings of compose.yaml's daemon as the image does.
func TestComposeSettings(t *testing.T) {
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var environ []string
	for _, m := range variableLine.FindAllStringSubmatch(string(text), -1) {
		value := reference.ReplaceAllString(m[2], "0123456789abcdef")
		environ = append(environ, m[1]+"="+strings.TrimSpace(value))
	}
	cfg, err := configs.LoadWith("", configs.Environ(environ))
	if err != nil || cfg.DocIndex.Kind != configs.KindRedis || cfg.Reservation.Kind != configs.ReservationRedis ||
		cfg.HTTP.Listen != "0.0.0.0:8080" || cfg.Spider.Token == "" {
		t.Errorf("%q: %v, %v", environ, err, cfg)
	}
	for _, file := range []string{"configs/monitoring/urlserver.rules.yml", "configs/monitoring/grafana.json"} {
		if _, err := os.Stat(file); err != nil || !strings.Contains(string(text), "./"+file+":") {
			t.Errorf("compose.yaml mounts no %s (%v)", file, err)
		}
	}
}

// TestTimeToStop compares how long systemd, Compose and Kubernetes wait for the daemon to stop: what is in
// flight, and then outcomes, get 10 s each.
func TestTimeToStop(t *testing.T) {
	for file, wait := range map[string]string{
		"packaging/urlserver.service":                  `(?m)^TimeoutStopSec=(\d+)s$`,
		"compose.yaml":                                 `(?m)^  urlserver:\n(?:    .*\n)*    stop_grace_period: (\d+)s$`,
		"deploy/helm/urlserver/templates/daemons.yaml": `(?m)^      terminationGracePeriodSeconds: (\d+)$`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(wait).FindStringSubmatch(string(text)); found == nil || found[1] != "40" {
			t.Errorf("%s: the daemon has %q to stop; want 40 s", file, found)
		}
	}
}
