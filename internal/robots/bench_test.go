package robots

import (
	"fmt"
	"strings"
	"testing"
)

// benchFile returns a file of n rules, a quarter of them with wildcards. None matches /docs.
func benchFile(n int) []byte {
	file := strings.Builder{}
	file.WriteString("User-agent: *\nCrawl-delay: 1\n")
	for i := range n {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&file, "Disallow: /*/print-%d$\n", i)
		case 1:
			fmt.Fprintf(&file, "Allow: /shop/item/%d/\n", i)
		default:
			fmt.Fprintf(&file, "Disallow: /cart/step%d?session=\n", i)
		}
	}
	return []byte(file.String())
}

func BenchmarkParse(b *testing.B) {
	for _, rules := range []int{60, 20_000} {
		file := benchFile(rules)
		b.Run(fmt.Sprintf("bytes=%d", len(file)), func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(file, "urlserver")
			}
		})
	}
}

func BenchmarkAllowed(b *testing.B) {
	for _, n := range []int{0, 20, 2000} {
		rules := Parse(benchFile(n), "urlserver")
		for _, target := range []string{"/docs/guide/chapter-12/section-3.html",
			"/docs/%7Eguide/chapter.html?next=%2Fa"} {
			b.Run(fmt.Sprintf("rules=%d/plain=%t", n, !strings.Contains(target, "%")), func(b *testing.B) {
				raw := []byte(target)
				b.ReportAllocs()
				for b.Loop() {
					rules.Allowed(raw)
				}
			})
		}
	}
}
