package scope_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"urlserver/internal/scope"
)

// randomPattern returns a pattern of few letters, so that it often matches.
func randomPattern(rng *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "K", "s", "é", "/", "7", "ab", "/k/", "sab7", `\d`, `\.`, "[ab]", "[^a]", "[a-k]",
		"[0-9a-s]", ".", `\b`, "(?i:k)", "(?i:as/)", "^", "$", "(?m:$)", `\x{FFFD}`, `\x{D800}`, "\u212a", "ſ"}
	if depth == 0 || rng.IntN(3) == 0 {
		return atoms[rng.IntN(len(atoms))]
	}
	one, other := randomPattern(rng, depth-1), randomPattern(rng, depth-1)
	switch rng.IntN(7) {
	case 0:
		return "(" + one + "|" + other + ")"
	case 1:
		return "(?:" + one + ")" + []string{"?", "+", "*", "{2}", "{1,3}", "{3,}"}[rng.IntN(6)]
	case 2:
		return "(?i:" + one + other + ")"
	case 3:
		return "(" + one + other + ")"
	}
	return one + other + randomPattern(rng, depth-1)
}

func randomURL(rng *rand.Rand) string {
	parts := []string{"a", "b", "k", "K", "s", "S", "é", "/", "7", "1", "ab", ".", "\n", "\u212a", "ſ", "\xff", "x"}
	var url strings.Builder
	for range 1 + rng.IntN(16) {
		url.WriteString(parts[rng.IntN(len(parts))])
	}
	return url.String()
}

// A list of patterns matches what one of its patterns matches, whatever filters stand before them.
func TestPatternsMatchAsAlone(t *testing.T) {
	matched := 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var list []string
		for range 1 + rng.IntN(12) {
			list = append(list, randomPattern(rng, 3))
		}
		text, _ := json.Marshal(map[string][]string{"deny": list}) // strings always can be
		rules := parse(t, string(text))
		alone := make([]*regexp.Regexp, len(list))
		for i, p := range rules.Scope.Deny {
			alone[i] = regexp.MustCompile(p)
		}
		for range 30 {
			url, want := randomURL(rng), false
			for _, p := range alone[:len(rules.Scope.Deny)] {
				want = want || p.MatchString(url)
			}
			if want {
				matched++
			}
			if got := rules.Check([]byte(url), nil, 0, 0); (got == scope.Deny) != want {
				t.Fatalf("seed %d: %q with %q: %v; one of them matches: %t", seed, url, rules.Scope.Deny, got, want)
			}
		}
	}
	if matched < 3000 || matched > 27_000 {
		t.Errorf("%d of 30,000 URLs matched; the test wants some that do and some that do not", matched)
	}
}

// Ten patterns as operators write them cost little where none matches.
func BenchmarkCheckUsual(b *testing.B) {
	r := parse(b, `{"deny":["/calendar/","[?&]sessionid=","/print/\\d+","\\?.*&.*&.*&","\\.(jpe?g|png|gif|css|js)$",
		"/(search|login|cart)/","/tags?/[a-z]+/page/","/\\d{4}/\\d{2}/\\d{2}/","replytocom=\\d+","(?i)/admin/"]}`)
	url := []byte("https://www.example.org/some/folder/of/the/site/page-12345.html?id=77")
	b.ReportAllocs()
	for b.Loop() {
		if r.Check(url, nil, 3, 1) != scope.InScope {
			b.Fatal("out of scope")
		}
	}
}
