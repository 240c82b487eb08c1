package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
)

func importCommand() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Put what export wrote into a running daemon",
		Long: "Puts the URLs and settings of a file that export wrote, or a URL Frontier's own client, " +
			"into the embedded doc\n" +
			"index of a running daemon; - is standard input. Files packed with zstd or gzip are unpacked. " +
			"URLs that the index\n" +
			"knows do not change, so the same file may be imported again. Prints one JSON line with how many " +
			"were new and known,\n" +
			"renumbered (their DOC_IDs were taken), settings, invalid, and dropped (their crawl was stopped or has " +
			"expired).\n" +
			"Lines that cannot be used are named on standard error, and the rest is put; then the exit status is 1.",
		Example: "  urlserver import all.ndjson.zst",
		Args:    clihelp.Takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.open(); err != nil {
				return err
			}
			return importFile(cmd.Context(), &c, args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.flags(cmd)
	return cmd
}

func importFile(ctx context.Context, c *client, file string, in io.Reader, out, errs io.Writer) error {
	bar := newProgress(errs, "import", "sent", totalSize([]string{file}))
	p := &putter{client: c, path: "/docindex/dump", errs: errs, progress: bar}
	err := p.end(out, p.file(ctx, file, in))
	if err == nil && p.sums.Invalid > 0 {
		err = fmt.Errorf("%s: %s refused; mended lines may be imported by themselves",
			p.name, count(p.sums.Invalid, "line"))
	}
	return err
}
