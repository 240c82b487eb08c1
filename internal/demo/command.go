// Package demo crawls a whole synthetic web on one machine. It starts a name server, web servers,
// the daemon and a spider on loopback addresses, crawls until nothing is left, and judges the crawl
// by the requests that the web servers received.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

const (
	syntheticPerSec = 10 // the synthetic web has Crawl-delays of its own
	folderPerSec    = 30
	mostPerSec      = 1000
)

const long = `Crawls a web on this machine until nothing is left, and shows how politely.

The demo starts its own name server, web servers on addresses 127.77.0.*, the
daemon and a spider; nothing outside is asked for anything. Without DIR the web
is made up: 20 hosts on 6 addresses with robots rules, redirects, errors, a slow
host and a dead one. With DIRs each folder is a host on an address of its own.
Its name is that of the folder below ".test", in lower case and with "-" for what
a host name cannot have; where that says nothing ("html", "docs", "manual" and the
like), the name of the folder around it: /usr/share/doc/postgresql-doc-15/html is
postgresql-doc-15.test. Its pages are what can be reached from "/" by links; a
folder without index.html is a list of what is in it. Symbolic links are followed,
also out of the folder. A robots.txt in the folder holds.

While the crawl goes on, the daemon's dashboard is at the address that the demo
prints. With --play the demo crawls again and again until it is interrupted. With
--spiders it starts no spider, and waits for yours at that address.

Progress goes to standard error, results to standard output. The exit status is 1
if politeness was broken, if a page that links lead to was missed or fetched more
than once, if anything else was fetched, or if the crawl was interrupted.`

// Command returns the command "demo [DIR…]". It writes the report to standard output. Its error
// says in one line what was wrong with the crawl.
func Command() *cobra.Command {
	var perSec float64
	var play bool
	at := listens{page: "127.0.0.1:0"}
	cmd := &cobra.Command{
		Use:   "demo [DIR…]",
		Short: "Crawl generated sites on this machine, and show the gaps between requests",
		Long:  long,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if !cmd.Flags().Changed("per-sec") && len(dirs) > 0 {
				perSec = folderPerSec
			}
			again := crawlOnce
			if play {
				again = crawlAgain
			}
			return again(cmd.Context(), dirs, perSec, at, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Float64Var(&perSec, "per-sec", syntheticPerSec,
		fmt.Sprintf("requests a second to an address (Req_Host_Per_Sec); %d with DIRs", folderPerSec))
	cmd.Flags().BoolVar(&play, "play", false,
		"crawl again and again until interrupted, with the dashboard at one address")
	cmd.Flags().StringVar(&at.spiders, "spiders", "",
		"start no spider: yours connect to this `address`, as in 127.0.0.1:4101")
	return cmd
}

const next = `
Next: "make play" crawls again and again, so that you can look at the dashboard.
docs/start/first-crawl.md starts a daemon and a spider of your own in two terminals.
`

// listens is the addresses of a demo.
type listens struct {
	page    string // of the dashboard
	spiders string // where spiders may connect; empty: the demo has a spider of its own
}

// crawlOnce crawls once, and prints what to try next.
func crawlOnce(ctx context.Context, dirs []string, perSec float64, at listens, out, progress io.Writer) error {
	err := crawlAll(ctx, dirs, perSec, at, out, progress)
	if err == nil {
		_, err = io.WriteString(progress, next)
	}
	return err
}

// crawlAgain crawls again and again until ctx ends or a crawl fails. The dashboard's address stays
// the same.
func crawlAgain(ctx context.Context, dirs []string, perSec float64, at listens, out, progress io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	at.page = l.Addr().String()
	for err = l.Close(); err == nil; {
		err = crawlAll(ctx, dirs, perSec, at, out, progress)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// crawlAll crawls the folders, or a synthetic web if there are none.
func crawlAll(ctx context.Context, dirs []string, perSec float64, at listens, out, progress io.Writer) error {
	if !(perSec > 0 && perSec <= mostPerSec) {
		return fmt.Errorf("--per-sec %v: has to be above 0 and at most %d", perSec, mostPerSec)
	}
	size, build := syntheticAddrs, func(port uint16) (*web, error) { return syntheticWeb(wholeSize, port), nil }
	if len(dirs) > 0 {
		size, build = len(dirs), func(port uint16) (*web, error) { return folderWeb(dirs, port) }
	}
	return demonstrate(ctx, size, build, perSec, at, out, progress)
}

// demonstrate crawls the web that build makes for a port, served on n addresses, and writes a
// report.
func demonstrate(
	ctx context.Context, n int, build func(port uint16) (*web, error), perSec float64, at listens, out,
	progress io.Writer,
) error {
	f, err := listenWebServers(n)
	if err != nil {
		return err
	}
	w, err := build(f.port)
	if err != nil {
		f.close()
		return err
	}
	s := newScreen(progress)
	log := zerolog.New(zerolog.ConsoleWriter{Out: s,
		NoColor: !s.terminal}).Level(zerolog.WarnLevel).With().Timestamp().Logger()
	ctx, c, err := newCrawl(ctx, f, w, perSec, log)
	if err != nil {
		return err
	}
	if err := c.listen(at); err != nil {
		c.close()
		return err
	}
	fmt.Fprintf(s, "%s: %d pages to fetch, %d documents in all, from %d hosts at up to %g requests a "+
		"second an address\n",
		w.title, c.plan.pages, len(c.plan.ends), len(w.hosts), perSec)
	fmt.Fprintf(s, "dashboard while the crawl goes on: http://%v/\n", c.page.Addr())
	if c.others {
		fmt.Fprintf(s, "waiting for spiders at %v; the web begins at %s\n", c.spiderListener.Addr(), w.seeds[0])
	}
	defer spareThreads()()
	var watching team
	watching.start(c.end, func() error { c.watch(ctx, s); return nil })
	whole, err := c.run(ctx)
	err = errors.Join(err, watching.wait())
	r := c.result(whole)
	if err := c.report(out, r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return conclude(r, err)
}

// conclude returns the error of a crawl that failed or had faults.
func conclude(r result, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("demo: interrupted")
	case err != nil:
		return fmt.Errorf("demo: %w", err)
	case r.problems > 0:
		return fmt.Errorf("demo: %d faults", r.problems)
	}
	return nil
}
