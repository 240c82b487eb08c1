package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"urlserver/internal/clihelp"
)

func topCommand() *cobra.Command {
	var c client
	var lines int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a running daemon",
		Long: "Shows how a running daemon is doing, each second: its slots, and which level keeps each\n" +
			"from sending: its site, its address, or its shared network. On a terminal it takes keys:\n" +
			"  up, down, Enter  choose a row, and show why nothing is sent to its host now\n" +
			"  d g n a s        sort by documents held, gap, next send, documents at spiders, slot; the " +
			"same key again reverses the order\n" +
			"  /                search for a host or group, and show why nothing is " +
			"sent to the host now\n" +
			"  space            freeze the view, or continue\n" +
			"  P                pause the daemon's sending, or resume it; asks first\n" +
			"  ?                show the keys\n" +
			"  q                quit\n" +
			"If the output is no terminal, it prints a line a second.",
		Example: "  urlserver top\n  urlserver top --lines 5",
		Args:    clihelp.Takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 {
				return clihelp.Usagef("--lines %d: a number from 0 is wanted", lines)
			}
			if err := c.open(); err != nil {
				return err
			}
			if in, out, ok := terminal(cmd.InOrStdin(), cmd.OutOrStdout()); ok && lines == 0 {
				return watchScreen(cmd.Context(), &c, in, out)
			}
			return watchLines(cmd.Context(), &c, cmd.OutOrStdout(), lines)
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVarP(&lines, "lines", "n", 0, "print so many lines, a second apart, and end; 0: go on")
	return cmd
}

// terminal reports whether in and out are terminals.
func terminal(in io.Reader, out io.Writer) (*os.File, *os.File, bool) {
	if p, ok := out.(*clihelp.Plain); ok {
		out = p.W
	}
	i, ok1 := in.(*os.File)
	o, ok2 := out.(*os.File)
	return i, o, ok1 && ok2 && term.IsTerminal(int(i.Fd())) && term.IsTerminal(int(o.Fd()))
}

// watchLines prints a line for each status, at most so many; 0: until the daemon or ctx ends.
func watchLines(ctx context.Context, c *client, out io.Writer, lines int) error {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var rates rates
	var failed error
	printed := 0
	err := c.follow(ctx, func(n news) {
		if n.status == nil || failed != nil || lines > 0 && printed == lines {
			return
		}
		rates.add(n.status)
		if _, failed = fmt.Fprintln(out, line(n.status, &rates)); failed != nil {
			enough()
		}
		if printed++; printed == lines {
			enough()
		}
	})
	if failed != nil || lines > 0 && printed == lines {
		return failed
	}
	return err
}

// line returns a status in one line.
func line(s *liveStatus, r *rates) string {
	state := "ready"
	switch {
	case s.Paused:
		state = "paused"
	case len(s.NotReady) > 0:
		state = "not ready"
	}
	text := fmt.Sprintf("up %s  %s  sent/s %s  done/s %s  in flight %d  held %d  leftover %d  slots %d/%d  spiders %d",
		upTime(s), state, r.sent(), r.done(), s.InFlight, s.Held, s.Leftover, s.Slots.Used, s.Slots.Total,
		len(s.Spiders)+s.MoreSpiders)
	l := &s.Levels
	text += fmt.Sprintf("  waiting: site %d  address %d  network %d", l.Site.Waiting, l.Address.Waiting,
		l.Network.Waiting)
	return strings.Join(append([]string{text}, s.shared()...), "  ")
}

func upTime(s *liveStatus) time.Duration {
	return time.Duration(s.Uptime * float64(time.Second)).Truncate(time.Second)
}

// rateOver is the number of statuses of a rate, a second apart.
const rateOver = 5

// rates computes rates from the last statuses.
type rates struct{ last []liveStatus }

func (r *rates) add(s *liveStatus) {
	if n := len(r.last); n > 0 && s.Uptime < r.last[n-1].Uptime {
		r.last = nil // the daemon has restarted
	}
	if len(r.last) > rateOver {
		r.last = r.last[1:]
	}
	r.last = append(r.last, *s)
}

func (r *rates) sent() string { return r.rate(func(s *liveStatus) uint64 { return s.Sent }) }
func (r *rates) done() string {
	return r.rate(func(s *liveStatus) uint64 { return s.Outcomes["done"] })
}

// rate returns "-" until there are two statuses.
func (r *rates) rate(of func(*liveStatus) uint64) string {
	if len(r.last) < 2 {
		return "-"
	}
	first, last := &r.last[0], &r.last[len(r.last)-1]
	took := last.Uptime - first.Uptime
	if took <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(of(last)-of(first))/took)
}
