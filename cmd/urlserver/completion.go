package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells are those that completion knows.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	"zsh":        (*cobra.Command).GenZshCompletion,
}

// completeArgs has shells complete what a command takes: settings files, other files, or none. Commands that say
// themselves what they take are left alone.
func completeArgs(cmd *cobra.Command) {
	switch name := cmd.Name(); {
	case cmd.ValidArgs != nil || cmd.ValidArgsFunction != nil:
	case name == "serve" || name == "check":
		cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
		}
	case !strings.Contains(cmd.Use, "FILE") && !strings.Contains(cmd.Use, "DIR"):
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

func completionCommand() *cobra.Command {
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what has a shell complete commands and flags",
		Long: "SHELL is " + strings.Join(names, ", ") + ". For bash, in the shell that is to complete:\n" +
			"  source <(urlserver completion bash)",
		ValidArgs: names,
		Args:      takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return usagef("no completion for %q; there is: %s", args[0], strings.Join(names, ", "))
			}
			return write(cmd.Root(), cmd.OutOrStdout())
		},
	}
}
