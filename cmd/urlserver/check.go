package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"urlserver/configs"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a settings file",
		Long: "Reads a settings file as serve does and tells all mistakes in it, with line, key and what is allowed.\n" +
			"Exit status 1 if there are any.",
		Example: "  urlserver check my.toml",
		Args:    takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := configs.Load(args[0]); err != nil {
				return settingsError(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: no mistakes\n", args[0])
			return nil
		},
	}
}

// settingsError puts several mistakes below each other.
func settingsError(err error) error {
	if _, several := mistakesOf(err); several {
		return fmt.Errorf("settings refused:\n%w", err)
	}
	return err
}
