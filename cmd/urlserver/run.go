package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
	"urlserver/internal/demo"
)

// run executes a command line until it is done or ctx ends, and returns the exit status. Results go
// to out, everything else to errs.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	if isFrontierArgs(args) {
		hups, stop := hangups()
		defer stop()
		return exitStatus(serveFrontier(ctx, args, hups, errs), errs)
	}
	return exitStatus(clihelp.Run(ctx, rootCommand(), args, in, out, errs), errs)
}

// exitStatus prints an error, and returns the exit status for it.
func exitStatus(err error, errs io.Writer) int {
	if err != nil {
		clihelp.PrintError(errs, "urlserver", err)
	}
	return clihelp.ExitStatus(err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "urlserver",
		Short: "Decide which URL may be fetched now, politely",
		Long: "The URL server asks a doc index for URLs and groups their hosts by IP address. It hands the " +
			"URLs to spiders\n" +
			"one by one, at the pace that the settings allow for each address and each site.\n\n" +
			"Results go to standard output, everything else to standard error.\n" +
			"Exit status: 0 done, 1 failed, 2 wrong usage.",
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return clihelp.Usagef("no command; try %s --help", cmd.CommandPath())
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return clihelp.Usagef("%w; try %s --help", err, cmd.CommandPath())
	})
	clihelp.VersionFlag(root)
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.DisableDefaultCmd = true // its output cannot be redirected
	root.AddCommand(
		serveCommand(), checkCommand(), demo.Command(),
		putCommand(), exportCommand(), importCommand(), statusCommand(), topCommand(), explainCommand(),
		showCommand(),
		robotsCommand(), crawlCommand(), schemaCommand(), clihelp.Version(),
		clihelp.Completion("urlserver"),
		clihelp.Man([]clihelp.Note{{Name: "/etc/urlserver/urlserver.toml",
			Text: "The settings of the packaged service; each is explained there."}},
			[]clihelp.Note{{Name: atEnv, Text: "HTTP address of the daemon, for commands that ask one."},
				{Name: tokenEnv, Text: "http.token of the daemon, for commands that ask one."}}),
	)
	root.AddCommand(operateCommands()...)
	for _, cmd := range root.Commands() {
		if name := cmd.Name(); name == "serve" || name == "check" {
			cmd.ValidArgsFunction = settingsFiles
		}
		clihelp.CompleteArgs(cmd)
	}
	return root
}

// settingsFiles completes the names of settings files in shells.
func settingsFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}

// knownCommand refuses an unknown command, and suggests similar ones.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return clihelp.Usagef("%s; try %s --help", text, cmd.CommandPath())
}
