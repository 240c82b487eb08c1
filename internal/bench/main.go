// Command bench measures what the project promises and prints one Markdown table: what, the target,
// what was measured, what it is compared with, and how it was measured.
//
// The daemon, the spiders and their servers run as child processes, which are this program in
// another role. They speak over loopback.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"urlserver/internal/clihelp"
)

const wholeRun = 90 * time.Minute // far more than all measurements take

func main() {
	ctx, stop := clihelp.Interrupted()
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measurement measures something and returns rows of the table.
type measurement struct {
	name  string
	take  func(ctx context.Context, b *bench) ([]row, error)
	apart bool // it takes long, and only -run takes it
}

func measurements() []measurement {
	return []measurement{
		{name: "slots", take: takeSlots},
		{name: "throughput", take: takeThroughput},
		{name: "held", take: takeHeld},
		{name: "lookups", take: takeLookups},
		{name: "delay", take: takeDelay},
		{name: "idle", take: takeIdle},
		{name: "viewers", take: takeViewers},
		{name: "crawls", take: takeCrawls},
		{name: "reserving", take: takeReserving},
		{name: "waiting", take: takeWaiting},
		{name: "daemons", take: takeDaemons},
		{name: "puts", take: takePuts},
		{name: "frontier", take: takeFrontier},
		{name: "scale", take: takeScale, apart: true},
	}
}

// bench is what all measurements use.
type bench struct {
	self     string // path of this program
	profiles string // folder for profiles; "": none
	part     int    // "scale" takes one in so many URLs and hosts
	errs     io.Writer
}

func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errs)
	only := flags.String("run", "", "take only the measurements whose names match this regular `expression`")
	profiles := flags.String("profile", "", "write profiles of the daemon and the slots into this `folder`")
	part := flags.Int("part", 1, "let scale take one in so many URLs and hosts")
	role := flags.String("as", "", "what a child process is; set by bench itself")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *role != "" {
		return play(ctx, *role, in, out)
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wholeRun)
	defer cancel()
	return takeAll(ctx, &bench{self: self, profiles: *profiles, part: max(1, *part), errs: errs}, chosen, out)
}

// takeAll runs the chosen measurements and prints the table. If one fails, it prints the rows so
// far.
func takeAll(ctx context.Context, b *bench, chosen *regexp.Regexp, out io.Writer) error {
	if err := printHead(out); err != nil {
		return err
	}
	for _, m := range measurements() {
		if !chosen.MatchString(m.name) || m.apart && chosen.String() == "" {
			continue
		}
		fmt.Fprintf(b.errs, "measuring %s…\n", m.name)
		rows, err := m.take(ctx, b)
		for _, r := range rows {
			if _, err := fmt.Fprintln(out, r); err != nil {
				return err
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}
