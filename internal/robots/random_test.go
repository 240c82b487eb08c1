package robots

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRandomFilesAgainstModel makes files of many short rules from few octets, so that most
// overlap, and compares the verdicts with the model's.
func TestRandomFilesAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	octets := []string{"a", "a", "b", "b", "/", "?", "%2F", "%61", "\u30c4"}
	path := func(most int, more ...string) string {
		text := "/"
		for range rng.IntN(most) {
			text += append(octets, more...)[rng.IntN(len(octets)+len(more))]
		}
		return text
	}
	verdicts, forbidden := 0, 0
	for range 300 {
		file := strings.Builder{}
		file.WriteString("User-agent: *\n")
		for range 1 + rng.IntN(60) {
			file.WriteString([]string{"Allow: ", "Disallow: "}[rng.IntN(2)])
			if file.WriteString(path(6, "*", "*")); rng.IntN(5) == 0 {
				file.WriteString("$")
			}
			file.WriteString("\n")
		}
		rules, slow := Parse([]byte(file.String()), "x"), newModel(file.String(), "x")
		for range 20 {
			target := path(12)
			got, want := rules.Allowed([]byte(target)), slow.allowed(target)
			if verdicts++; !got {
				forbidden++
			}
			if got != want {
				t.Fatalf("%s%q allowed = %t, want %t", file.String(), target, got, want)
			}
			checkPrinted(t, rules, target)
		}
	}
	if forbidden < verdicts/10 || forbidden > verdicts*9/10 {
		t.Errorf("%d of %d verdicts forbid: little was compared", forbidden, verdicts)
	}
}
