package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
	"urlserver/internal/demo"
)

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1 // also for settings that are refused
	exitUsage  = 2
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run executes a command line until it is done or ctx ends, and returns the exit status. Results go
// to out, everything else to errs.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	if isFrontierArgs(args) {
		hups, stop := hangups()
		defer stop()
		return exitStatus(serveFrontier(ctx, args, hups, errs), errs)
	}
	root := rootCommand()
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the process
	root.SetIn(in)
	plain := &clihelp.Plain{W: out} // text from servers must not control the terminal
	root.SetOut(plain)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	return exitStatus(cmp.Or(err, plain.Failed()), errs)
}

// exitStatus prints an error, and returns the exit status for it.
func exitStatus(err error, errs io.Writer) int {
	if err == nil {
		return exitDone
	}
	clihelp.PrintError(errs, "urlserver", err)
	if _, wrong := errors.AsType[usageError](err); wrong {
		return exitUsage
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "urlserver",
		Short: "Decide which URL may be fetched now, politely",
		Long: "The URL server asks a doc index for URLs, sorts them by the machine they live on, and " +
			"hands them to spiders\n" +
			"one by one, never faster than each machine should be asked.\n\n" +
			"Results go to standard output, everything else to standard error.\n" +
			"Exit status: 0 done, 1 failed, 2 wrong usage.",
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("no command; try %s --help", cmd.CommandPath())
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; try %s --help", err, cmd.CommandPath())
	})
	clihelp.VersionFlag(root)
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.DisableDefaultCmd = true // its output cannot be redirected
	root.AddCommand(
		serveCommand(), checkCommand(), demo.Command(),
		putCommand(), exportCommand(), importCommand(), statusCommand(), topCommand(), explainCommand(),
		showCommand(),
		robotsCommand(), crawlCommand(), schemaCommand(), clihelp.Version(takes),
		clihelp.Completion(takes, "urlserver"),
		clihelp.Man(takes, []clihelp.Note{{Name: "/etc/urlserver/urlserver.toml",
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
	return usagef("%s; try %s --help", text, cmd.CommandPath())
}

// takes turns errors of check into usage errors.
func takes(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}
