package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"urlserver/configs"
	"urlserver/internal/clihelp"
	"urlserver/urlserver/crawllog"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a settings file",
		Long: "Reads a settings file as serve does and reports all mistakes in it, with line, key and " +
			"allowed values.\n" +
			"If there are none, it looks for listeners on one port, for files that cannot be read, and for " +
			"a crawl log\n" +
			"that cannot be written. Exit status 1 if anything is wrong.\n" +
			"Prints the settings that differ from their defaults, and the source of each: the file, or the\n" +
			"environment (URLSERVER_HTTP_LISTEN is http.listen), which overrides the file. Warns of variables\n" +
			"that name no setting, of tokens that are short, and of secrets in a file that others can read.",
		Example: "  urlserver check my.toml",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := configs.LoadWith(args[0], configs.Environ(os.Environ()))
			if err != nil {
				return settingsError(err)
			}
			if err := errors.Join(sharedPorts(cfg), missingFiles(cfg), crawlLog(cfg.Log.Crawl)); err != nil {
				return fmt.Errorf("%s would not start:\n%w", args[0], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: no mistakes\n", args[0])
			tellSources(cmd.OutOrStdout(), cfg)
			for _, w := range append(unknownVariables(), warningsOf(args[0], cfg)...) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", args[0], w)
			}
			return nil
		},
	}
}

// tellSources prints each setting that the environment sets, or that differs from its default, with
// where its value is from.
func tellSources(w io.Writer, cfg configs.Config) {
	all, others := cfg.Shown(), 0
	for _, one := range all {
		if one.Source == configs.FromDefault || one.Source == configs.FromFile && one.Default {
			others++
			continue
		}
		fmt.Fprintf(w, "%s = %s, from the %v\n", one.Name, one.Value, one.Source)
	}
	if others == len(all) {
		fmt.Fprintf(w, "all %d settings have their defaults\n", others)
		return
	}
	fmt.Fprintf(w, "%d other settings have their defaults\n", others)
}

// unknownVariables returns a warning if the environment has variables that look like those of
// settings and are none.
func unknownVariables() []string {
	unknown := configs.UnknownVariables(os.Environ(), atEnv, tokenEnv)
	if len(unknown) == 0 {
		return nil
	}
	return []string{"the environment has variables that name no setting: " + strings.Join(unknown, ", ")}
}

// sharedPorts returns an error for each two listeners with the same port of the same address.
func sharedPorts(cfg configs.Config) (err error) {
	listeners := []struct{ name, at string }{
		{"spider.listen", cfg.Spider.Listen}, {"http.listen", cfg.HTTP.Listen},
		{"frontier.listen", cfg.Frontier.Listen},
	}
	for i, a := range listeners {
		for _, b := range listeners[:i] {
			if collide(a.at, b.at) {
				err = errors.Join(err, fmt.Errorf("%s %q and %s %q want the same port; give each its own",
					b.name, b.at, a.name, a.at))
			}
		}
	}
	return err
}

// collide reports whether two listeners cannot run at the same time. Port 0 is any free port, and
// no host means all addresses.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	all := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return hostA == hostB || all(hostA) || all(hostB)
}

// missingFiles returns an error for each file in the settings that cannot be read.
func missingFiles(cfg configs.Config) (err error) {
	files := [][2]string{
		{"spider.tls_cert", cfg.Spider.TLSCert}, {"spider.tls_key", cfg.Spider.TLSKey},
		{"spider.tls_ca", cfg.Spider.TLSCA},
		{"docindex.tls_cert", cfg.DocIndex.TLSCert}, {"docindex.tls_key", cfg.DocIndex.TLSKey},
		{"docindex.tls_ca", cfg.DocIndex.TLSCA},
		{"frontier.tls_cert", cfg.Frontier.TLSCert}, {"frontier.tls_key", cfg.Frontier.TLSKey},
		{"reservation.tls_cert", cfg.Reservation.TLSCert}, {"reservation.tls_key", cfg.Reservation.TLSKey},
		{"reservation.tls_ca", cfg.Reservation.TLSCA},
		{"monitor.tls_cert", cfg.Monitor.TLSCert}, {"monitor.tls_key", cfg.Monitor.TLSKey},
		{"monitor.tls_ca", cfg.Monitor.TLSCA},
	}
	for _, name := range cfg.DocIndex.Seeds {
		files = append(files, [2]string{"docindex.seeds", name})
	}
	for _, f := range files {
		if f[1] == "" {
			continue
		}
		if cause := readable(f[1]); cause != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", f[0], cause))
		}
	}
	return err
}

// readable returns an error if a file cannot be read. It does not open a pipe, which would wait for a writer.
func readable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name a file in it", name)
	case !info.Mode().IsRegular():
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	return file.Close()
}

// crawlLog returns an error if a crawl log cannot be written at path; "": there is none.
func crawlLog(path string) error {
	if path == "" {
		return nil
	}
	if err := crawllog.Check(path); err != nil {
		return fmt.Errorf("log.crawl: %w", err)
	}
	return nil
}

// shortToken is the fewest bytes of a token that cannot be guessed: 16 letters and digits have 95
// bits.
const shortToken = 16

// warningsOf returns warnings about settings that are allowed but not wise.
func warningsOf(file string, cfg configs.Config) (all []string) {
	for _, t := range []struct {
		name  string
		token configs.Secret
	}{
		{"spider.token", cfg.Spider.Token}, {"http.token", cfg.HTTP.Token}, {"frontier.token", cfg.Frontier.Token},
	} {
		if n := len(t.token); n > 0 && n < shortToken {
			all = append(all, fmt.Sprintf("%s has %d characters and may be guessed: take %d or more "+
				"that nobody knows, as from openssl rand -hex 16", t.name, n, shortToken))
		}
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 && secretsInFile(cfg) {
		all = append(all,
			"it has tokens or passwords in it, and every user of this machine can read it: chmod o-r "+file)
	}
	return append(all, paceWarnings(cfg)...)
}

// secretsInFile reports whether the file has set a secret, and nothing has replaced it.
func secretsInFile(cfg configs.Config) bool {
	return slices.ContainsFunc(cfg.Shown(), func(one configs.Shown) bool {
		return one.Source == configs.FromFile && one.Value == `"***"`
	})
}

// paceWarnings returns warnings about paces of sites that the pace above them never allows.
func paceWarnings(cfg configs.Config) (all []string) {
	warn := func(where, above, site string, perSec, sitePerSec float64) {
		if perSec > 0 && sitePerSec > perSec {
			all = append(all, fmt.Sprintf("%s%s (%g) is more than %s (%g), which holds for all sites there together",
				where, site, sitePerSec, above, perSec))
		}
	}
	warn("", "Req_Host_Per_Sec", "politeness.site_per_sec", cfg.ReqHostPerSec, cfg.Politeness.SitePerSec)
	for i, r := range cfg.Rules {
		warn(fmt.Sprintf("rule %d: ", i+1), "per_sec", "site_per_sec", r.PerSec, r.SitePerSec)
	}
	return all
}

// maxAlike is how many mistakes of one kind are listed.
const maxAlike = 10

// settingsError lists the mistakes of a settings file below each other, at most maxAlike of a kind.
// Mistakes are of one kind if they differ only in their line, their key and what they quote.
func settingsError(err error) error {
	e, ok := errors.AsType[*configs.Error](err)
	if !ok {
		return err
	}
	alike := map[string]int{}
	var text strings.Builder
	for _, m := range e.Mistakes {
		kind := kindOf(m)
		if alike[kind]++; alike[kind] <= maxAlike {
			text.WriteString("\n" + m.String())
		}
	}
	if more := leftOut(alike); more > 0 {
		fmt.Fprintf(&text, "\n%s of these kinds", count(more, "more mistake"))
	}
	if e.More {
		text.WriteString("\nand others behind these")
	}
	return fmt.Errorf("settings refused:%s", text.String())
}

var quoted = regexp.MustCompile(`"[^"]*"|; did you mean .*`)

func kindOf(m configs.Mistake) string { return quoted.ReplaceAllString(m.Problem, "") }

func leftOut(alike map[string]int) (n int) {
	for _, count := range alike {
		n += max(count-maxAlike, 0)
	}
	return n
}
