package httpapi

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urlserver/configs"
	"urlserver/internal/resolver"
	"urlserver/urlserver"
)

// levelsHosts has an address with three sites that answer 503 and one that does not, and a site that
// answers 503 with Retry-After.
const levelsHosts = "127.0.0.2 a.test b.test c.test calm.test\n127.0.0.3 closed.test\n"

// The dashboard shows which level holds a host back, and because of whom.
func TestDashboardLevels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(levelsHosts), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := resolver.New(resolver.Config{
		HostsFile: file, Servers: []string{"127.0.0.1:9"},
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Close() })
	r := newRig(t, setup{
		config: func(c *configs.Config) { c.ReqHostPerSec = 20 },
		parts:  func(p *urlserver.Parts) { p.Resolver = res },
	})
	var urls []string
	for n := range 500 {
		for _, site := range []string{"a", "b", "c", "calm", "closed"} {
			urls = append(urls, fmt.Sprintf("http://%s.test/%d", site, n))
		}
	}
	r.put(urls...)
	sp := r.spider()
	go func() {
		for lines := bufio.NewScanner(sp.in); lines.Scan(); {
			f := strings.Fields(lines.Text())
			status := "503"
			switch {
			case strings.Contains(f[3], "//calm."):
				status = "404"
			case strings.Contains(f[3], "//closed."):
				status = "503 3600"
			}
			fmt.Fprintf(sp.conn, "%s DONE %s\n", f[0], status)
		}
	}()
	b := newBrowser(t, r.base)
	b.open("/")
	const held = "[...document.querySelectorAll('#t-hosts tbody tr')].some((r) => " +
		"r.cells[0].textContent === %q && [...r.cells].at(-1).textContent.endsWith(%q) && " +
		"[...r.cells].at(-1).title.includes(%q))"
	b.until(held, "calm.test", "(address)", "the address 127.0.0.2 backs off")
	b.until(held, "closed.test", "(site)", "Retry-After, which came with status 429 or 503 of the site")
	b.shows("#hosts-levels", "1 address backs off.")
	b.fill("#name", "calm.test")
	b.click("#find button")
	for _, text := range []string{
		"the address 127.0.0.2 backs off", "a.test", "b.test", "c.test", "calm.test: gap 50 ms, ",
		"127.0.0.2: gap ", ", backs off by ",
	} {
		b.shows("#explained", text)
	}
	b.fill("#name", "closed.test")
	b.click("#find button")
	b.shows("#explained", "closed.test: gap 60 min, 0 of 1 requests open, backs off by 60 min; not before ")
	b.shows("#explained", "127.0.0.3: gap 50 ms, 0 of 1 requests open; nothing holds it back")
	b.accessible("levels")
}
