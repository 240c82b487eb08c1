// Package cli is the command line of a host reservation service with any set of stores.
package cli

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urlserver/internal/clihelp"
	"urlserver/internal/netguard"
	"urlserver/reservation"
)

// gcPercent is the GC target, as a percentage of the live heap. Most of that heap is the buffers of
// unauthenticated connections when these use all places.
const gcPercent = 50

// Stores describes the stores that a command can serve.
type Stores struct {
	Names []string // values of --store, the default first
	Local string   // the name that needs no address and is lost with the process; "": none
	Far   string   // what help calls the other stores, such as "Redis"
	At    string   // whose addresses --addrs has
	Flag  string   // prefix of the flags for TLS to them, such as "redis"
	Addr  string   // default of --addrs
	Flags func(*pflag.FlagSet)
	Open  func(Opening) (store reservation.Store, end func(), err error)
}

// Opening says which store to open, and how to reach it.
type Opening struct {
	Store   string // one of Stores.Names
	Addrs   []string
	Prefix  string               // before each key
	TLS     netguard.ClientFiles // for a client
	Penalty time.Duration
	Log     zerolog.Logger
}

func (s Stores) listed() string {
	return strings.Join(s.Names, " or ")
}

func (s Stores) has(name string) bool { return slices.Contains(s.Names, name) }

// Main runs the command line of the process until it is done or interrupted. It returns the exit
// status: 0 for done, 1 for failed, 2 for wrong usage.
func Main(stores Stores) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return clihelp.Main("hostreservation", func(ctx context.Context) error {
		return Run(ctx, stores, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	})
}

// ExitStatus is [clihelp.ExitStatus].
func ExitStatus(err error) int { return clihelp.ExitStatus(err) }

// Run executes a command line until it is done or ctx ends.
func Run(ctx context.Context, stores Stores, args []string, in io.Reader, out, errs io.Writer) error {
	root := &cobra.Command{
		Use:   "hostreservation",
		Short: "Share who may work on which host among many crawlers",
		Long: "The host reservation service tells crawlers in any language which host they may work on " +
			"now, over gRPC\n" +
			"(api/reservation/reservation.proto): one at a time, and never sooner than the host may " +
			"be asked.\n\nResults go to standard output, everything else to standard error.\n" +
			"Exit status: 0 done, 1 failed, 2 wrong usage.",
		Args:          clihelp.Takes(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			return clihelp.Usagef("no command; try hostreservation --help")
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return clihelp.Usagef("%w", err) })
	clihelp.VersionFlag(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(serveCommand(stores), seedsCommand(), statsCommand(), explainCommand(), listCommand(),
		clihelp.Version(), clihelp.Completion("hostreservation"),
		clihelp.Man([]clihelp.Note{{Name: "/etc/urlserver/hostreservation.env",
			Text: "Flags and secrets of the packaged service."}},
			[]clihelp.Note{{Name: tokenEnv,
				Text: "What callers are asked for, and what commands that call say."}}),
	)
	for _, cmd := range root.Commands() {
		clihelp.CompleteArgs(cmd)
	}
	return clihelp.Run(ctx, root, args, in, out, errs)
}
