package robots

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/temoto/robotstxt"
)

// Vectors on which github.com/temoto/robotstxt v1.1.2 differs, and why it is wrong. It must agree
// on all others.
var temotoDiffers = map[string]string{
	"agent-file-token-is-prefix":         "takes a prefix for the agent",
	"agent-file-token-prefix-hides-star": "takes a prefix for the agent",
	"agents-crawl-delay-between":         "ends the list of agents at another record",
	"bad-crawl-delay-keeps-rules":        "one bad line voids the file",
	"bare-star-pattern":                  "needs a slash before the wildcard",
	"comment-glued-to-rule":              "needs a space before a comment",
	"crawl-delay-before-group":           "one bad line voids the file",
	"crawl-delay-empty":                  "one bad line voids the file",
	"crawl-delay-with-comment":           "needs a space before a comment",
	"dollar-pattern-anchored-at-start":   "finds a pattern with a wildcard anywhere",
	"negative-crawl-delay-keeps-rules":   "one bad line voids the file",
	"pattern-without-slash":              "puts a slash before it",
	"pct-literal-dollar":                 "compares without normalising",
	"pct-lower-in-url":                   "compares without normalising",
	"pct-raw-utf8-in-file":               "compares without normalising",
	"pct-reserved-in-query":              "compares without normalising",
	"pct-unreserved-in-file":             "compares without normalising",
	"rule-before-group-ignored":          "one bad line voids the file",
	"rule-before-group-keeps-rest":       "one bad line voids the file",
	"space-before-colon":                 "does not know the key then",
	"tie-allow-wins-disallow-first":      "the first of equals wins",
	"trailing-star-counts-octets":        "does not count trailing wildcards",
	"typo-keys":                          "does not know the key then",
	"wildcard-length-not-inflated":       "counts the octets of a regular expression",
}

// TestTemotoOnVectors compares with an independent implementation.
func TestTemotoOnVectors(t *testing.T) {
	differs := map[string]bool{}
	for _, v := range vectors(t) {
		if v.Status != nil {
			continue // the meaning of a status is policy
		}
		got := Parse([]byte(v.Robots), v.Agent).Allowed([]byte(targetOf(t, v.URL)))
		file, err := robotstxt.FromString(v.Robots)
		if err != nil || file.TestAgent(targetOf(t, v.URL), v.Agent) != got {
			differs[v.Name] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(differs)),
		slices.Sorted(maps.Keys(temotoDiffers)); !slices.Equal(got, want) {
		t.Errorf("differs on %q, want %q", got, want)
	}
}

func TestTemotoOnCorpus(t *testing.T) {
	const agent = "zzbot"
	files, plain, void, verdicts := 0, 0, 0, 0
	corpus(t, func(name string, body []byte) {
		files++
		if !isPlainFile(body) {
			return
		}
		plain++
		file, err := robotstxt.FromBytes(body)
		if err != nil {
			void++
			return
		}
		rules := Parse(body, agent)
		for _, target := range corpusTargets(rules) {
			verdicts++
			got := rules.Allowed([]byte(target))
			if second := file.TestAgent(target, agent); second != got && target != "/robots.txt" {
				t.Errorf("%s: %q allowed = %t, the second opinion is %t", name, target, got, second)
			}
		}
	})
	if verdicts == 0 {
		t.Error("no file is plain enough")
	}
	t.Logf("%d files, %d of them plain, of these %d void to it: %d verdicts compared", files, plain,
		void, verdicts)
}

var (
	lineBreak = regexp.MustCompile(`\r\n|\n`)
	plainLine = regexp.MustCompile(
		`^$|^#|^Sitemap: |^User-agent: ?(\*|[-a-zA-Z]+)$|^(Disallow|Allow): ?(/[-_./a-zA-Z0-9?=&]*)?$`)
	starGroup = regexp.MustCompile(`(?m)^User-agent: ?\*`)
	allowLine = regexp.MustCompile(`(?m)^Allow:`)
)

// isPlainFile reports whether a file has none of the features in the table above.
func isPlainFile(body []byte) bool {
	for _, line := range lineBreak.Split(string(body), -1) {
		if !plainLine.MatchString(line) {
			return false
		}
	}
	return len(starGroup.FindAll(body, 2)) < 2 && !allowLine.Match(body)
}
