package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urlserver/internal/clihelp"
	"urlserver/internal/netguard"
	"urlserver/reservation/grpcclient"
)

// caller calls a running service.
type caller struct {
	cfg   grpcclient.Config
	files netguard.ClientFiles
	wait  time.Duration
}

// flags adds the flags for the service's address and the timeout.
func (c *caller) flags(f *pflag.FlagSet, wait time.Duration) {
	f.StringSliceVar(&c.cfg.Addrs, "at", []string{"127.0.0.1:7072"}, "`address` of the service")
	f.StringVar(&c.cfg.Token, "token", os.Getenv(tokenEnv), "the service's token; or set "+tokenEnv)
	f.StringVar(&c.files.CA, "tls-ca", "", "reach it over TLS, trusting the CAs in this `file`")
	f.StringVar(&c.files.Cert, "tls-cert", "", "client certificate `file`")
	f.StringVar(&c.files.Key, "tls-key", "", "its key `file`")
	f.DurationVar(&c.wait, "timeout", wait, "for all of it")
	f.Lookup("token").DefValue = "" // help shows none
}

// call connects to the service and calls do.
func (c *caller) call(ctx context.Context, do func(context.Context, *grpcclient.Store) error) (err error) {
	if c.cfg.TLS, err = c.files.Client(); err != nil {
		return err
	}
	store, err := grpcclient.New(c.cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	return do(ctx, store)
}

const lookTimeout = 10 * time.Second

func statsCommand() *cobra.Command {
	return lookCommand(&cobra.Command{
		Use:     "stats",
		Short:   "Count hosts, leases and aliases",
		Example: "  hostreservation stats",
		Args:    clihelp.Takes(cobra.NoArgs),
	}, func(ctx context.Context, s *grpcclient.Store, _ []string, out io.Writer) error {
		n, err := s.Stats(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "hosts\t%d\nready\t%d\twait for nobody but a crawler\nwaiting\t%d\tmay not be "+
			"asked yet\nbusy\t%d\tleased\naliases\t%d\nrepaired\t%d\tqueue entries that a janitor put back\n",
			n.Hosts, n.Ready, n.Waiting, n.Busy, n.Aliases, n.Repaired)
		return nil
	})
}

func explainCommand() *cobra.Command {
	return lookCommand(&cobra.Command{
		Use:     "explain HOST",
		Short:   "Tell who has a host, or when it may be asked",
		Example: "  hostreservation explain example.org",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
	}, func(ctx context.Context, s *grpcclient.Store, args []string, out io.Writer) error {
		x, err := s.Explain(ctx, args[0])
		if err != nil {
			return err
		}
		until := "now"
		if !x.Until.IsZero() {
			until = x.Until.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(out, "host\t%s\ngroup\t%s\nstate\t%s\nuntil\t%s\nrule\t%s\nholder\t%s\n",
			x.Host, x.Group, x.State, until, cmp.Or(x.Rule, "none"), cmp.Or(x.Holder, "nobody"))
		return nil
	})
}

func listCommand() *cobra.Command {
	return lookCommand(&cobra.Command{
		Use:     "list NAME",
		Short:   "List the hosts of an alias, by its name or by one of its hosts",
		Example: "  hostreservation list example.org",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
	}, func(ctx context.Context, s *grpcclient.Store, args []string, out io.Writer) error {
		alias, hosts, err := s.GetAlias(ctx, args[0])
		if err != nil {
			return err
		}
		for _, host := range hosts {
			fmt.Fprintf(out, "%s\t%s\n", alias, host)
		}
		return nil
	})
}

// lookCommand completes a command that asks the service and prints a table.
func lookCommand(cmd *cobra.Command, show func(context.Context, *grpcclient.Store, []string,
	io.Writer) error) *cobra.Command {
	var c caller
	c.flags(cmd.Flags(), lookTimeout)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.call(cmd.Context(), func(ctx context.Context, s *grpcclient.Store) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			if err := show(ctx, s, args, table); err != nil {
				return err
			}
			return table.Flush()
		})
	}
	return cmd
}
