package urlserver_test

import (
	"bufio"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference anew")

// TestReference compares the pages of docs/reference that are made from the settings, the commands
// and the metrics with what those say now.
//
//	go test . -run TestReference -update   # writes them
func TestReference(t *testing.T) {
	for file, made := range map[string]string{
		"settings.md": settingsPage(t),
		"commands.md": commandsPage(t),
		"metrics.md":  metricsPage(t),
	} {
		path := filepath.Join("docs", "reference", file)
		if *update {
			if err := os.WriteFile(path, []byte(made), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		stored, err := os.ReadFile(path)
		if err != nil || string(stored) != made {
			t.Errorf("%s is not what the program says (%v); write it anew: go test . -run TestReference "+
				"-update", path, err)
		}
	}
}

var (
	section = regexp.MustCompile(`^\[+([a-z_.]+)\]+$`)
	setting = regexp.MustCompile(`^([A-Za-z_]+) = (.*)$`)
	allowed = regexp.MustCompile(`^Allowed: (.*)\. \[(live|restart)\]$`)
)

// settingsPage is made from the commented sample.
func settingsPage(t *testing.T) string {
	t.Helper()
	f, err := os.Open("configs/urlserver.toml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var page strings.Builder
	page.WriteString(
		"# Settings\n\nMade from [configs/urlserver.toml](../../configs/urlserver.toml). Keys " +
			"are case-insensitive. " +
			"A running daemon applies *live* settings\nwhen it reads its file again (SIGHUP, `urlserver " +
			"reload`); the others wait for a restart.\n")
	var text []string // comment lines since the last blank line or key
	prefix, n := "", 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		comment, is := strings.CutPrefix(line, "#")
		switch {
		case is:
			text = append(text, strings.TrimSpace(comment))
		case section.MatchString(line):
			name := section.FindStringSubmatch(line)[1]
			prefix = name + "."
			fmt.Fprintf(&page, "\n## [%s]\n\n%s\n", name, strings.Join(text, "\n"))
			text = nil
		case setting.MatchString(line):
			m := setting.FindStringSubmatch(line)
			n++
			what, when := "", ""
			if a := allowed.FindStringSubmatch(strings.Join(text[slices.IndexFunc(text,
				isAllowed):], " ")); a != nil {
				what, when = a[1], a[2]
			}
			fmt.Fprintf(&page, "\n### `%s%s`\n\n%s\n\nDefault: `%s`. Allowed: %s. *%s*\n", prefix, m[1],
				strings.Join(text[:slices.IndexFunc(text, isAllowed)], "\n"), m[2], what, when)
			text = nil
		case line == "":
			text = nil
		}
	}
	if err := lines.Err(); err != nil || n < 50 {
		t.Fatalf("the sample has %d settings, error %v", n, err)
	}
	return page.String()
}

func isAllowed(line string) bool { return strings.HasPrefix(line, "Allowed: ") }

// commandsPage is made from the help of the commands.
func commandsPage(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	page.WriteString("# Commands\n\nMade from `urlserver help COMMAND` and the like. Results go to " +
		"standard output, everything else to standard error.\n" +
		"Exit status: 0 done, 1 failed, 2 wrong usage.\n")
	for _, program := range []string{"urlserver", "hostreservation", "spider"} {
		helpOf(t, &page, program)
	}
	return page.String()
}

var subcommand = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)

// helpOf writes the help of a command, and of those below it.
func helpOf(t *testing.T, page *strings.Builder, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(programs(t), args[0]),
		append(args[1:], "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	fmt.Fprintf(page, "\n## %s\n\n```\n%s```\n", strings.Join(args, " "), out)
	_, list, ok := strings.Cut(string(out), "Available Commands:\n")
	if !ok {
		return
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for _, m := range subcommand.FindAllStringSubmatch(list, -1) {
		if m[1] != "help" {
			helpOf(t, page, append(slices.Clone(args), m[1])...)
		}
	}
}

// metricsPage is made from what a daemon tells Prometheus.
func metricsPage(t *testing.T) string {
	t.Helper()
	d := startDaemon(t, fmt.Sprintf("log.crawl = %q\n", filepath.Join(t.TempDir(), "crawl.log"))+
		"[frontier]\nlisten = \"127.0.0.1:0\"\n[resolver]\nservers = [\"127.0.0.1:1\"]\n")
	resp, err := http.Get("http://" + d.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var page strings.Builder
	page.WriteString("# Metrics\n\nMade from `GET /metrics` of a daemon. Those of the Go runtime and " +
		"the process are left out.\n\n| metric | type | what |\n| --- | --- | --- |\n")
	help, n := "", 0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 4)
		if len(fields) < 4 || !strings.HasPrefix(fields[2], "urlserver_") &&
			!strings.HasPrefix(fields[2], "frontier_") {
			continue
		}
		switch fields[1] {
		case "HELP":
			help = fields[3]
		case "TYPE":
			n++
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", fields[2], fields[3], help)
		}
	}
	if err := lines.Err(); err != nil || n < 50 {
		t.Fatalf("the daemon has %d metrics, error %v", n, err)
	}
	return page.String()
}
