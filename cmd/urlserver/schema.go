package main

import (
	"github.com/spf13/cobra"

	"urlserver/crawlcontrol"
	"urlserver/internal/clihelp"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the requests of crawl control",
		Example: "  urlserver schema",
		Args:    clihelp.Takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(crawlcontrol.Schema())
			return err
		},
	}
}
