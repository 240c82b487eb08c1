package robots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// corpus calls visit with each file in the folder that ROBOTS_CORPUS names. Each file is a
// robots.txt, as in tests/test_data in the source package of PyPI's protego 0.7.0.
func corpus(t *testing.T, visit func(name string, body []byte)) {
	t.Helper()
	dir := os.Getenv("ROBOTS_CORPUS")
	if dir == "" {
		t.Skip("ROBOTS_CORPUS names no folder of robots.txt files")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("%s is empty", dir)
	}
	for _, file := range files {
		body, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		visit(file.Name(), body)
	}
}

// Ten times the time of a slow machine, so only code that is not linear fails.
const (
	perFile  = 20 * time.Millisecond
	perOctet = 2 * time.Microsecond
)

func TestCorpusTime(t *testing.T) {
	files, size := 0, 0
	var total, worst time.Duration
	var worstName string
	corpus(t, func(name string, body []byte) {
		took := stopwatch(func() { Parse(body, "urlserver") })
		if bound := perFile + time.Duration(len(body))*perOctet; took > bound {
			t.Errorf("%s: %v for %d octets, want %v at most", name, took, len(body), bound)
		}
		if took > worst {
			worst, worstName = took, name
		}
		files, size, total = files+1, size+len(body), total+took
	})
	t.Logf("%d files, %d octets in %v; the slowest is %s with %v", files, size, total, worstName, worst)
}

func TestCorpusAgainstModel(t *testing.T) {
	verdicts, forbidden := 0, 0
	corpus(t, func(name string, body []byte) {
		rules := Parse(body, "Googlebot")
		slow := newModel(string(asUTF8(body)), "Googlebot")
		for _, target := range corpusTargets(rules) {
			got := rules.Allowed([]byte(target))
			if want := slow.allowed(target); got != want {
				t.Errorf("%s: %q allowed = %t, want %t", name, target, got, want)
			}
			verdicts++
			if !got {
				forbidden++
			}
		}
	})
	if forbidden == 0 || forbidden == verdicts {
		t.Errorf("%d of %d verdicts forbid: nothing was compared", forbidden, verdicts)
	}
	t.Logf("%d verdicts, %d of them forbid", verdicts, forbidden)
}

// corpusTargets returns a few targets that any site has, and some that match rules of this file:
// all rules of a short file, a sample of a long one's, since the model is slow.
func corpusTargets(rules *Rules) []string {
	targets := []string{"/", "/index.html", "/robots.txt", "/search?q=a%2Fb&p=1", "/a/b/c.php?x=/y"}
	step := max(1, rules.Len()/8)
	if rules.Len() > 1000 {
		targets, step = targets[:2], rules.Len()/2
	}
	for i := 0; i < rules.Len(); i += step {
		r := ruleOf(rules, i)
		source := strings.TrimSuffix(string(r.appendSource(nil)), "$")
		targets = append(targets, strings.ReplaceAll(source, "*", "x/y"),
			strings.ReplaceAll(source, "*", "")+"z?")
	}
	return targets
}
