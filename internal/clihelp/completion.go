package clihelp

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells are the shells that have completion.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	"zsh":        (*cobra.Command).GenZshCompletion,
}

// Completion returns a command that prints a completion script for the command called name, to
// which it is added.
func Completion(name string) *cobra.Command {
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the script with which a shell completes commands and flags",
		Long: "SHELL is " + strings.Join(names, ", ") + ". For bash, in the shell that is to complete:\n" +
			"  source <(" + name + " completion bash)",
		ValidArgs: names,
		Args: Takes(func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return err
			}
			if shells[args[0]] == nil {
				return fmt.Errorf("no completion for %q; there is: %s", args[0], strings.Join(names, ", "))
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return shells[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// CompleteArgs sets what shells complete for a command's arguments: files, or nothing. It does not
// change commands with a completion function.
func CompleteArgs(cmd *cobra.Command) {
	says := cmd.ValidArgs != nil || cmd.ValidArgsFunction != nil
	if !says && !strings.Contains(cmd.Use, "FILE") && !strings.Contains(cmd.Use, "DIR") {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}
